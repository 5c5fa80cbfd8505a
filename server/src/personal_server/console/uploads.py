"""Bringing records in from a browser: uploads, folders of this machine, what became of each.

Source: docs/contract/authorization-server.md 13.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
import orjson
from starlette.responses import Response

from pdpp_kernel import persons
from pdpp_kernel.errors import InvalidRequest, InvalidState, NotFound
from pdpp_kernel.texts import Text, listed, message, parse_text
from personal_server.collecting.import_folders import FolderListing, ImportFolders
from personal_server.collecting.uploads import Upload, Uploads, UploadState
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.static_files import UPLOADS
from personal_server.console.words import declared_name
from personal_server.domain.connection import ConnectionStatus
from personal_server.storage.catalog import Catalogs
from personal_server.web.forms import take_files
from personal_server.web.replies import NO_STORE
from personal_server.web.routes import BodyRule

ROOT = "/owner/uploads"
CHUNK_BYTES = 8 * 1024 * 1024
EXAMPLES_SHOWN, MOST_DIGITS = 5, 4
Exports = Callable[[], Sequence[Mapping[str, Any]]]
"""What can be imported: `name` and `how_to_export` of each source."""

Recognized = Callable[[FolderListing], Mapping[str, str]]
"""What the files of a listing are, by name: empty where nothing reads one."""

STATE_WORDS = {
    UploadState.RECEIVING: ("warn", message("incomplete")),
    UploadState.IMPORTING: ("", message("importing")),
    UploadState.UNCLEAR: ("warn", message("waiting for your answer")),
    UploadState.IMPORTED: ("good", message("imported")),
    UploadState.FAILED: ("bad", message("failed")),
}


UNREAD_WORDS = {
    "unknown": message("unknown file format"),
    "unreadable": message("damaged file: download or copy it again"),
    "costly": message("would take too long or need too much memory"),
    "archives": message("an archive inside the archive: unpack it and import its content"),
    "wide": message("written in UTF-16: save the file as UTF-8"),
    "views": message("part of a Notion database that another file contains in full"),
    "tables": message("a table: import this file on its own to add the table"),
    "empty": message("empty"),
    "hidden": message("hidden file: the name begins with a dot"),
    "links": message("a link or a special file: import the file that the link points to"),
}
UNREAD_ALIKE = message("looks like an export, but has an unusual beginning or name")
"""Why files of an upload were not read, by the word of the report."""


class UploadView(msgspec.Struct, frozen=True):
    """An upload with its state in words."""

    upload: Upload
    kind: str
    state: Text

    @property
    def percent(self) -> int:
        """How much of it is there."""
        return 100 * self.upload.received_bytes // max(1, self.upload.about.size_bytes)

    @property
    def is_under_way(self) -> bool:
        """Whether it changes by itself."""
        return self.upload.state is UploadState.IMPORTING

    @property
    def can_start(self) -> bool:
        """Whether it waits for nothing but to be read."""
        waits = (UploadState.RECEIVING, UploadState.FAILED, UploadState.UNCLEAR)
        return self.upload.is_whole and self.upload.state in waits


class UploadParts(msgspec.Struct, frozen=True):
    """What these pages stand on.

    Shapes: `folders` are those of this machine that imports may come from, none over a network.
    """

    uploads: Uploads
    exports: Exports
    folders: ImportFolders
    recognized: Recognized

    @property
    def are_on(self) -> bool:
        """Whether anything can come in here."""
        return self.uploads.quota_bytes > 0 or bool(self.folders.folders)


class FolderView(msgspec.Struct, frozen=True):
    """One of the folders, with what lies there or why that is not known."""

    number: int
    name: str
    listing: FolderListing | None = None
    problem: str | None = None
    next_step: str | None = None
    kinds: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def above(self) -> str | None:
        """The folder that this one lies in, if it lies in one."""
        path = "" if self.listing is None else self.listing.path
        return path.rpartition("/")[0] if path else None


class UploadPages(msgspec.Struct, frozen=True):
    """`/owner/uploads`: the list, one of them, and what their buttons do."""

    parts: UploadParts
    catalogs: Catalogs
    pages: Templates

    @property
    def uploads(self) -> Uploads:
        """What was sent, or taken from a folder."""
        return self.parts.uploads

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        upload_route = f"{ROOT}/{{upload_id}}"
        return (
            (
                PageRoute("GET", ROOT, self.show),
                PageRoute("GET", f"{ROOT}/exports", self.show_exports),
                *(self._sending() if self.uploads.quota_bytes else ()),
                *(self._taking() if self.parts.folders.folders else ()),
                PageRoute("GET", upload_route, self.show_one),
                PageRoute("POST", f"{upload_route}/import", self.start),
                PageRoute("POST", f"{upload_route}/remove", self.remove),
            )
            if self.parts.are_on
            else ()
        )

    def _taking(self) -> tuple[PageRoute, ...]:
        return (
            PageRoute("GET", f"{ROOT}/folders", self.show_folders, frozenset({"folder", "path"})),
            PageRoute("POST", f"{ROOT}/folders", self.take),
        )

    def _sending(self) -> tuple[PageRoute, ...]:
        upload_route = f"{ROOT}/{{upload_id}}"
        folder = self.uploads.folder
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        whole = BodyRule((), self.uploads.quota_bytes, spooled=True, spool_folder=str(folder))
        piece = BodyRule((), CHUNK_BYTES)
        at = frozenset({"path", "from"})
        return (
            PageRoute("POST", ROOT, self.begin),
            PageRoute("POST", f"{ROOT}/form", self.take_form, takes=whole),
            PageRoute("POST", f"{upload_route}/bytes", self.append, at, takes=piece),
        )

    def show(self, visit: PageRequest) -> Response:
        """All uploads, and a place to drop another."""
        values = {
            "uploads": [_view(upload) for upload in self.uploads.each()],
            "quota_bytes": self.uploads.quota_bytes,
            "folders": self.parts.folders.folders,
            "chunk_bytes": CHUNK_BYTES,
            "csrf": visit.owner().csrf,
        }
        return self.pages.show(visit, "uploads.html", values, script=UPLOADS)

    def show_exports(self, visit: PageRequest) -> Response:
        """How to get the export of each source."""
        return self.pages.show(visit, "exports.html", {"exports": self.parts.exports()})

    def show_folders(self, visit: PageRequest) -> Response:
        """What lies in the folders that imports may come from, or in one further down.

        Raises: NotFound.
        """
        folder_name, path = visit.query.get("folder"), visit.query.get("path") or ""
        numbers = (
            range(len(self.parts.folders.folders))
            if folder_name is None
            else [_number(folder_name)]
        )
        values = {
            "folders": [self._folder(number, path if folder_name else "") for number in numbers],
            "csrf": visit.owner().csrf,
        }
        return self.pages.show(visit, "import_folders.html", values)

    def _folder(self, number: int, path: str) -> FolderView:
        try:
            listing = self.parts.folders.listing(number, path)
        except (NotFound, InvalidState) as error:
            if path or number >= len(self.parts.folders.folders):
                raise
            name = str(self.parts.folders.folders[number])
            step = str(error.members.get("next_step") or "")
            return FolderView(number, name, None, error.text, step)
        name = str(listing.folder / listing.path)
        return FolderView(number, name, listing, kinds=self.parts.recognized(listing))

    def take(self, visit: PageRequest) -> Response:
        """Read what lies in a folder, where it lies.  Raises: NotFound, InvalidState."""
        path = visit.value("path") or ""
        folder, entry = self.parts.folders.find(_number(visit.value("folder") or ""), path)
        mark = f"{entry.size_bytes} {entry.modified_at_ns}"
        upload = self.uploads.take(folder / path, folder, entry.size_bytes, mark)
        self.uploads.start(upload.upload_id, None)
        return self.pages.go(visit, f"{ROOT}/{upload.upload_id}")

    def show_one(self, visit: PageRequest) -> Response:
        """What became of it.  Raises: NotFound."""
        view = _view(self.uploads.one(visit.path["upload_id"]))
        # the source is known where an account of it must be chosen; a derived one takes no import
        source = next((each.get("connector_key") for each in view.upload.errors), None)
        catalog = self.catalogs()
        names = {
            source_id: declared_name(d.display_name)
            for source_id, d in catalog.declarations.items()
        }
        accounts = [
            (c.connection_id, c.display_name or c.connection_id, names.get(c.source_id, ""))
            for c in catalog.connections
            if c.status is not ConnectionStatus.REVOKED
            and c.connector_key != persons.CONNECTOR_KEY
            and source in (None, c.connector_key)
        ]
        values = {
            "view": view,
            "imports": told(view.upload.report.get("imports", [])),
            "errors": told(view.upload.errors),
            "unread": list(_unread(view.upload.report)),
            "examples": EXAMPLES_SHOWN,
            "accounts": accounts,
            "chunk_bytes": CHUNK_BYTES,
            "csrf": visit.owner().csrf,
        }
        return self.pages.show(visit, "upload.html", values)

    def begin(self, visit: PageRequest) -> Response:
        """For the script: a new upload, or the one that was cut off.

        Raises: InvalidRequest, BodyTooLarge.
        """
        size = visit.value("size") or ""
        if not size.isdecimal():
            raise InvalidRequest("Give the size of the upload.", param="size")
        mark = (visit.value("mark") or "")[:200]
        upload = self.uploads.begin(visit.value("name") or "", int(size), mark)
        return _json({"upload_id": upload.upload_id, "received_bytes": upload.received_bytes})

    def append(self, visit: PageRequest) -> Response:
        """For the script: the next bytes of a file.

        Raises: NotFound, InvalidRequest, InvalidState (with `received_bytes`), BodyTooLarge.
        """
        begins_at = visit.query.get("from", "")
        if not begins_at.isdecimal():
            raise InvalidRequest("Give the position at which these bytes begin.", param="from")
        path = visit.query.get("path", "")
        upload_id = visit.path["upload_id"]
        received_bytes = self.uploads.append(upload_id, path, int(begins_at), visit.body)
        return _json({"received_bytes": received_bytes})

    def take_form(self, visit: PageRequest) -> Response:
        """Without a script: a form with files, read at once.

        Raises: InvalidRequest (no file, or it ended early), BodyTooLarge.
        """
        spool = visit.spool
        if spool is None:
            raise InvalidRequest("The request must be a form with files.", param="file")
        size = spool.seek(0, 2)
        name = visit.value("name") or "upload"
        upload = self.uploads.begin(name, size, visit.request_id)
        received: dict[str, int] = {}

        def take(name: str, piece: bytes) -> None:
            path = name.replace("\\", "/").rpartition("/")[2]
            at = received.get(path, 0)
            received[path] = self.uploads.append(upload.upload_id, path, at, piece)

        try:
            take_files(spool, visit.content_type, take)
            if not received:
                raise InvalidRequest("Choose a file first.", param="file")
        except BaseException:
            self.uploads.remove(upload.upload_id)
            raise
        self.uploads.close(upload.upload_id, next(iter(received)))
        self.uploads.start(upload.upload_id, None)
        return self.pages.go(visit, f"{ROOT}/{upload.upload_id}")

    def start(self, visit: PageRequest) -> Response:
        """Read it, into the account that was chosen.  Raises: NotFound, InvalidState."""
        chosen = visit.value("account") or None
        name = (visit.value("name") or "").strip()
        if chosen == "new" and not name:
            raise InvalidRequest("Give the new account a name.", param="name")
        upload_id = visit.path["upload_id"]
        self.uploads.start(upload_id, name if chosen == "new" else chosen)
        return self.pages.go(visit, f"{ROOT}/{upload_id}")

    def remove(self, visit: PageRequest) -> Response:
        """Forget it, with what lies here of it.  Raises: NotFound, InvalidState."""
        self.uploads.remove(visit.path["upload_id"])
        return self.pages.go(visit, ROOT)


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > MOST_DIGITS:
        raise NotFound("There is no such folder.", next_step="Go back to the list of folders.")
    return int(text)


def told(value: Any) -> Any:
    """A report whose sentences are texts again."""
    if isinstance(value, list):
        return [told(element) for element in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    texts = {name: parse_text(text) for name, text in members.get("texts", {}).items()}
    return {name: told(value) for name, value in members.items() if name != "texts"} | texts


def _view(upload: Upload) -> UploadView:
    return UploadView(upload, *STATE_WORDS[upload.state])


def _unread(report: Mapping[str, Any]) -> Iterator[tuple[Text, int, Text]]:
    """Why files were not read, how many, and their names."""
    for unread in report.get("not_read", []):
        for sort, files in unread.items():
            if sort != "path":
                reason = UNREAD_WORDS.get(sort, UNREAD_ALIKE)
                yield reason, files["count"], listed(files["files"])


def _json(value: object) -> Response:
    return Response(orjson.dumps(value), 200, NO_STORE, "application/json")
