"""What came of a mail before the connection was cut, so that the next look asks for the rest only.

Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import orjson

from pdpp_sources.mailbox_messages import FolderMark

ENDING = ".part"


class MailParts(msgspec.Struct, frozen=True):
    """A file with the beginning of one mail, behind a line that says which."""

    path: Path

    def begun(
        self, folder: str, mark: FolderMark | None, uids: Sequence[int]
    ) -> tuple[list[int], bytes]:
        """The UIDs to fetch, and what is here of the first of them."""
        if mark is None or not self.path.is_file():
            return list(uids), b""
        head, _, content = self.path.read_bytes().partition(b"\n")
        for uid in uids:
            if head == _head(folder, mark, uid):
                self.path.unlink()
                return [uid, *(each for each in uids if each != uid)], content
        return list(uids), b""

    def keep(self, folder: str, mark: FolderMark | None, uid: int, content: bytes) -> None:
        """Keep the beginning of a mail."""
        if mark is None or not content:
            return
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        self.path.touch(mode=0o600)
        self.path.write_bytes(_head(folder, mark, uid) + b"\n" + content)


def _head(folder: str, mark: FolderMark, uid: int) -> bytes:
    return orjson.dumps([folder, mark.uidvalidity, uid])
