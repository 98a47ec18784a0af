"""Is this the machine that the history works on, or a copy of it? Floor 4. Entry points: :func:`check_home`, :func:`adopt`.

A virtual machine that is cloned, or a disk that is put into another one, holds a whole history with mail in its outbox; if
both send, every reader is told twice. So a history keeps a mark of its machine, and on another one it sends nothing until
a person says which of the two it is (RELIABILITY R24).
"""

from __future__ import annotations

import hashlib
import hmac

from digestd.errors import MovedError
from digestd.ports import Store


def check_home(store: Store, machine: str | None) -> None:
    """Return if mail may be sent from this machine; the first that sends becomes the history's own.

    Args:
        store: the history.
        machine: what names the machine, None where nothing does: then nothing can be told, and nothing is held.

    Raises:
        MovedError: the history belongs to another machine.
    """
    if machine is None:
        return
    mark, home = _mark(store, machine), store.home()
    if home is None:
        store.put_home(mark)
    elif home != mark:
        raise MovedError(
            "mail is held: expected the machine on which this history worked until now, found another one "
            "(a copy of it would send everything twice)"
        )


def adopt(store: Store, machine: str | None) -> bool:
    """Make this machine the history's own; return whether it was another's.

    Raises:
        MovedError: nothing names this machine.
    """
    if machine is None:
        raise MovedError("expected a machine-id by which this machine is known again, found none")
    mark, home = _mark(store, machine), store.home()
    if home == mark:
        return False
    store.put_home(mark)
    return home is not None


def _mark(store: Store, machine: str) -> str:
    """Return what is kept of a machine: its id is a secret of the system (machine-id(5)), so only a hash of it."""
    return hmac.new(store.secret("instance"), f"machine {machine}".encode(), hashlib.sha256).hexdigest()
