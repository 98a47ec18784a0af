"""Deliveries, as a repository over an engine. Floor 3. Entry point: :class:`SqlOutbox`.

Every change of a row is one conditional statement that names the state it may leave, so that two workers, or a worker and
a person, can never both believe that a row is theirs. What moved a row is logged in the table of attempts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256 as hash_of
from typing import Any

from digestd.errors import NotFoundError, StoreError
from digestd.model.delivery import (
    Attempt,
    Claimed,
    Deferred,
    Delivery,
    DeliveryState,
    Envelope,
    Fenced,
    Outcome,
    Refused,
    Reply,
    Sent,
    Suppression,
    Uncertain,
)
from digestd.store.engine import Engine, chunks, placeholders
from digestd.store.rows import instant, maybe_instant
from digestd.store.rows_followers import envelope_columns, to_attempt, to_delivery, to_envelope
from digestd.store.suppressions import Suppressions, blocked

#: a row whose worker is gone so often in a row, with nothing sent, is what ends the workers
POISON_AFTER = 3

#: why of a row that was refused for what we are (5.7.x), which says nothing of its reader
POLICY = "refused for what we are"

_BLOCKED = blocked(reader="outbox.reader_id", scope="outbox.scope", kind="outbox.kind")
_BLOCKED_NEW = blocked(reader="reader.id", scope=":scope", kind=":kind")

_ENQUEUE = f"""INSERT INTO outbox (kind, digest_key, reader_id, recipient, sender, message_id, fields, content, smtputf8, scope,
    next_at, created_at, state, settled_at, why)
  SELECT :kind, :digest_key, sight.id, :recipient, :sender, :message_id, :fields, :content, :smtputf8, :scope,
    :next_at, :now, CASE WHEN sight.blocked THEN 'suppressed' ELSE 'ready' END, CASE WHEN sight.blocked THEN :now END,
    CASE WHEN sight.blocked THEN 'suppressed before it was made' ELSE '' END
  FROM (SELECT reader.id, {_BLOCKED_NEW} AS blocked FROM reader WHERE reader.id = :reader) AS sight"""  # noqa: S608 # only columns and parameters are put in

_CLAIM = """UPDATE outbox SET
    state = CASE WHEN sight.blocked THEN 'suppressed' ELSE 'claimed' END,
    phase = CASE WHEN sight.blocked THEN NULL ELSE 'env' END,
    owner = CASE WHEN sight.blocked THEN outbox.owner ELSE :owner END,
    lease_until = CASE WHEN sight.blocked THEN NULL ELSE :lease_until END,
    attempts = CASE WHEN sight.blocked THEN outbox.attempts ELSE outbox.attempts + 1 END,
    settled_at = CASE WHEN sight.blocked THEN :now END,
    why = CASE WHEN sight.blocked THEN 'suppressed before it was sent' ELSE outbox.why END,
    dot_at = NULL
  FROM (SELECT outbox.id, {blocked} AS blocked FROM outbox WHERE outbox.state = 'ready' AND outbox.next_at <= :now
    ORDER BY outbox.next_at, outbox.id LIMIT :limit {lock}) AS sight
  WHERE outbox.id = sight.id RETURNING *"""

_DOT = f"""UPDATE outbox SET
    state = CASE WHEN sight.blocked THEN 'suppressed' ELSE 'claimed' END,
    phase = CASE WHEN sight.blocked THEN NULL ELSE 'dot' END,
    lease_until = CASE WHEN sight.blocked THEN NULL ELSE outbox.lease_until END,
    settled_at = CASE WHEN sight.blocked THEN :now END,
    why = CASE WHEN sight.blocked THEN 'suppressed while it was being sent' ELSE outbox.why END,
    dot_at = CASE WHEN sight.blocked THEN NULL ELSE :now END,
    other_bytes = outbox.other_bytes
      + CASE WHEN sight.blocked OR outbox.sha256 IS NULL OR outbox.sha256 = :sha256 THEN 0 ELSE 1 END,
    sha256 = CASE WHEN sight.blocked THEN outbox.sha256 ELSE :sha256 END
  FROM (SELECT outbox.id, {_BLOCKED} AS blocked FROM outbox WHERE outbox.id = :key LIMIT 1) AS sight
  WHERE outbox.id = sight.id AND outbox.owner = :owner AND outbox.state = 'claimed' AND outbox.phase = 'env'
  RETURNING *"""  # noqa: S608 # as above


#: states from which no delivery is ever sent
_OVER = "('accepted', 'suppressed')"


@dataclass(frozen=True, slots=True)
class _Settlement:
    """Where a claimed row goes."""

    state: DeliveryState
    outcome: str  #: word for the log
    why: str = ""
    reply: Reply | None = None
    next_at: datetime | None = None
    refund: bool = False  #: the attempt does not count
    phase: str | None = None  #: only a row of this phase may go there


def _settlement(outcome: Outcome, *, now: datetime, next_at: datetime | None) -> _Settlement:
    """Return where a row goes after an outcome."""
    match outcome:
        case Sent(reply):
            return _Settlement(DeliveryState.ACCEPTED, "sent", reply=reply)
        case Refused(reply):
            why = POLICY if outcome.policy else "refused"
            return _Settlement(DeliveryState.FAILED, "refused", why, reply)
        case Deferred(why, reply) if next_at is None:
            return _Settlement(DeliveryState.FAILED, "deferred", f"expired: {why}", reply, refund=outcome.relay_fault)
        case Deferred(why, reply):
            return _Settlement(DeliveryState.READY, "deferred", why, reply, next_at, refund=outcome.relay_fault)
        case Uncertain(why):
            return _Settlement(DeliveryState.UNCERTAIN, "uncertain", why)
        case Fenced():
            # in phase dot it is another's who has the same name: mark_dot said no because that one is sending it
            why = "given up just before it was sent"
            return _Settlement(DeliveryState.READY, "fenced", why, next_at=next_at or now, phase="env")


def _name(envelope: Envelope) -> tuple[str, str, int]:
    """Return what there is only one row of."""
    return envelope.digest_key, envelope.kind, envelope.reader


_DAMAGED = _Settlement(DeliveryState.POISON, "poison", "its content is damaged")


class SqlOutbox:
    """The outbox in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._suppressions = Suppressions(engine)
        self._claim = _CLAIM.format(blocked=_BLOCKED, lock=engine.claim_lock)

    # -- rows come in

    def put_content(self, content: bytes, *, now: datetime) -> str:
        """Keep content that several deliveries share, once, and return its hash."""
        digest = hash_of(content).hexdigest()
        self._engine.query(
            "INSERT INTO content (hash, body, created_at) VALUES (:hash, :body, :now) ON CONFLICT (hash) DO NOTHING",
            {"hash": digest, "body": content, "now": instant(now)},
        )
        return digest

    def enqueue(self, envelopes: Sequence[Envelope], *, now: datetime) -> Sequence[int]:
        """Add rows that are ready, all or none, and return their keys in the order of the envelopes."""
        with self._engine.transaction():
            self._require_contents({envelope.content for envelope in envelopes})
            text = instant(now)
            self._engine.many(_ENQUEUE, [envelope_columns(envelope) | {"now": text} for envelope in envelopes])
            keys = self._keys({envelope.digest_key for envelope in envelopes})
            for envelope in envelopes:
                if _name(envelope) not in keys:
                    raise NotFoundError(f"reader {envelope.reader}: expected one of the history, found none")
            return [keys[_name(envelope)] for envelope in envelopes]

    def _keys(self, digest_keys: set[str]) -> dict[tuple[str, str, int], int]:
        """Return the keys of all rows of some digests, by what there is one row of."""
        found: dict[tuple[str, str, int], int] = {}
        for part in chunks(sorted(digest_keys)):
            marks, args = placeholders("d", part)
            for row in self._engine.query(
                f"SELECT id, digest_key, kind, reader_id FROM outbox WHERE digest_key IN {marks}",  # noqa: S608 # numbered
                args,
            ):
                found[row["digest_key"], row["kind"], row["reader_id"]] = row["id"]
        return found

    def _require_contents(self, wanted: set[str]) -> None:
        found: set[str] = set()
        for part in chunks(sorted(wanted)):
            marks, args = placeholders("h", part)
            rows = self._engine.query(f"SELECT hash FROM content WHERE hash IN {marks}", args)  # noqa: S608 # numbered
            found.update(row["hash"] for row in rows)
        for digest in sorted(wanted - found):
            raise NotFoundError(f"content {digest!r}: expected it to be kept before a delivery needs it, found none")

    # -- sending

    def claim(self, owner: str, *, now: datetime, lease_until: datetime, limit: int) -> Sequence[Claimed]:
        """Give rows to one owner, oldest due first; suppressed ones are settled on the way."""
        args = {"owner": owner, "now": instant(now), "lease_until": instant(lease_until)}
        claimed: list[Claimed] = []
        with self._engine.transaction():
            while len(claimed) < limit:
                rows = self._engine.query(self._claim, args | {"limit": limit - len(claimed)})
                if not rows:
                    break
                rows.sort(key=lambda row: (row["next_at"], row["id"]))
                claimed += self._with_content([row for row in rows if row["state"] == DeliveryState.CLAIMED], now=now)
        return claimed

    def _with_content(self, rows: Sequence[Mapping[str, Any]], *, now: datetime) -> list[Claimed]:
        """Return rows with their content; those whose content is damaged can't be sent and are settled as poison."""
        contents = self._contents({row["content"] for row in rows})
        for row in rows:
            if row["content"] not in contents:
                self._leave(row["id"], _DAMAGED, now=now)
        return [
            Claimed(to_delivery(row), to_envelope(row), contents[row["content"]])
            for row in rows
            if row["content"] in contents
        ]

    def _contents(self, wanted: set[str]) -> dict[str, bytes]:
        """Return those contents that still have their hash: a flipped byte passes every check of the database."""
        found: dict[str, bytes] = {}
        for part in chunks(sorted(wanted)):
            marks, args = placeholders("h", part)
            for row in self._engine.query(f"SELECT hash, body FROM content WHERE hash IN {marks}", args):  # noqa: S608 # ours
                body = bytes(row["body"])
                if hash_of(body).hexdigest() == row["hash"]:
                    found[row["hash"]] = body
        return found

    def mark_dot(self, key: int, owner: str, *, now: datetime, sha256: str) -> bool:
        """Record that the final "." is about to be written, and return whether the row is still this owner's to send."""
        args = {"key": key, "owner": owner, "now": instant(now), "sha256": sha256}
        with self._engine.transaction():
            rows = self._engine.query(_DOT, args)
            if not rows:
                return False
            if rows[0]["state"] == DeliveryState.SUPPRESSED:
                self._log(rows[0], "suppressed", now=now)
                return False
            return True

    def settle(
        self, key: int, owner: str, outcome: Outcome, *, now: datetime, next_at: datetime | None
    ) -> DeliveryState:
        """Record what became of a claimed row, in the row and in the log of attempts, and return its state."""
        with self._engine.transaction():
            row = self._leave(key, _settlement(outcome, now=now, next_at=next_at), now=now, owner=owner)
            if row is None:
                return self.delivery(key).state
            if isinstance(outcome, Refused) and outcome.suppress:
                self._suppress_reader(key, outcome.reply, now=now)
            return DeliveryState(row["state"])

    def _leave(
        self, key: int, settlement: _Settlement, *, now: datetime, owner: str | None = None
    ) -> Mapping[str, Any] | None:
        """Take a claimed row to another state and log it; None if it is not claimed by this owner, in this phase."""
        reply = settlement.reply
        rows = self._engine.query(
            """UPDATE outbox SET state = :state, phase = NULL, lease_until = NULL, reaped = 0,
              attempts = attempts - :refund, next_at = COALESCE(:next_at, next_at),
              settled_at = CASE WHEN :state = 'ready' THEN NULL ELSE :now END,
              reply_code = :code, reply_text = :text, why = :why,
              flagged = CASE WHEN :state = 'uncertain' THEN 1 ELSE flagged END
            WHERE id = :key AND state = 'claimed' AND owner = COALESCE(:owner, owner) AND phase = COALESCE(:phase, phase)
            RETURNING *""",
            {
                "key": key,
                "state": str(settlement.state),
                "owner": owner,
                "phase": settlement.phase,
                "now": instant(now),
                "next_at": maybe_instant(settlement.next_at),
                "code": reply.code if reply else None,
                "text": reply.text if reply else None,
                "why": settlement.why,
                "refund": int(settlement.refund),
            },
        )
        if not rows:
            return None
        number = rows[0]["attempts"] + settlement.refund
        self._log(rows[0] | {"attempts": number}, settlement.outcome, now=now)
        return rows[0]

    def _log(self, row: Mapping[str, Any], outcome: str, *, now: datetime, by_hand: bool = False) -> None:
        """Write what moved a row into the log of attempts."""
        self._engine.query(
            """INSERT INTO attempt (outbox_id, number, outcome, owner, dot_at, ended_at, reply_code, reply_text, why, sha256)
            VALUES (:key, :number, :outcome, :owner, :dot_at, :now, :code, :text, :why, :sha256)""",
            {
                "key": row["id"],
                "number": row["attempts"],
                "outcome": outcome,
                "owner": None if by_hand else row["owner"],
                "dot_at": None if by_hand else row["dot_at"],
                "now": instant(now),
                "code": None if by_hand else row["reply_code"],
                "text": None if by_hand else row["reply_text"],
                "why": row["why"],
                "sha256": row["sha256"] if row["dot_at"] and not by_hand else None,
            },
        )

    def _suppress_reader(self, key: int, reply: Reply, *, now: datetime) -> None:
        address = self._engine.query(
            "SELECT reader.canonical FROM reader JOIN outbox ON outbox.reader_id = reader.id WHERE outbox.id = :key",
            {"key": key},
        )[0]["canonical"]
        self._suppressions.suppress(Suppression(address, "all", "bounced", now, f"{reply.code} {reply.text}".strip()))

    # -- rows that their worker left behind

    def reap(self, *, now: datetime, owners: Sequence[str]) -> Sequence[int]:
        """Free the rows of owners that are gone, or whose lease is over; return the keys freed."""
        marks, args = placeholders("o", owners) if owners else ("('')", {})
        with self._engine.transaction():
            rows = self._engine.query(
                f"""SELECT id FROM outbox WHERE state = 'claimed' AND (lease_until <= :now OR owner NOT IN {marks})
                ORDER BY id {self._engine.claim_lock}""",  # noqa: S608 # only numbered parameters are put in
                args | {"now": instant(now)},
            )
            for row in rows:
                freed = self._engine.query(
                    """UPDATE outbox SET reaped = reaped + CASE WHEN phase = 'env' THEN 1 ELSE 0 END,
                      state = CASE WHEN phase = 'dot' THEN 'uncertain' WHEN reaped + 1 >= :poison THEN 'poison'
                        ELSE 'ready' END,
                      flagged = CASE WHEN phase = 'dot' THEN 1 ELSE flagged END,
                      settled_at = CASE WHEN phase = 'dot' OR reaped + 1 >= :poison THEN :now END,
                      why = CASE WHEN phase = 'dot' THEN 'its worker was gone after it may have been sent'
                        ELSE 'its worker was gone before it was sent' END,
                      reply_code = NULL, reply_text = NULL, phase = NULL, lease_until = NULL
                    WHERE id = :key RETURNING *""",
                    {"key": row["id"], "now": instant(now), "poison": POISON_AFTER},
                )[0]
                self._log(freed, "reaped", now=now)
        return [row["id"] for row in rows]

    def resend_uncertain(self, *, now: datetime, older_than: datetime) -> Sequence[int]:
        """Make uncertain rows ready that were settled before ``older_than`` and never sent again; each once in its life."""
        rows = self._engine.query(
            """UPDATE outbox SET state = 'ready', resent = 1, next_at = :now, settled_at = NULL
            WHERE state = 'uncertain' AND resent = 0 AND settled_at < :older_than RETURNING id""",
            {"now": instant(now), "older_than": instant(older_than)},
        )
        return sorted(row["id"] for row in rows)

    # -- looking, and a person's hand

    def delivery(self, key: int) -> Delivery:
        """Return one row; NotFoundError if there is none."""
        return to_delivery(self._row(key))

    def _row(self, key: int) -> Mapping[str, Any]:
        rows = self._engine.query("SELECT * FROM outbox WHERE id = :key", {"key": key})
        if not rows:
            raise NotFoundError(f"delivery {key}: expected one of the outbox, found none")
        return rows[0]

    def deliveries(
        self, *, state: DeliveryState | None = None, digest_key: str | None = None, limit: int = 100
    ) -> Sequence[Delivery]:
        """Return rows, newest first."""
        args: dict[str, Any] = {"limit": limit}
        clauses = []
        if state is not None:
            clauses.append("state = :state")
            args["state"] = str(state)
        if digest_key is not None:
            clauses.append("digest_key = :digest_key")
            args["digest_key"] = digest_key
        where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
        rows = self._engine.query(f"SELECT * FROM outbox {where} ORDER BY id DESC LIMIT :limit", args)  # noqa: S608 # ours
        return [to_delivery(row) for row in rows]

    def attempts(self, key: int) -> Sequence[Attempt]:
        """Return the log of one row, oldest first."""
        rows = self._engine.query("SELECT * FROM attempt WHERE outbox_id = :key ORDER BY id", {"key": key})
        return [to_attempt(row) for row in rows]

    def content_of(self, key: int) -> Claimed:
        """Return all that it takes to build a row's mail again, without claiming it; StoreError if it is damaged."""
        row = self._row(key)
        if not row["fields"]:
            raise NotFoundError(f"delivery {key}: expected its mail, found that it was kept for its time and is gone")
        contents = self._contents({row["content"]})
        if not contents:
            raise StoreError(f"delivery {key}: expected content {row['content']}, found it damaged or gone")
        return Claimed(to_delivery(row), to_envelope(row), contents[row["content"]])

    def forget_mails(self, before: datetime, *, limit: int) -> int:
        """Forget what mails are built of that were taken, or stopped, before an instant; return how many."""
        gone = self.put_content(b"", now=before)
        rows = self._engine.query(
            f"""UPDATE outbox SET fields = '', content = :gone WHERE id IN (
              SELECT id FROM outbox WHERE state IN {_OVER} AND fields <> '' AND settled_at < :before LIMIT :limit)
            RETURNING id""",  # noqa: S608 # our own text
            {"gone": gone, "before": instant(before), "limit": limit},
        )
        return len(rows)

    def mails_before(self, before: datetime) -> int:
        """Return how many mails :meth:`forget_mails` would forget."""
        return int(
            self._engine.query(
                f"SELECT COUNT(*) AS total FROM outbox WHERE state IN {_OVER} AND fields <> '' AND settled_at < :before",  # noqa: S608 # as above
                {"before": instant(before)},
            )[0]["total"]
        )

    def forget_contents(self) -> int:
        """Forget content that no delivery needs any more, and return how much of it there was."""
        return len(
            self._engine.query("DELETE FROM content WHERE hash NOT IN (SELECT content FROM outbox) RETURNING hash")
        )

    def set_state(
        self, key: int, state: DeliveryState, *, why: str, now: datetime, next_at: datetime | None = None
    ) -> None:
        """Settle a row by a person's hand; not one that is claimed or accepted, and never as claimed (StoreError)."""
        if state is DeliveryState.CLAIMED:
            raise StoreError(f"delivery {key}: only a worker can claim it")
        with self._engine.transaction():
            rows = self._engine.query(
                """UPDATE outbox SET resent = CASE WHEN state = 'uncertain' AND :state = 'ready' THEN 1 ELSE resent END,
                  flagged = CASE WHEN :state = 'uncertain' THEN 1 ELSE flagged END,
                  state = :state, reaped = 0, why = :why,
                  next_at = CASE WHEN :state = 'ready' THEN :next_at ELSE next_at END,
                  settled_at = CASE WHEN :state = 'ready' THEN NULL ELSE :now END
                WHERE id = :key AND state NOT IN ('claimed', 'accepted') RETURNING *""",
                {
                    "key": key,
                    "state": str(state),
                    "why": why,
                    "now": instant(now),
                    "next_at": instant(next_at or now),
                },
            )
            if not rows:
                raise StoreError(f"delivery {key}: expected one that is open, found it {self.delivery(key).state}")
            self._log(rows[0], str(state), now=now, by_hand=True)

    def counts(self) -> Mapping[DeliveryState, int]:
        """Return how many rows are in each state, all states named."""
        rows = self._engine.query("SELECT state, COUNT(*) AS total FROM outbox GROUP BY state")
        return dict.fromkeys(DeliveryState, 0) | {DeliveryState(row["state"]): row["total"] for row in rows}

    def next_at(self) -> datetime | None:
        """Return when the next ready row is due; None if none is ready."""
        rows = self._engine.query("SELECT next_at FROM outbox WHERE state = 'ready' ORDER BY next_at LIMIT 1")
        return datetime.fromisoformat(rows[0]["next_at"]) if rows else None

    # -- to whom nothing is sent

    def suppress(self, suppression: Suppression) -> None:
        """Stop all mail of this scope to an address; a second one of the same scope changes nothing."""
        self._suppressions.suppress(suppression)

    def lift(self, address: str, scope: str, *, now: datetime) -> bool:
        """End a suppression, after a fresh confirmation only; return whether there was one."""
        return self._suppressions.lift(address, scope, now=now)

    def suppressions(self, address: str | None = None) -> Sequence[Suppression]:
        """Return suppressions that stand, of one address or all, oldest first."""
        return self._suppressions.standing(address)

    def add_bounce(
        self, address: str, kind: str, *, at: datetime, evidence: str = "", digest_key: str | None = None
    ) -> bool:
        """Record a bounce or complaint and return whether the address is suppressed for all mail now."""
        return self._suppressions.add_bounce(address, kind, at=at, evidence=evidence, digest_key=digest_key)
