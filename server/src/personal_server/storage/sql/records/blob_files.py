"""Files of blobs, beside the database: bytes are whole and on the disk before they get a name."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from pdpp_kernel.errors import BodyTooLarge, StorageUnavailable
from pdpp_kernel.refused_writes import REASON_OF_ERRNO, data_moved, read_only
from pdpp_kernel.texts import message

PREFIX = "blob_sha256_"
_log = logging.getLogger(__name__)


def blob_path(directory: Path, blob_id: str) -> Path:
    """`ab/<sha256>` below the blob directory."""
    digest = blob_id.removeprefix(PREFIX)
    return directory / digest[:2] / digest


def digest_of(content: BufferedReader) -> str:
    """The SHA-256 of a file that is at its beginning, in hex."""
    return hashlib.file_digest(content, "sha256").hexdigest()


def is_damaged(directory: Path, blob_id: str) -> bool:
    """Whether bytes that are there are others than were stored."""
    try:
        with blob_path(directory, blob_id).open("rb") as content:
            return digest_of(content) != blob_id.removeprefix(PREFIX)
    except FileNotFoundError:
        return False


def receive_file(directory: Path, chunks: Iterable[bytes], max_bytes: int) -> tuple[Path, str, int]:
    """Stream bytes into a scratch file: its path, the blob id, the size."""
    try:
        directory.mkdir(exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(prefix="incoming-", dir=directory)
    except OSError as error:
        raise _unwritable(error) from error
    scratch = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            digest, size = _copy(chunks, file, max_bytes)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise _unwritable(error) from error
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    return scratch, PREFIX + digest, size


def put_in_place(directory: Path, named: Iterable[tuple[Path, str]]) -> None:
    """Give received bytes their names."""
    parents: dict[Path, None] = {}
    try:
        for scratch, blob_id in named:
            path = blob_path(directory, blob_id)
            path.parent.mkdir(exist_ok=True, mode=0o700)
            scratch.replace(path)
            parents[path.parent] = None
    except OSError as error:
        raise _unwritable(error) from error
    keep_on_disk([*parents, directory])


def keep_on_disk(paths: Iterable[Path]) -> None:
    """Wait until files, and which files folders have, are on the disk."""
    try:
        for path in paths:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise _unwritable(error) from error


def stray_files(directory: Path, before_ns: int) -> list[Path]:
    """Scratch files and blobs of interrupted uploads or removals, by their age."""
    if not directory.is_dir():
        return []
    return [path for path in directory.rglob("*") if _is_file_before(path, before_ns)]


def _is_file_before(path: Path, before_ns: int) -> bool:
    """Whether it is an old file; one that vanished meanwhile, as uploads do, is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_mtime_ns < before_ns


def remove_files(paths: Iterable[Path]) -> None:
    """Remove every file that can be.  Raises: StorageUnavailable, when some could not."""
    failures = 0
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            failures += 1
    if failures:
        raise StorageUnavailable(
            message(
                "The server cannot remove %(num)s files from the blob directory. "
                "Check who owns them.",
                num=str(failures),
            )
        )


def _copy(chunks: Iterable[bytes], file: BinaryIO, max_bytes: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise BodyTooLarge(f"A blob can have at most {max_bytes} bytes.", param="body")
        digest.update(chunk)
        file.write(chunk)
    return digest.hexdigest(), size


def _unwritable(error: OSError) -> StorageUnavailable:
    kind = errno.errorcode.get(error.errno or 0, "an unknown error")
    _log.error("the blob directory cannot be written: %s", kind)
    if error.errno in REASON_OF_ERRNO:
        return read_only(REASON_OF_ERRNO[error.errno])
    if error.errno == errno.ENOENT:
        return data_moved()
    return StorageUnavailable(
        ("The server cannot write to the blob directory. Check who owns the directory."),
        retry_after_seconds=30,
    )
