"""Where the reader of this process stands, and the places that it must not try again.

Files come from strangers, so they are read in a process of its own (`sources/reader_process.py`),
which is ended when one entry takes too long or too much, or meets an error of the reader's own.
What it was at then is where the next process resumes: that one is told, reports the entry, and
reads on behind it.
Where nobody watches, nothing is noted.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Final, Literal, Protocol, cast

import msgspec

from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord

Step = Literal["looking", "beginning", "entry", "after"]
End = Literal["too_costly", "reader_failed"]
TOO_COSTLY: Final = "too_costly"
READER_FAILED: Final = "reader_failed"
STEPS: tuple[Step, ...] = ("looking", "beginning", "entry", "after")


class Place(msgspec.Struct, frozen=True):
    """What a reader was at: looking at a file, beginning it, one entry, or reading on after one.

    Shapes: `file` tells the very file from others.
    Units: `at` in bytes from the start of the file.
    """

    file: str
    step: Step
    at: int = 0

    def __str__(self) -> str:
        return f"{self.file} {self.step} {self.at}"


def parse_place(text: str) -> Place:
    """A place as it was written. Raises: ValueError."""
    file, step, at = text.split(" ")
    return Place(file, STEPS[STEPS.index(cast(Step, step))], int(at))


class MarkedFile(Protocol):
    """A file among those of an export."""

    @property
    def fingerprint(self) -> str:
        """What tells the very file from others."""
        ...

    @property
    def offset(self) -> int:
        """Where it begins if all files are laid end to end."""
        ...


class Watcher(Protocol):
    """Whoever is told where a reader stands."""

    def file(self, fingerprint: str) -> None:
        """It turns to that file."""
        ...

    def stands(self, step: Step, at: int) -> None:
        """It is at that place of the file."""
        ...

    def goes_on(self) -> None:
        """It has read a stretch of the file."""
        ...


class Bookmark:
    """The one place at which the reader of a process stands."""

    def __init__(self) -> None:
        self._watcher: Watcher | None = None
        self._ends: Mapping[Place, End] = {}
        self._here: Mapping[tuple[Step, int], End] = {}
        self._begin = 0

    def watch(
        self, watcher: Watcher | None, costly: Iterable[Place], failed: Iterable[Place] = ()
    ) -> None:
        """From now on tell the watcher every place, and give up at those that ended a reader.

        Shapes: `costly` took too much, at `failed` the reader met an error of its own.
        """
        ends: dict[Place, End] = dict.fromkeys(costly, TOO_COSTLY)
        ends.update((place, READER_FAILED) for place in failed)
        self._watcher, self._ends = watcher, ends

    def looking_at(self, file: MarkedFile) -> None:
        """It asks what a file is. Raises: BadRecord, if that ended a reader before."""
        self._enter(file, "looking")

    @contextmanager
    def judging(self, file: MarkedFile) -> Generator[None]:
        """Whatever is read meanwhile is part of one look at that file, in the time of one entry.

        Raises: BadRecord, if that ended a reader before.
        """
        self.looking_at(file)
        watcher, self._watcher = self._watcher, None
        try:
            yield
        finally:
            self._watcher = watcher

    def beginning(self, file: MarkedFile) -> None:
        """It begins to read a file. Raises: BadRecord, if that ended a reader before."""
        self._enter(file, "beginning")

    def entry(self, position: int) -> None:
        """It reads the entry at a position. Raises: BadRecord, if that ended a reader before."""
        self._stand("entry", position - self._begin)

    def after(self, position: int) -> None:
        """It reads on after that entry. Raises: BadRecord, if that ended a reader before."""
        self._stand("after", position - self._begin)

    def goes_on(self) -> None:
        """It has read a stretch of the file, and may take its time for that."""
        if self._watcher is not None:
            self._watcher.goes_on()

    def _enter(self, file: MarkedFile, step: Step) -> None:
        if self._watcher is not None:
            fingerprint, self._begin = file.fingerprint, file.offset
            self._here = {
                (place.step, place.at): end
                for place, end in self._ends.items()
                if place.file == fingerprint
            }
            self._watcher.file(fingerprint)
            self._stand(step, 0)

    def _stand(self, step: Step, at: int) -> None:
        if self._watcher is None:
            return
        if self._here and (end := self._here.get((step, at))):
            raise BadRecord(end, _REASONS[step] if end == TOO_COSTLY else _FAILED)
        self._watcher.stands(step, at)


_REASONS: dict[Step, str] = {
    "looking": message("recognizing the file would take too long or too much memory"),
    "beginning": message("reading this file would take too long or too much memory"),
    "entry": message("reading the file would take too long or too much memory"),
    "after": message("reading the rest of this file would take too long or too much memory"),
}
_FAILED = message("an error in the reader itself ended reading here")

BOOKMARK = Bookmark()
