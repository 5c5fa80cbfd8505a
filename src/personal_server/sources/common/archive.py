"""Which entries of a zip archive may be read: bounded in size, harmless in name."""

from __future__ import annotations

import os
import re
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

from personal_server.domain.source_item import Skipped
from personal_server.sources.common.errors import ExportUnsafe

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
_NOISE = re.compile(r"(^|/)(__MACOSX/|\.DS_Store$|Thumbs\.db$)")
_LOCAL_HEADER_BYTES = 30
_END_BYTES = 22
_END_SIGNATURE = b"PK\x05\x06"
_END_64_BYTES = 56
_LOCATOR_64_BYTES = 20
_BEYOND_32_BITS = 0xFFFFFFFF


def check_directory(path: Path) -> None:
    """Look how long the table of contents is before anybody loads it.

    Source: PKWARE APPNOTE 4.3.14 to 4.3.16.
    Raises: ExportUnsafe; OSError and struct.error where the file is none.
    """
    size_bytes = path.stat().st_size
    kept = min(size_bytes, _END_BYTES + 0xFFFF + _LOCATOR_64_BYTES + _END_64_BYTES)
    with path.open("rb") as stream:
        stream.seek(-kept, os.SEEK_END)
        tail = stream.read(kept)
    end = tail.rfind(_END_SIGNATURE)
    if end < 0:
        return
    (length,) = struct.unpack_from("<L", tail, end + 12)
    record = end - _LOCATOR_64_BYTES - _END_64_BYTES
    if length == _BEYOND_32_BITS and record >= 0:
        (length,) = struct.unpack_from("<Q", tail, record + 40)
    if length > LARGEST_DIRECTORY_BYTES:
        raise _too_many()


def safe_entries(archive: zipfile.ZipFile) -> tuple[list[zipfile.ZipInfo], tuple[Skipped, ...]]:
    """The entries that may be read, and a report of those that may not.

    Raises: ExportUnsafe, if the archive as a whole is out of proportion.
    """
    entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
    if len(entries) > MOST_ENTRIES:
        raise _too_many()
    _check_proportion(entries)
    overlapping = _overlapping(entries, archive.start_dir)
    kept: dict[str, zipfile.ZipInfo] = {}
    refused: list[Skipped] = []
    for entry in entries:
        if _NOISE.search(entry.filename) or _mode(entry) == stat.S_IFDIR:
            continue
        reason = next((reason for applies, reason in _REFUSALS if applies(entry)), None)
        if id(entry) in overlapping:
            reason = "it lies over another file of the archive"
        if entry.filename in kept:
            reason = "a second file of the same name"
        if reason is None:
            kept[entry.filename] = entry
        else:
            name = "".join(c if c.isprintable() else "?" for c in entry.filename)[:200]
            refused.append(Skipped(name, "unsafe_entry", reason, 0))
    return list(kept.values()), tuple(refused)


def _too_many() -> ExportUnsafe:
    return ExportUnsafe(
        f"The archive lists more than {MOST_ENTRIES:,} files.",
        "Unpack it yourself and import the folder, if you trust it.",
    )


def _check_proportion(entries: list[zipfile.ZipInfo]) -> None:
    packed = sum(entry.compress_size for entry in entries)
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > SMALL_ENTRY_BYTES and unpacked > LARGEST_TOTAL_RATIO * max(packed, 1):
        raise ExportUnsafe(
            "The archive unpacks to far more than any export does (a zip bomb).",
            "Nothing was imported. Download the export again from its platform.",
        )


def _overlapping(entries: list[zipfile.ZipInfo], end: int) -> set[int]:
    """The entries whose bytes reach into the next one: small bombs share one body many times."""
    found: set[int] = set()
    for entry in sorted(entries, key=lambda each: each.header_offset, reverse=True):
        if entry.header_offset + _LOCAL_HEADER_BYTES + entry.compress_size > end:
            found.add(id(entry))
        end = min(end, entry.header_offset)
    return found


def _mode(entry: zipfile.ZipInfo) -> int:
    return stat.S_IFMT(entry.external_attr >> 16)


def _out_of_proportion(entry: zipfile.ZipInfo) -> bool:
    return entry.file_size > max(SMALL_ENTRY_BYTES, LARGEST_ENTRY_RATIO * entry.compress_size)


_REFUSALS: tuple[tuple[Callable[[zipfile.ZipInfo], object], str], ...] = (
    (lambda entry: _LEADS_OUT.search(entry.filename), "its name leads out of the archive"),
    (lambda entry: len(entry.filename) > LONGEST_NAME_CHARS, "its name is too long"),
    (lambda entry: _mode(entry) == stat.S_IFLNK, "it is a symbolic link"),
    (lambda entry: _mode(entry) not in (0, stat.S_IFREG), "it is no ordinary file"),
    (lambda entry: entry.flag_bits & 0x1, "it is encrypted; export again without a password"),
    (lambda entry: entry.compress_type not in READABLE_METHODS, "its packing is not known"),
    (_out_of_proportion, "it unpacks out of proportion"),
)
