"""Which looks at a mailbox, in a row, were over all of its folders."""

from __future__ import annotations

import pytest

from pdpp_sources.mailbox_messages import FolderSeen
from personal_server.app.mailbox_folders import WholeLooks

FOLDERS = [FolderSeen(name, [], None) for name in ("INBOX", "Work")]
KEPT = WholeLooks.with_one("", 4, FOLDERS)._replace(first=2)


@pytest.mark.parametrize(
    ("kept", "turn", "folders", "first"),
    [
        (KEPT.text, 5, FOLDERS, 2),
        (KEPT.text, 4, FOLDERS, 2),  # again, since it was killed
        (KEPT.text, 6, FOLDERS, 6),
        (KEPT.text, 5, FOLDERS[:1], 5),
        ("", 5, FOLDERS, 5),
        ("of.another.form", 5, FOLDERS, 5),
    ],
)
def test_looks_in_a_row_are_at_the_same_folders_without_a_gap(
    kept: str, turn: int, folders: list[FolderSeen], first: int
) -> None:
    looks = WholeLooks.with_one(kept, turn, folders)
    assert (looks.first, looks.last) == (first, turn)
    assert [looks.were(turn - first + count) for count in (1, 2)] == [True, False]
