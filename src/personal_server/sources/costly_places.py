"""The places of files that ended the process reading them, kept so that none is tried twice.

They are digests of a file's name, size and time with an offset, and may be deleted at any time;
then each costs its time once more.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import orjson

from personal_server.sources.common.bookmark import Place, parse_place

MOST_PLACES = 10_000


class CostlyPlaces:
    """The places known to be too costly; those of a file on disk, if one is named."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._places: dict[Place, None] = {}

    def known(self) -> tuple[Place, ...]:
        """All of them, oldest first."""
        self._places = dict.fromkeys([*self._stored(), *self._places])
        return tuple(self._places)

    def add(self, place: Place) -> None:
        """Keep one more; the oldest are forgotten."""
        kept = [*self.known(), place][-MOST_PLACES:]
        self._places = dict.fromkeys(kept)
        if self._path is not None and self._path.parent.is_dir():
            scratch = self._path.with_suffix(f".{os.getpid()}")
            scratch.touch(mode=0o600)
            scratch.write_bytes(orjson.dumps([str(each) for each in kept]))
            scratch.replace(self._path)

    def _stored(self) -> list[Place]:
        """What the file holds; one that cannot be read holds nothing."""
        if self._path is None:
            return []
        with suppress(OSError, ValueError, AttributeError, TypeError):
            return [parse_place(each) for each in orjson.loads(self._path.read_bytes())]
        return []
