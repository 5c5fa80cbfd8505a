"""Why a disk takes no writes, and how that is said.  Pure.

Source: docs/contract/resource-server.md 1.10.
"""

from __future__ import annotations

import errno

from pdpp_kernel.errors import StorageReadOnly, StorageUnavailable
from pdpp_kernel.texts import message

DISK_FULL, READ_ONLY, WRITE_FAILED, DISK_LOW = "disk_full", "read_only", "write_failed", "disk_low"
DATA_MOVED = "data_moved"
REASON_OF_ERRNO = {
    errno.ENOSPC: DISK_FULL,
    errno.EDQUOT: DISK_FULL,
    errno.EFBIG: DISK_FULL,
    errno.EROFS: READ_ONLY,
    errno.EIO: WRITE_FAILED,
}
SENTENCES = {
    DISK_FULL: message(
        "The disk is full, so the server cannot write anything. Free some space. "
        "Reading and exporting still work."
    ),
    READ_ONLY: message(
        "The disk is read-only, so the server cannot write anything. Make the disk "
        "writable and start the server again. Reading and exporting still work."
    ),
    WRITE_FAILED: message(
        "The disk refuses writes. Check the disk and copy the data directory. "
        "Reading and exporting still work."
    ),
    DISK_LOW: message("The disk of the data directory is almost full. Free some space."),
    DATA_MOVED: message(
        "The data directory, or the database in it, was moved or replaced while "
        "the server was running. Stop the server, put the directory back with all "
        "its files, and start the server again."
    ),
}


def read_only(reason: str) -> StorageReadOnly:
    """The refusal of a write."""
    retry = None if reason == READ_ONLY else 30
    return StorageReadOnly(SENTENCES[reason], reason=reason, retry_after_seconds=retry)


def data_moved() -> StorageUnavailable:
    """The refusal of what would lie where the data no longer is."""
    return StorageUnavailable(SENTENCES[DATA_MOVED])


def refusal_of(error: OSError) -> StorageUnavailable:
    """What is said when a file beside the database cannot be written."""
    if error.errno in REASON_OF_ERRNO:
        return read_only(REASON_OF_ERRNO[error.errno])
    return StorageUnavailable(
        "The server cannot use the data directory. Check that the directory in "
        "PDPP_DATA_DIR belongs to you and is writable."
    )
