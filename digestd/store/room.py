"""Room on the disk of a history: a floor that stops new work, and a ballast that lets begun work end. Floor 3.

On a full disk nothing can be recorded, not even that a mail was taken: so what makes the history grow stops while there is
room left, and a file of some megabytes is given up when that runs out (RELIABILITY R26). SQLite cannot even be opened where
the file of its shared memory finds no room, so the ballast goes before the history is opened. Entry point: :class:`Room`.
"""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

from digestd.errors import NoRoomError

log = logging.getLogger(__name__)

#: bytes that the results of a batch of mails take at most, and with which a history can be opened
RESERVE = 4_000_000


class Room:
    """The room beside one history.

    Args:
        database: its file.
        floor: bytes that must be free for new papers and digests; 0: none.
        ballast: bytes of the file that is given up when the disk is full; 0: none.
    """

    def __init__(self, database: Path, *, floor: int, ballast: int) -> None:
        self._folder, self._file = database.parent, database.with_name(f"{database.name}-ballast")
        self.floor, self._ballast = floor, ballast

    def free(self) -> int:
        """Return the bytes that are free to us; of a folder that is not there yet, those of the one it will be in."""
        folder = self._folder
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return shutil.disk_usage(folder).free

    def is_short(self) -> bool:
        """Return whether nothing that makes the history grow may begin."""
        return self.free() < self.floor

    def need(self) -> None:
        """Return if there is room for new papers and digests.

        Raises:
            NoRoomError: there is not.
        """
        if self.is_short():
            free, wanted = self.free() // 1_000_000, self.floor // 1_000_000
            raise NoRoomError(f"disk of {self._folder}: expected {wanted:,} MB free for new papers, found {free:,} MB")

    def can_record(self) -> bool:
        """Return whether what becomes of mails can be recorded, giving up the ballast for that if need be."""
        if self.free() < RESERVE and self._give_up():
            log.error('disk is full, the ballast was given up folder="%s"', self._folder)
        return self.free() >= RESERVE or not self.floor

    def before_opening(self) -> None:
        """Make room without which a history cannot be opened."""
        if self._file.exists():
            self.can_record()

    def restock(self) -> None:
        """Lay in the ballast, where there is room for it above the floor."""
        if not self._ballast or self._file.exists() or self.free() < self.floor + self._ballast:
            return
        try:
            handle = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            return  # it is a precaution; that the folder takes no files is said by who needs one
        try:
            os.posix_fallocate(handle, 0, self._ballast)
        except OSError:
            self._give_up()
        finally:
            os.close(handle)

    def _give_up(self) -> bool:
        try:
            self._file.unlink()
        except OSError:
            return False
        return True
