"""Locks on a study's folder: one driver of the whole, or one of each part; the system lets go of them when a process
ends, however it ends.

A driver of the whole holds `.lock` alone. Drivers of parts share it, each holds a file of its part, which stays as the
record of how many parts there are, and one at a time begins the study.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import BinaryIO
from warnings import warn

from linkwright.base.files import cannot_write, open_lock
from linkwright.errors import LinkwrightError, LinkwrightWarning, ModelError

LOCK, BEGIN = ".lock", ".begin.lock"
_PART_LOCK = re.compile(r"\.part-(\d{1,9})-of-(\d{1,9})\.lock")


def is_part_lock(name: str) -> bool:
    """Whether a file has the name of a part's lock."""
    return _PART_LOCK.fullmatch(name) is not None


class FolderLocks:
    """The locks of one driver, of the whole study or of a part of it."""

    def __init__(self, folder: Path, part: tuple[int, int] | None) -> None:
        self.folder, self.part = folder, part
        self._files: list[BinaryIO] = []
        self._begin: BinaryIO | None = None

    @property
    def parts(self) -> int:
        """In how many parts the study is computed; 0 where it is computed as a whole."""
        names = map(_PART_LOCK.fullmatch, os.listdir(self.folder))
        return max((int(match[2]) for match in names if match), default=0)

    def hold(self) -> None:
        """Keep other drivers of the same out, until `release`; of a part also those that begin, until `begun`."""
        if self.part is None:
            self._lock(LOCK, "the study", shared=False)
            return
        number, parts = self.part
        self._lock(LOCK, "the study", shared=True)
        self._begin = self._lock(BEGIN, "", shared=False, wait=True)
        if self.parts not in (0, parts):
            text = f"the study in {self.folder} is computed in {self.parts} parts, not {parts}; give one of these"
            raise ModelError(f"{text}, or resume=True without a part when no other is at work")
        self._lock(f".part-{number}-of-{parts}.lock", f"part {number} of {parts} of the study", shared=False)

    def begun(self) -> None:
        """The study is there: other parts may see what it is; a driver of the whole does what they have left."""
        if self.part is None:
            for name in filter(is_part_lock, os.listdir(self.folder)):
                (self.folder / name).unlink(missing_ok=True)
        if self._begin is not None:
            self._files.remove(self._begin)
            self._begin.close()
            self._begin = None

    def release(self) -> None:
        """Let other drivers in."""
        self._begin = None
        for file in self._files:
            file.close()
        self._files.clear()

    def _lock(self, name: str, what: str, *, shared: bool, wait: bool = False) -> BinaryIO:
        try:
            file = open_lock(self.folder / name)
        except OSError as error:
            raise cannot_write(self.folder / name, error) from error
        self._files.append(file)
        try:
            import fcntl
        except ImportError:  # no such locks here: two drivers at once would compute chunks twice, and lose nothing
            return file
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                text = f"another process works on {what} in {self.folder}; wait for it, or choose another folder"
                raise LinkwrightError(text) from None
            text = f"{self.folder} cannot be locked ({error.strerror}); see that no other process works on this study"
            warn(text, LinkwrightWarning, stacklevel=5)
        return file
