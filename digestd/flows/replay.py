"""What exactly was sent. Floor 4. Entry point: :func:`replay`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from email import message_from_bytes, policy

from digestd.errors import NotFoundError
from digestd.model.delivery import Delivery
from digestd.ports import Store
from digestd.render.outgoing import build_mail, unpack_content


@dataclass(frozen=True, slots=True)
class Replayed:
    """A mail, built again of what the outbox keeps."""

    delivery: Delivery
    body: bytes

    @property
    def sha256(self) -> str:
        """Hash of the bytes."""
        return hashlib.sha256(self.body).hexdigest()

    @property
    def same(self) -> bool | None:
        """Whether these are the bytes that were sent; None if nothing came to that."""
        return None if self.delivery.sha256 is None else self.sha256 == self.delivery.sha256

    def part(self, kind: str) -> str | None:
        """Return the mail's text of a kind, ``plain`` or ``html``; None if it has none."""
        found = message_from_bytes(self.body, policy=policy.default).get_body((kind,))
        return None if found is None else str(found.get_content()).replace("\r\n", "\n")


def replay(store: Store, name: str) -> Replayed:
    """Return a digest's mail as it was, or will be, sent.

    Args:
        store: its outbox is only looked at.
        name: a digest's key ("a1b2c3|2026-10-05T07:30"), or a delivery's number.

    Raises:
        NotFoundError: there is no such digest or delivery, or it was not mailed.
        StoreError: what the outbox keeps of it is damaged.
        RenderError: it cannot be built.
    """
    if name.isascii() and name.isdigit():
        delivery = store.outbox.delivery(int(name))
    else:
        rows = store.outbox.deliveries(digest_key=name, limit=1)
        if not rows:
            record = store.subscriptions.digest(name)
            raise NotFoundError(
                f"digest {name}: expected one that was mailed, found one with nothing to tell: "
                f"it passed over {len(record.passed_over)} of the ledger's rows"
            )
        delivery = rows[0]
    claimed = store.outbox.content_of(delivery.key)
    return Replayed(claimed.delivery, build_mail(claimed.envelope.fields, unpack_content(claimed.content)))
