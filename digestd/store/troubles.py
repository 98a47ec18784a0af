"""What the operator is told, and what was counted, as a repository over an engine. Floor 3. Entry point: `SqlTroubles`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from digestd.model.trouble import KnownTrouble, Sign, Tally, Trouble
from digestd.store.engine import Engine
from digestd.store.outbox import POLICY
from digestd.store.rows import instant, maybe_instant, to_instant


class SqlTroubles:
    """Troubles, signs of life and tallies in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def known(self) -> Sequence[KnownTrouble]:
        """Return the troubles that are kept, oldest first."""
        return [
            KnownTrouble(
                Trouble(row["name"], row["why"], is_mail=bool(row["is_mail"])),
                to_instant(row["since_at"]),
                to_instant(row["told_at"]) if row["told_at"] else None,
                to_instant(row["mended_at"]) if row["mended_at"] else None,
            )
            for row in self._engine.query("SELECT * FROM trouble ORDER BY since_at, name")
        ]

    def keep(self, troubles: Sequence[KnownTrouble]) -> None:
        """Keep these in place of what was kept."""
        with self._engine.transaction():
            self._engine.query("DELETE FROM trouble")
            self._engine.many(
                """INSERT INTO trouble (name, why, is_mail, since_at, told_at, mended_at)
                VALUES (:name, :why, :is_mail, :since, :told, :mended)""",
                [
                    {
                        "name": one.trouble.name,
                        "why": one.trouble.why,
                        "is_mail": int(one.trouble.is_mail),
                        "since": instant(one.since),
                        "told": maybe_instant(one.told_at),
                        "mended": maybe_instant(one.mended_at),
                    }
                    for one in troubles
                ],
            )

    def signs(self) -> Mapping[str, Sign]:
        """Return when each thing went well last, by its name."""
        rows = self._engine.query("SELECT name, at, value FROM sign")
        return {row["name"]: Sign(to_instant(row["at"]), row["value"]) for row in rows}

    def put_sign(self, name: str, *, at: datetime, value: int = 0) -> None:
        """Keep that something went well, in place of the time before."""
        self._engine.query(
            """INSERT INTO sign (name, at, value) VALUES (:name, :at, :value)
            ON CONFLICT (name) DO UPDATE SET at = excluded.at, value = excluded.value""",
            {"name": name, "at": instant(at), "value": value},
        )

    def mails(self, prefix: str, *, since: datetime) -> Sequence[datetime]:
        """Return when deliveries were made whose digest key is a prefix and their instant, since an instant, oldest first."""
        rows = self._engine.query(
            """SELECT DISTINCT created_at FROM outbox WHERE digest_key >= :since AND digest_key < :until
            ORDER BY created_at""",
            {"since": f"{prefix}{instant(since)}", "until": f"{prefix}~"},
        )
        return [to_instant(row["created_at"]) for row in rows]

    def policy_refusals(self, *, since: datetime, most: int) -> tuple[int, int]:
        """Return how many of the latest hand-overs, since an instant, were refused for what we are, and of how many."""
        row = self._engine.query(
            """SELECT COUNT(*) AS ended, COALESCE(SUM(CASE WHEN outcome = 'refused' AND why = :why THEN 1 ELSE 0 END), 0)
              AS refused FROM attempt WHERE id > (SELECT COALESCE(MAX(id), 0) FROM attempt) - :most
            AND ended_at >= :since AND outcome IN ('sent', 'refused')""",
            {"why": POLICY, "most": most, "since": instant(since)},
        )[0]
        return row["refused"], row["ended"]

    def tally(self, before: Tally) -> Tally:
        """Return a tally with what was added to the history since."""
        ledger, digest, attempt = before.upto
        sightings, ledger = self._counted(
            before.sightings,
            "SELECT kind AS name, COUNT(*) AS total, MAX(position) AS last FROM ledger WHERE position > :after GROUP BY kind",
            ledger,
        )
        digests, digest = self._counted(
            before.digests,
            """SELECT CASE WHEN mailed = 1 THEN 'mailed' ELSE 'silent' END AS name, COUNT(*) AS total, MAX(id) AS last
            FROM digest WHERE id > :after GROUP BY mailed""",
            digest,
        )
        attempts, attempt = self._counted(
            before.attempts,
            """SELECT CASE WHEN outcome = 'reaped' AND dot_at IS NOT NULL THEN 'uncertain' ELSE outcome END AS name,
              COUNT(*) AS total, MAX(id) AS last FROM attempt WHERE id > :after GROUP BY 1""",
            attempt,
        )
        return Tally(sightings, digests, attempts, (ledger, digest, attempt))

    def _counted(self, before: Mapping[str, int], sql: str, after: int) -> tuple[Mapping[str, int], int]:
        counts = Counter(before)
        for row in self._engine.query(sql, {"after": after}):
            counts[row["name"]] += row["total"]
            after = max(after, row["last"])
        return dict(counts), after
