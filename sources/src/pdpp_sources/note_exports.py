"""What programs say of notes beside their text: Bear's bundles, and Apple's copy of its Notes.

Source: textbundle.org, importers of Bear's backups (obsidianmd/obsidian-importer), and readers of
what Apple gives out (streetwriters/notesnook-importer#273 and published readers of
`Notes Details.csv`). Apple's days are month first, and are read as UTC, as those readers do.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from io import StringIO
from pathlib import PurePosixPath

import msgspec

from pdpp_kernel.source_item import Data, Json
from pdpp_kernel.texts import message
from pdpp_sources.common import json_values
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.json_stream import parse_object
from pdpp_sources.common.source import matching
from pdpp_sources.common.text import decoded
from pdpp_sources.common.times import rendered

_LARGEST_INFO_BYTES, _LARGEST_LIST_BYTES = 1024 * 1024, 16 * 1024 * 1024
_BUNDLE, _INFO, _TEXT = ".textbundle", "info.json", "text"
_BEAR = "net.shinyfrog.bear"
_LIST = "Notes Details.csv"
_LIST_BEGINS = re.compile(rb'(?:\xef\xbb\xbf)?"?Title"?,\s*"?Created On"?,\s*"?Modified On')
_WRITTEN = "%m-%d-%Y %H:%M:%S"
_KEPT, _DELETED = "Notes", "Recently Deleted"
# A note of a title that another has already is called `Bread-1.txt`.
_NUMBER = re.compile(r"-\d{1,4}$")
_TICKED = re.compile(r"^\t([\u25e6\u2713])\t", re.MULTILINE)
_OBJECT = "\ufffc"  # where a picture stands


class NoteFacts(msgspec.Struct, frozen=True):
    """What is known of a note from elsewhere; `fault` is why that cannot be read.

    Shapes: `dates` has `created` and `modified`, as front matter calls them; `own` is the program's
        id of the note; `folder` is where the program keeps it, None for where its file lies;
        `status` is `archived`, `deleted`.
    """

    dates: Data = msgspec.field(default_factory=dict[str, Json])
    name: str | None = None
    own: str | None = None
    folder: str | None = None
    status: str | None = None
    is_plain: bool = False
    fault: tuple[str, str] | None = None


NOTHING = NoteFacts()


class NoteExports:
    """Which files of an export are of notes that a program tells more of, and what."""

    def __init__(self, export: Export) -> None:
        self._members = {member.name: member for member in export.members}
        named = (m for m in export.members if PurePosixPath(m.name).name == _LIST)
        lists = matching(export.only(named), _LIST_BEGINS.match)
        self._apple = {PurePosixPath(member.name).parent: member for member in lists}
        self._bundles = {
            folder
            for member in export.members
            if (folder := PurePosixPath(member.name).parent).suffix.lower() == _BUNDLE
            and PurePosixPath(member.name).stem == _TEXT
        }
        self._listed: dict[PurePosixPath, dict[str, list[list[str]]] | tuple[str, str]] = {}
        self._titles: Counter[tuple[PurePosixPath, str]] | None = None

    @property
    def members(self) -> Iterable[ExportMember]:
        """All files of such notes, and those that tell of them."""
        return (m for m in self._members.values() if self._is_theirs(PurePosixPath(m.name)))

    def is_note(self, member: ExportMember) -> bool:
        """Whether a file is the text of such a note, whatever its ending."""
        path = PurePosixPath(member.name)
        if path.parent in self._bundles:
            return path.stem == _TEXT
        return path.suffix.lower() == ".txt" and self._root_of(path) is not None

    def tells_of_notes(self, member: ExportMember) -> bool:
        """Whether a file holds no more than what is told of notes, and is read with them."""
        path = PurePosixPath(member.name)
        is_info = path.name == _INFO and path.parent in self._bundles
        return is_info or (path.name == _LIST and path.parent in self._apple)

    def facts_of(self, member: ExportMember) -> NoteFacts:
        """What is told of a note."""
        path = PurePosixPath(member.name)
        if path.parent in self._bundles:
            return self._of_bundle(path)
        root = self._root_of(path)
        return self._of_apple(member, root) if root is not None else NOTHING

    def _is_theirs(self, path: PurePosixPath) -> bool:
        if path.name == _LIST and path.parent in self._apple:
            return True
        return self._root_of(path) is not None or not self._bundles.isdisjoint(path.parents)

    def _root_of(self, path: PurePosixPath) -> PurePosixPath | None:
        """The folder of Apple's list, where a file is of a note in it: `Notes/Bread/Bread.txt`."""
        root = next((folder for folder in path.parents if folder in self._apple), None)
        inside = () if root is None else path.relative_to(root).parts
        return root if len(inside) > 2 and inside[0] in (_KEPT, _DELETED) else None

    def _of_bundle(self, path: PurePosixPath) -> NoteFacts:
        bundle = path.parent
        folder = str(bundle.parent) if bundle.parent.name else ""
        info = self._members.get(str(bundle / _INFO))
        if info is None:
            return NoteFacts(name=bundle.stem, folder=folder)
        try:
            with info.open() as stream:
                value = parse_object(stream.read(_LARGEST_INFO_BYTES))
        except (MemberDamaged, BadRecord):
            fault = (info.name, message("what the program tells of the note cannot be read"))
            return NoteFacts(name=bundle.stem, folder=folder, fault=fault)
        bear = json_values.inner(value, _BEAR)
        dates: Data = {
            "created": bear.get("creationDate"),
            "modified": bear.get("modificationDate"),
        }
        gone, kept = (bool(bear.get(name)) for name in ("trashed", "archived"))
        status = "deleted" if gone else "archived" if kept else None
        own = json_values.line(bear, "uniqueIdentifier")
        return NoteFacts(dates, bundle.stem, own, folder, status)

    def _of_apple(self, member: ExportMember, root: PurePosixPath) -> NoteFacts:
        path = PurePosixPath(member.name)
        inside = path.relative_to(root)
        title = self._title(path.stem, path.parent.name)
        is_alone = self._count_of(root, title) == 1
        listed = self._list_of(root)
        dates, fault = dict[str, Json](), None
        if isinstance(listed, tuple):
            fault = listed
        else:
            if title not in listed and (first := _first_line(member)) in listed:
                title = first  # what no file may be called, such as `Bread/Rye`
            rows = listed.get(title, [])
            if len(rows) == 1 and is_alone:
                dates = {"created": _instant(rows[0][1]), "modified": _instant(rows[0][2])}
            else:
                reason = message("which line of the list tells of this note is not known")
                fault = (str(path), reason)
        return NoteFacts(
            dates,
            title,
            folder="/".join(inside.parts[1:-2]),
            status="deleted" if inside.parts[0] == _DELETED else None,
            is_plain=True,
            fault=fault,
        )

    def _title(self, stem: str, folder: str) -> str:
        """The title, which the folder of the note has, too."""
        return folder if _NUMBER.sub("", stem) == folder else stem

    def _count_of(self, root: PurePosixPath, title: str) -> int:
        if self._titles is None:
            paths = (PurePosixPath(name) for name in self._members)
            self._titles = Counter(
                (of, self._title(path.stem, path.parent.name))
                for path in paths
                if path.suffix.lower() == ".txt" and (of := self._root_of(path)) is not None
            )
        return self._titles[root, title]

    def _list_of(self, root: PurePosixPath) -> dict[str, list[list[str]]] | tuple[str, str]:
        """The lines of Apple's list by their titles, or why it cannot be read."""
        if root not in self._listed:
            member = self._apple[root]
            try:
                with member.open() as stream:
                    content = stream.read(_LARGEST_LIST_BYTES)
                lines: dict[str, list[list[str]]] = {}
                for row in csv.reader(StringIO(decoded(content), newline="")):
                    if len(row) > 2:
                        lines.setdefault(row[0].strip(), []).append(row)
                self._listed[root] = lines
            except (MemberDamaged, csv.Error):
                reason = message("what the program tells of the note cannot be read")
                self._listed[root] = (member.name, reason)
        return self._listed[root]


def as_markdown(text: str) -> str:
    """Plain text of Apple's with its ticked lines as Markdown, and without marks of pictures."""
    marks = {"\u25e6": "- [ ] ", "\u2713": "- [x] "}
    return _TICKED.sub(lambda match: marks[match[1]], text).replace(_OBJECT, "")


def _first_line(member: ExportMember) -> str:
    try:
        return decoded(member.head()).lstrip().partition("\n")[0].strip()
    except MemberDamaged:
        return ""


def _instant(text: str) -> str | None:
    try:
        return rendered(datetime.strptime(text.strip(), _WRITTEN).replace(tzinfo=UTC))
    except ValueError:
        return None
