"""Uploads: files that the owner sends through a browser, on the disk until they are imported.

Rule: bytes are appended where the file ends and nowhere else, so a cut-off upload goes on and two
tabs cannot mix; what an upload is follows from its folder, whichever process looks.  Reading is
left to `pdpp import`, in a process of its own that holds the lock of the upload while it lives.  A
few are read at a time; for the others the server holds their locks, and a file says what waits, so
that it is read by the next server where this one is killed.
Source: docs/contract/authorization-server.md 13.7.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import msgspec
import orjson

from pdpp_kernel.errors import BodyTooLarge, InvalidRequest, InvalidState, NotFound
from pdpp_kernel.refused_writes import data_moved
from pdpp_kernel.system.file_locks import is_locked, try_lock
from personal_server.domain.hidden_characters import shows_all

ABOUT, CONTENT, LOCK, REPORT = "about.json", "content", "lock", "report.json"
WAITING = "waiting.json"
"""The account that an upload is to be imported into, until it is its turn."""
READ_AT_ONCE = 2
"""By one server process: each import is two more, with readers' libraries in memory."""
LOOKS, LOOK_SECONDS = 5, 0.02
MOST_FILES, MOST_UPLOADS, MOST_NAME_BYTES = 20_000, 200, 200
FREE_BYTES = 512 * 1024 * 1024
"""What an upload leaves of the disk."""
GO_ON_SECONDS = 30.0
UNCLEAR = "ambiguous_connection"
_TURNS = threading.Semaphore(READ_AT_ONCE)


class UploadState(StrEnum):
    """What an upload waits for."""

    RECEIVING = "receiving"
    IMPORTING = "importing"
    UNCLEAR = "unclear"
    IMPORTED = "imported"
    FAILED = "failed"


class UploadAbout(msgspec.Struct, frozen=True):
    """What was said of an upload when it began.

    Shapes: `lies_at` is where it lies on this machine, if it was not sent, and `within` the folder
        that it may not lead out of.  Units: `created_at_ns` UTC nanoseconds.
    """

    name: str
    size_bytes: int
    mark: str
    created_at_ns: int
    lies_at: str | None = None
    within: str | None = None


