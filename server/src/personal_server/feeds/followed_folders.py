"""What becomes of records whose notes went from a folder, where its owner has that followed.

Rule: pure.  Only what the folder itself brought goes, and only where it was read to its end.
Source: docs/contract/feeds.md 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import msgspec

EMPTIED = "folder_emptied"
MOST_GONE = 20
"""So many may go at once, however few are left."""
NOTES = (".md", ".markdown", ".mdown")
# Before the names of notes that were not read, among those of records.
_UNREAD = "?/"
_SLASHES = 2  # between account, stream and key
# Told of entries that were read all the same, or that are in another one.
_READ = frozenset({"duplicate", "before_header"})


class FollowedRecords(Protocol):
    """Deletes records that a folder brought."""

    def delete(self, account: str, stream: str, keys: Iterable[str]) -> int:
        """Delete those that are there; how many."""
        ...


class FollowedFolder(msgspec.Struct, frozen=True):
    """The records of a folder, each as `ACCOUNT/STREAM/KEY`.

    Shapes: `kept` are those that the ledger names from now on, with the notes that were not read,
        of which the first time costs no record; `gone` those that are to be deleted;
        `is_emptied` where so many would go that their owner is asked first.
    """

    kept: tuple[str, ...]
    gone: tuple[str, ...] = ()
    is_emptied: bool = False


def followed(
    before: Iterable[str], report: Mapping[str, Any], *, asked: bool, rests: bool
) -> FollowedFolder:
    """Compare what the ledger names with what an import read.

    In: `("cin_1/notes/a", "cin_1/notes/b")` and a report of `a` and `c`.  Out: `a` and `c` are
    kept, `b` is gone.
    Shapes: `asked` where the owner asked for the run; `rests` where nothing changed in the folder
        while it was read.
    """
    named, there, unread = set(before), set(_named(report)), set(_unread(report))
    known = {name for name in named if not name.startswith(_UNREAD)}
    gone = known - there
    is_emptied = rests and len(gone) > max(MOST_GONE, len(there)) and not asked
    if is_emptied or unread - named or not (rests and _is_complete(report)):
        kept = known | there | unread
        return FollowedFolder(tuple(sorted(kept)), is_emptied=is_emptied)
    return FollowedFolder(tuple(sorted(there | unread)), tuple(sorted(gone)))


def by_stream(names: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """The keys of names, by account and stream."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in names:
        account, stream, key = name.split("/", 2)
        found.setdefault((account, stream), []).append(key)
    return found


def whole_names(written: bytes) -> list[str]:
    r"""The names in a file of imports, without what one wrote that was killed within a name.

    In: `b"cin_1/notes/a\ncin_1/no"`.  Out: `["cin_1/notes/a"]`.
    """
    lines = (line.decode(errors="ignore") for line in written.split(b"\n"))
    return [line for line in lines if line.count("/") >= _SLASHES]


def _named(report: Mapping[str, Any]) -> Iterator[str]:
    for each in report.get("imports", ()):
        if each.get("connection"):
            account = each["connection"]["connection_id"]
            for stream, keys in each["records"].items():
                yield from (f"{account}/{stream}/{key}" for key in keys)


def _unread(report: Mapping[str, Any]) -> Iterator[str]:
    """Notes that no reader took, as one that is empty for a moment while it is saved."""
    for each in report.get("not_read", ()):
        for sort, files in each.items():
            if sort != "path":
                notes = (name for name in files["files"] if str(name).endswith(NOTES))
                yield from (f"{_UNREAD}{name}" for name in notes)


def _is_complete(report: Mapping[str, Any]) -> bool:
    """Whether every entry of the folder was read."""
    imports = report.get("imports", ())
    passed_over = {str(skipped["code"]) for each in imports for skipped in each["skipped"]}
    rejected = any(stream["rejected"] for each in imports for stream in each["streams"].values())
    return bool(imports) and not (report.get("errors") or rejected or passed_over - _READ)
