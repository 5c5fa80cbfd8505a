"""What a feed wants imported, and how `app/feed_imports.py` sends it to `cli/fed_import.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec


class WantedImport(msgspec.Struct, frozen=True, array_like=True):
    """What to import, and into which account.

    Shapes: nothing outside of `within` is read; with `lists` the report names every record, and so
        does this file, before it is stored; the reader of `source` reads, and no other is asked.
    """

    paths: list[Path]
    within: Path
    account: str | None = None
    lists: Path | None = None
    source: str | None = None


def packed(wanted: WantedImport, environment: Mapping[str, str]) -> bytes:
    """It, and all that the command finds its store by."""
    return msgspec.msgpack.encode((wanted, environment), enc_hook=str)


def unpacked(sent: bytes) -> tuple[WantedImport, dict[str, str]]:
    """What was packed."""
    return _DECODER.decode(sent)


def _path_of(kind: Callable[[str], Path], text: str) -> Path:
    return kind(text)


_DECODER = msgspec.msgpack.Decoder(tuple[WantedImport, dict[str, str]], dec_hook=_path_of)