class Upload(msgspec.Struct, frozen=True):
    """One upload as it is now; `report` is what `pdpp import --json` printed."""

    upload_id: str
    about: UploadAbout
    received_bytes: int
    state: UploadState
    report: dict[str, Any]

    @property
    def was_sent(self) -> bool:
        """Whether it came through a browser, and did not lie on this machine before."""
        return self.about.lies_at is None

    @property
    def is_whole(self) -> bool:
        """Whether every byte that was announced is there."""
        return self.received_bytes >= self.about.size_bytes

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What went wrong, each with what to do."""
        lone = self.report.get("error")
        return [lone] if lone else self.report.get("errors", [])


Command = Callable[[Sequence[Path], Path | None, str | None], Sequence[str]]


class Uploads(msgspec.Struct, frozen=True):
    """The uploads of a data directory.

    Shapes: `command` is what imports these paths, reading nothing outside of a folder, into the
        account of that name or id, told to ask rather than to guess.
    Units: `quota_bytes` of all uploads together; 0 switches them off.
    """

    folder: Path
    quota_bytes: int
    command: Command
    environment: Mapping[str, str]
    clock: Callable[[], int]
    random_bytes: Callable[[int], bytes]

    def begin(self, name: str, size_bytes: int, mark: str) -> Upload:
        """A new upload, or the same one where it was cut off.

        Shapes: `mark` tells this very file or folder from others of its name.
        Raises: InvalidRequest, BodyTooLarge before a byte of it was sent.
        """
        name = _checked_name(name)
        for upload in self.each():
            same = (upload.about.name, upload.about.size_bytes, upload.about.mark)
            if upload.state is UploadState.RECEIVING and same == (name, size_bytes, mark):
                return upload
        self._check_room(size_bytes)
        return self._made(UploadAbout(name, size_bytes, mark, self.clock()))

    def take(self, lies_at: Path, within: Path, size_bytes: int, mark: str) -> Upload:
        """What lies on this machine as if it had been sent, or as it was taken before.

        Shapes: `mark` tells it from what lies there at another time.
        Raises: InvalidRequest.
        """
        about = UploadAbout(lies_at.name, size_bytes, mark, self.clock(), str(lies_at), str(within))
        for upload in self.each():
            same = (upload.about.lies_at, upload.about.mark) == (about.lies_at, about.mark)
            if same and upload.state is not UploadState.IMPORTED:
                return upload
        return self._made(about)

    def _made(self, about: UploadAbout) -> Upload:
        if len(self.each()) >= MOST_UPLOADS:
            raise InvalidRequest("There are too many uploads. Delete some first.", param="name")
        upload_id = f"upl_{self.random_bytes(12).hex()}"
        folder = self.folder / upload_id
        self._make_folder()
        _make_private(folder / CONTENT)
        _write(folder / ABOUT, msgspec.json.encode(about))
        return self.one(upload_id)

    def _make_folder(self) -> None:
        """In the data directory as it is: an import would begin anew in one that is made here."""
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except FileNotFoundError:
            raise data_moved() from None

    def _check_room(self, size_bytes: int) -> None:
        """Raises: BodyTooLarge."""
        uploads = [upload for upload in self.each() if upload.about.lies_at is None]
        taken_bytes = sum(max(upload.received_bytes, _promised(upload)) for upload in uploads)
        self._make_folder()
        free = shutil.disk_usage(self.folder).free - FREE_BYTES
        room = min(self.quota_bytes - taken_bytes, free)
        if not 0 <= size_bytes <= room:
            raise BodyTooLarge(
                "The server does not have enough space for this upload.",
                param="size",
                next_step=(
                    "Delete other uploads, raise PDPP_UPLOAD_BYTES, or run pdpp import on"
                    " the server."
                ),
            )

    def each(self) -> list[Upload]:
        """All, the newest first."""
        if not self.folder.is_dir():
            return []
        uploads = [self._read(path) for path in self.folder.iterdir() if (path / ABOUT).is_file()]
        return sorted(uploads, key=lambda upload: -upload.about.created_at_ns)

    def one(self, upload_id: str) -> Upload:
        """Raises: NotFound."""
        return self._read(self._place(upload_id))

    def received(self, upload_id: str, path: str) -> int:
        """How much of a file is there.  Raises: NotFound, InvalidRequest."""
        target = self._target(upload_id, path)
        return target.stat().st_size if target.is_file() else 0

    def append(self, upload_id: str, path: str, begins_at: int, chunk: bytes) -> int:
        """Add bytes where the file ends; how much of it is there now.

        Raises: NotFound, InvalidRequest, InvalidState (they begin elsewhere, or it is being read),
            BodyTooLarge.
        """
        target = self._target(upload_id, path)
        with self._lock(upload_id):
            upload = self.one(upload_id)
            received_bytes = self.received(upload_id, path)
            if begins_at != received_bytes:
                raise InvalidState(
                    "This part does not begin where the upload stopped; received_bytes says where.",
                    received_bytes=received_bytes,
                )
            if upload.received_bytes + len(chunk) > upload.about.size_bytes:
                raise BodyTooLarge("The upload sent more bytes than announced.", param="body")
            _make_private(target.parent)
            if not target.exists() and sum(1 for _ in _files(target.parent)) >= MOST_FILES:
                raise InvalidRequest("The uploaded folder has too many files.", param="path")
            with target.open("ab") as out:
                out.write(chunk)
            return received_bytes + len(chunk)

    def close(self, upload_id: str, name: str) -> None:
        """It is whole as it is: its size was not known before.  Raises: NotFound."""
        upload, folder = self.one(upload_id), self._place(upload_id)
        about = msgspec.structs.replace(
            upload.about, name=_checked_name(name), size_bytes=upload.received_bytes
        )
        _write(folder / ABOUT, msgspec.json.encode(about))

    def start(self, upload_id: str, account: str | None) -> None:
        """Import it, into an account or where it belongs.

        Raises: NotFound, InvalidState where something is missing or it is under way.
        """
        upload, folder = self.one(upload_id), self._place(upload_id)
        if not upload.is_whole or upload.state is UploadState.IMPORTED:
            raise InvalidState("This upload is incomplete, or was imported already.")
        command = self.command(*_whereabouts(upload.about, folder), account)
        with self._lock(upload_id) as lock:
            _write(folder / WAITING, orjson.dumps(account))
            (folder / REPORT).write_bytes(b"")
            lock_copy = os.dup(lock.fileno())  # the lock is let go with the last that is closed
        threading.Thread(
            target=self._import, args=(command, folder, lock_copy), name=upload_id, daemon=True
        ).start()

    def go_on(self) -> None:
        """Read what still waited when a server was killed, and forget the bytes of what was read
        meanwhile.
        """
        for upload in self.each():
            folder = self.folder / upload.upload_id
            if upload.state is UploadState.IMPORTED:
                (folder / WAITING).unlink(missing_ok=True)
                shutil.rmtree(folder / CONTENT, ignore_errors=True)
            elif (folder / WAITING).is_file() and not _is_locked(folder / LOCK):
                with suppress(InvalidState, NotFound, OSError, orjson.JSONDecodeError):
                    self.start(upload.upload_id, orjson.loads((folder / WAITING).read_bytes()))

    def remove(self, upload_id: str) -> None:
        """Raises: NotFound, InvalidState while it is read."""
        folder = self._place(upload_id)
        with self._lock(upload_id):
            shutil.rmtree(folder)

    def _import(self, command: Sequence[str], folder: Path, lock_copy: int) -> None:
        """When it is its turn; what was read lies in the records, and its bytes no longer here."""
        with _TURNS:
            try:
                with (folder / REPORT).open("wb") as report:
                    process = subprocess.Popen(  # noqa: S603 - our own, with paths that we know
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=report,
                        stderr=subprocess.DEVNULL,
                        env=dict(self.environment),
                        pass_fds=[lock_copy],
                        start_new_session=True,
                    )
            finally:
                (folder / WAITING).unlink(missing_ok=True)
                os.close(lock_copy)
            process.wait()
        if _report(folder / REPORT).get("imports"):
            shutil.rmtree(folder / CONTENT, ignore_errors=True)

    def _read(self, folder: Path) -> Upload:
        try:
            about = msgspec.json.decode((folder / ABOUT).read_bytes(), type=UploadAbout)
        except (OSError, msgspec.DecodeError):
            raise _unknown() from None
        is_read = _is_locked(folder / LOCK)  # before its report, which is whole when it is let go
        report = _report(folder / REPORT)
        state = _state(folder, report, is_read=is_read)
        is_there = state is UploadState.IMPORTED or about.lies_at is not None
        received = about.size_bytes if is_there else _size(folder / CONTENT)
        return Upload(folder.name, about, received, state, report)

    def _place(self, upload_id: str) -> Path:
        folder = self.folder / upload_id
        if not upload_id.startswith("upl_") or not upload_id[4:].isalnum() or not folder.is_dir():
            raise _unknown()
        return folder

    def _target(self, upload_id: str, path: str) -> Path:
        parts = PurePosixPath(path).parts
        if not 1 <= len(parts) <= 32:
            raise InvalidRequest("The upload has no file name.", param="path")
        return (self._place(upload_id) / CONTENT).joinpath(*map(_checked_name, parts))

    @contextmanager
    def _lock(self, upload_id: str) -> Generator[IO[bytes]]:
        """One at a time, in any process.  Raises: InvalidState while somebody has it."""
        with (self._place(upload_id) / LOCK).open("ab") as lock:
            if not _take_lock(lock):
                raise InvalidState(
                    "This upload is being imported, or another request is writing to it."
                )
            yield lock


def _whereabouts(about: UploadAbout, folder: Path) -> tuple[list[Path], Path | None]:
    """What is read, and the folder that it may not lead out of."""
    if about.lies_at is None or about.within is None:
        return sorted((folder / CONTENT).iterdir()), None
    return [Path(about.lies_at)], Path(about.within)


def _state(folder: Path, report: dict[str, Any], *, is_read: bool) -> UploadState:
    if is_read and (folder / REPORT).is_file():
        return UploadState.IMPORTING
    if report:
        lone = cast("dict[str, Any]", report.get("error") or {})
        if lone.get("code") == UNCLEAR:
            return UploadState.UNCLEAR
        return UploadState.IMPORTED if report.get("imports") else UploadState.FAILED
    if (folder / WAITING).is_file():  # its server was killed, and the next one goes on
        return UploadState.IMPORTING
    return UploadState.FAILED if (folder / REPORT).is_file() else UploadState.RECEIVING


def _take_lock(lock: IO[bytes]) -> bool:
    """Whether it could be had; whoever only looks whether it is held lets go at once."""
    for _ in range(LOOKS):
        if try_lock(lock):
            return True
        threading.Event().wait(LOOK_SECONDS)
    return False


def _is_locked(path: Path) -> bool:
    with path.open("ab") as lock:
        return is_locked(lock)


def _report(path: Path) -> dict[str, Any]:
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}


def _promised(upload: Upload) -> int:
    return upload.about.size_bytes if upload.state is UploadState.RECEIVING else 0


def _size(folder: Path) -> int:
    """Of all files in it, some of which may go meanwhile."""
    size = 0
    for path in _files(folder):
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def _files(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        yield from (Path(root, name) for name in names)


def _checked_name(name: str) -> str:
    """A name that stays in its folder.  Raises: InvalidRequest."""
    plain = shows_all(name) and len(name.encode()) <= MOST_NAME_BYTES
    if not plain or name in ("", ".", "..") or "/" in name or "\\" in name:
        raise InvalidRequest("The name of the uploaded file is not valid.", param="name")
    return name


def _make_private(folder: Path) -> None:
    """Make a folder with all above it that are missing; `mkdir` gives its mode to the last only."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)


def _write(path: Path, content: bytes) -> None:
    partial = path.with_suffix(".partial")
    partial.write_bytes(content)
    partial.replace(path)


def _unknown() -> NotFound:
    return NotFound("There is no such upload.", next_step="The page Uploads lists all uploads.")
