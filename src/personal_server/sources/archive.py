"""Which entries of a zip archive may be read: bounded in size, harmless in name."""

from __future__ import annotations

import re
import stat
import zipfile

from personal_server.sources.errors import ExportUnsafe
from personal_server.sources.item import Skipped

MOST_ENTRIES = 500_000
LARGEST_TOTAL_RATIO = 120
LARGEST_ENTRY_RATIO = 300
SMALL_ENTRY_BYTES = 16 * 1024 * 1024
READABLE_METHODS = frozenset(
    {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA}
)
_LEADS_OUT = re.compile(r"(^$)|(^[/\\])|(^[A-Za-z]:)|(\\)|((^|/)\.\.(/|$))|[\x00-\x1f]")
_NOISE = re.compile(r"(^|/)(__MACOSX/|\.DS_Store$|Thumbs\.db$)")


def safe_entries(archive: zipfile.ZipFile) -> tuple[list[zipfile.ZipInfo], tuple[Skipped, ...]]:
    """The entries that may be read, and a report of those that may not.

    Raises: ExportUnsafe, if the archive as a whole is out of proportion.
    """
    entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
    if len(entries) > MOST_ENTRIES:
        raise ExportUnsafe(
            f"The archive lists more than {MOST_ENTRIES:,} files.",
            "Unpack it yourself and import the folder, if you trust it.",
        )
    _check_proportion(entries)
    kept: dict[str, zipfile.ZipInfo] = {}
    refused: list[Skipped] = []
    for entry in entries:
        reason = _refusal(entry, kept)
        if reason is None:
            kept[entry.filename] = entry
        elif reason:
            refused.append(Skipped(_shown(entry.filename), "unsafe_entry", reason, 0))
    return list(kept.values()), tuple(refused)


def _check_proportion(entries: list[zipfile.ZipInfo]) -> None:
    packed = sum(entry.compress_size for entry in entries)
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > SMALL_ENTRY_BYTES and unpacked > LARGEST_TOTAL_RATIO * max(packed, 1):
        raise ExportUnsafe(
            "The archive unpacks to far more than any export does (a zip bomb).",
            "Nothing was imported. Download the export again from its platform.",
        )


def _refusal(entry: zipfile.ZipInfo, kept: dict[str, zipfile.ZipInfo]) -> str | None:
    """Why an entry is not read; empty for litter that needs no word, None if it is fine."""
    if _NOISE.search(entry.filename):
        return ""
    if _LEADS_OUT.search(entry.filename):
        return "its name leads out of the archive"
    if entry.filename in kept:
        return "a second file of the same name"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "it is a symbolic link"
    if entry.flag_bits & 0x1:
        return "it is encrypted; export again without a password"
    if entry.compress_type not in READABLE_METHODS:
        return "its compression method is unknown"
    if entry.file_size > max(SMALL_ENTRY_BYTES, LARGEST_ENTRY_RATIO * entry.compress_size):
        return "it unpacks out of proportion"
    return None


def _shown(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name)[:200]
