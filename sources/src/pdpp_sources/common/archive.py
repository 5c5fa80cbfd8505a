"""Which entries of a zip archive may be read: bounded in size, harmless in name."""

from __future__ import annotations

import re
import stat
import struct
import zipfile
from collections.abc import Callable
from typing import BinaryIO

from pdpp_kernel.source_item import Skipped
from pdpp_kernel.texts import message
from pdpp_sources.common.errors import ExportUnsafe

MOST_ENTRIES = 500_000
LARGEST_DIRECTORY_BYTES = 192 * 1024 * 1024
LARGEST_TOTAL_RATIO = 120
LARGEST_ENTRY_RATIO = 300
SMALL_ENTRY_BYTES = 16 * 1024 * 1024
LONGEST_NAME_CHARS = 2048
READABLE_METHODS = frozenset(
    {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA}
)
_LEADS_OUT = re.compile(r"(^$)|(^[/\\])|(^[A-Za-z]:)|(\\)|((^|/)\.\.(/|$))|[\x00-\x1f]")
NOISE = re.compile(r"(^|/)(__MACOSX/|\.DS_Store$|Thumbs\.db$)")
_LOCAL_HEADER_BYTES = 30
_LOCAL_LENGTHS_AT = 26  # of the name and of what is beyond it
_END_BYTES = 22
_END_SIGNATURE = b"PK\x05\x06"
_END_64_BYTES = 56
_LOCATOR_64_BYTES = 20
_BEYOND_32_BITS = 0xFFFFFFFF


def check_directory(stream: BinaryIO, size_bytes: int) -> None:
    """Look how long the table of contents is before anybody loads it.

    Source: PKWARE APPNOTE 4.3.14 to 4.3.16.
    Raises: ExportUnsafe; OSError and struct.error where the file is none.
    """
    tail_bytes = min(size_bytes, _END_BYTES + 0xFFFF + _LOCATOR_64_BYTES + _END_64_BYTES)
    stream.seek(size_bytes - tail_bytes)
    tail = stream.read(tail_bytes)
    end = tail.rfind(_END_SIGNATURE)
    if end < 0:
        return
    (length,) = struct.unpack_from("<L", tail, end + 12)
    record = end - _LOCATOR_64_BYTES - _END_64_BYTES
    if length == _BEYOND_32_BITS and record >= 0:
        (length,) = struct.unpack_from("<Q", tail, record + 40)
    if length > LARGEST_DIRECTORY_BYTES:
        raise too_many_entries()


def safe_entries(archive: zipfile.ZipFile) -> tuple[list[zipfile.ZipInfo], tuple[Skipped, ...]]:
    """The entries that may be read, and a report of those that may not.

    Raises: ExportUnsafe, if the archive as a whole is out of proportion.
    """
    entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
    if len(entries) > MOST_ENTRIES:
        raise too_many_entries()
    _check_proportion(entries)
    overlapping = _overlapping(entries, archive.start_dir)
    safe: dict[str, zipfile.ZipInfo] = {}
    refused: list[Skipped] = []
    for entry in entries:
        if NOISE.search(entry.filename) or _mode(entry) == stat.S_IFDIR:
            continue
        reason = refusal_of_name(entry.filename) or next(
            (reason for applies, reason in _REFUSALS if applies(entry)), None
        )
        if id(entry) in overlapping:
            reason = message("the file would overwrite another file of the archive")
        if entry.filename in safe:
            reason = message("the archive contains a second file of the same name")
        if reason is None:
            safe[entry.filename] = entry
        else:
            name = "".join(c if c.isprintable() else "?" for c in entry.filename)[:200]
            refused.append(Skipped(name, "unsafe_entry", reason, 0))
    return list(safe.values()), tuple(refused)


def too_many_entries() -> ExportUnsafe:
    """What is said of an archive that lists files without end."""
    return ExportUnsafe(
        message("The archive lists more than %(most)s files.", most=MOST_ENTRIES),
        "Unpack the archive yourself and import the folder, if you trust the archive.",
    )


def _check_proportion(entries: list[zipfile.ZipInfo]) -> None:
    packed = sum(entry.compress_size for entry in entries)
    unpacked = sum(entry.file_size for entry in entries)
    check_total(unpacked, packed)


def unpacks_out_of_proportion() -> ExportUnsafe:
    """What is said of an archive that is a bomb."""
    return ExportUnsafe(
        "The archive would unpack to far more data than any export contains (a zip bomb).",
        "Nothing was imported. Download the export again from the platform.",
    )


def content_begins(stream: BinaryIO, entry: zipfile.ZipInfo) -> int:
    """Where the packed bytes of an entry begin. Raises: struct.error, if its header is cut."""
    stream.seek(entry.header_offset + _LOCAL_LENGTHS_AT)
    name, beyond = struct.unpack("<HH", stream.read(4))
    return entry.header_offset + _LOCAL_HEADER_BYTES + name + beyond


def check_total(unpacked_bytes: int, packed_bytes: int) -> None:
    """Look at all that an archive and those in it unpack to. Raises: ExportUnsafe."""
    if unpacked_bytes > max(SMALL_ENTRY_BYTES, LARGEST_TOTAL_RATIO * packed_bytes):
        raise unpacks_out_of_proportion()


def refusal_of_name(name: str) -> str | None:
    """Why a file of that name may not be read."""
    if _LEADS_OUT.search(name):
        return message("the name of the file points outside of the archive")
    return message("the name of the file is too long") if len(name) > LONGEST_NAME_CHARS else None


def _overlapping(entries: list[zipfile.ZipInfo], end: int) -> set[int]:
    """The entries whose bytes reach into the next one: small bombs share one body many times."""
    overlapping: set[int] = set()
    for entry in sorted(entries, key=lambda info: info.header_offset, reverse=True):
        if entry.header_offset + _LOCAL_HEADER_BYTES + entry.compress_size > end:
            overlapping.add(id(entry))
        end = min(end, entry.header_offset)
    return overlapping


def _mode(entry: zipfile.ZipInfo) -> int:
    return stat.S_IFMT(entry.external_attr >> 16)


def _out_of_proportion(entry: zipfile.ZipInfo) -> bool:
    return entry.file_size > max(SMALL_ENTRY_BYTES, LARGEST_ENTRY_RATIO * entry.compress_size)


_REFUSALS: tuple[tuple[Callable[[zipfile.ZipInfo], object], str], ...] = (
    (lambda entry: _mode(entry) == stat.S_IFLNK, message("the file is a symbolic link")),
    (
        lambda entry: _mode(entry) not in (0, stat.S_IFREG),
        message("the entry is not an ordinary file"),
    ),
    (
        lambda entry: entry.flag_bits & 0x1,
        message("the file is encrypted; export again without a password"),
    ),
    (
        lambda entry: entry.compress_type not in READABLE_METHODS,
        message("the compression of the file is not supported"),
    ),
    (_out_of_proportion, message("the file would unpack to far too much data")),
)
