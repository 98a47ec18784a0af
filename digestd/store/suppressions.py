"""To whom nothing is sent, and why. Floor 3. Entry points: :class:`Suppressions`, :func:`blocked`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from digestd.model.delivery import Suppression
from digestd.store.engine import Engine
from digestd.store.rows import instant
from digestd.store.rows_followers import to_suppression

#: so many digests in a row that came back for a passing reason (mailbox full) are an address that is not read any more
SOFT_BOUNCES = 5
SOFT_WINDOW = timedelta(days=30)


def blocked(*, reader: str, scope: str, kind: str) -> str:
    """Return the SQL condition that a row may not be sent, of the SQL that names its reader, scope and kind.

    A confirmation that somebody asked for passes an unsubscription: without it nobody could ever come back. So does word to
    the operator, whose address may have been a reader's. A bounce or complaint stops them too.
    """
    return f"""EXISTS (SELECT 1 FROM suppression JOIN reader AS addressee ON addressee.canonical = suppression.address
      WHERE addressee.id = {reader} AND suppression.lifted_at IS NULL AND suppression.scope IN ('all', {scope})
      AND NOT ({kind} IN ('confirm', 'trouble') AND suppression.reason = 'unsubscribed'))"""  # noqa: S608 # columns and parameters only


class Suppressions:
    """Suppressions and the bounces that lead to them, in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def suppress(self, suppression: Suppression) -> None:
        """Stop all mail of this scope to an address; a second one of the same scope changes nothing."""
        self._engine.query(
            """INSERT INTO suppression (address, scope, reason, at, evidence, lifted_at)
            VALUES (:address, :scope, :reason, :at, :evidence, NULL)
            ON CONFLICT (address, scope) WHERE lifted_at IS NULL DO NOTHING""",
            {
                "address": suppression.address.casefold(),
                "scope": suppression.scope,
                "reason": suppression.reason,
                "at": instant(suppression.at),
                "evidence": suppression.evidence,
            },
        )

    def lift(self, address: str, scope: str, *, now: datetime) -> bool:
        """End a suppression and return whether there was one."""
        rows = self._engine.query(
            """UPDATE suppression SET lifted_at = :now WHERE address = :address AND scope = :scope AND lifted_at IS NULL
            RETURNING id""",
            {"address": address.casefold(), "scope": scope, "now": instant(now)},
        )
        return bool(rows)

    def standing(self, address: str | None = None) -> Sequence[Suppression]:
        """Return suppressions that stand, of one address or all, oldest first."""
        where = "AND address = :address" if address is not None else ""
        rows = self._engine.query(
            f"SELECT * FROM suppression WHERE lifted_at IS NULL {where} ORDER BY id",  # noqa: S608 # one of two texts
            {"address": address.casefold()} if address is not None else {},
        )
        return [to_suppression(row) for row in rows]

    def add_bounce(
        self, address: str, kind: str, *, at: datetime, evidence: str = "", digest_key: str | None = None
    ) -> bool:
        """Record that a mail came back, or a complaint, and return whether the address is suppressed for all mail now."""
        address = address.casefold()
        with self._engine.transaction():
            self._engine.query(
                """INSERT INTO bounce (address, kind, at, evidence, digest_key)
                VALUES (:address, :kind, :at, :evidence, :digest_key)""",
                {"address": address, "kind": kind, "at": instant(at), "evidence": evidence, "digest_key": digest_key},
            )
            reason = {"hard": "bounced", "complaint": "complained"}.get(kind)
            if reason is None and self._is_dead(address, at):
                reason, evidence = "bounced", f"{SOFT_BOUNCES} digests in {SOFT_WINDOW.days} days came back: {evidence}"
            if reason is not None:
                self.suppress(Suppression(address, "all", reason, at, evidence))
            return any(one.scope == "all" for one in self.standing(address))

    def _is_dead(self, address: str, now: datetime) -> bool:
        """Return whether the last digests all came back, since the last fresh confirmation and within the window.

        Relays accept mail before it comes back, so an accepted one shows a living address only if a later one came back
        and it did not.
        """
        lifted = self._engine.query(
            "SELECT MAX(lifted_at) AS at FROM suppression WHERE address = :address", {"address": address}
        )[0]["at"]
        since = max(instant(now - SOFT_WINDOW), lifted or "")
        rows = self._engine.query(
            """SELECT COALESCE(digest_key, 'bounce ' || id) AS digest, MAX(at) AS at FROM bounce
            WHERE address = :address AND kind = 'soft' AND at > :since GROUP BY 1 ORDER BY 2 DESC LIMIT :most""",
            {"address": address, "since": since, "most": SOFT_BOUNCES},
        )
        if len(rows) < SOFT_BOUNCES:
            return False
        accepted = self._engine.query(
            """SELECT COUNT(*) AS living FROM outbox WHERE reader_id = (SELECT id FROM reader WHERE canonical = :address)
            AND state = 'accepted' AND NOT EXISTS (SELECT 1 FROM bounce WHERE bounce.address = :address
              AND bounce.digest_key = outbox.digest_key)
            AND outbox.id > (SELECT MIN(back.id) FROM outbox AS back WHERE back.reader_id = outbox.reader_id
              AND back.digest_key IN (:key0, :key1, :key2, :key3, :key4))
            AND outbox.id < (SELECT MAX(back.id) FROM outbox AS back WHERE back.reader_id = outbox.reader_id
              AND back.digest_key IN (:key0, :key1, :key2, :key3, :key4))""",
            {"address": address} | {f"key{place}": row["digest"] for place, row in enumerate(rows)},
        )
        return not accepted[0]["living"]
