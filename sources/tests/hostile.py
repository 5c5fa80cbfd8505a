"""Archives that were built to do harm, or that a machine broke."""

from __future__ import annotations

import stat
import struct
import zipfile
from pathlib import Path
from random import Random

from sources.tests.specimens.files import WRITTEN_AT, Files, as_zip

SECRET = b"root:x:0:0:not yours"
LEADING_OUT = (
    "../up.txt",
    "/etc/passwd",
    "a/../../b.txt",
    "C:/x.txt",
    "..\\up.txt",
    "\\\\x\\y.txt",
)
CENTRAL = b"PK\x01\x02"


def entry(name: str, mode: int = 0) -> zipfile.ZipInfo:
    """An entry dated as all are; `mode` as Unix writes it."""
    made = zipfile.ZipInfo(name, WRITTEN_AT.timetuple()[:6])
    made.compress_type = zipfile.ZIP_DEFLATED
    made.external_attr = mode << 16
    return made


def with_hostile_entries(files: Files, path: Path) -> Path:
    """The files, among entries none of which may be read."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in LEADING_OUT:
            archive.writestr(entry(name), SECRET)
        archive.writestr(entry("link.txt", stat.S_IFLNK | 0o777), "/etc/passwd")
        archive.writestr(entry("pipe.txt", stat.S_IFIFO | 0o644), b"")
        archive.writestr(entry("n" * 5000 + ".txt"), SECRET)
        for name, content in files.items():
            archive.writestr(entry(name), content)
    return path


def encrypted(files: Files, path: Path) -> Path:
    """The files in an archive that asks for a password."""
    return _each_central_entry(as_zip(files, path), flags=1)


def of_unknown_packing(files: Files, path: Path) -> Path:
    """The files, packed by a method of tomorrow."""
    return _each_central_entry(as_zip(files, path), method=93)


def _each_central_entry(path: Path, flags: int = 0, method: int | None = None) -> Path:
    content = bytearray(path.read_bytes())
    at = content.find(CENTRAL)
    while at >= 0:
        content[at + 8] |= flags
        if method is not None:
            content[at + 10] = method
        at = content.find(CENTRAL, at + 4)
    path.write_bytes(content)
    return path


def overlapping(files: Files, path: Path, copies: int = 50) -> Path:
    """The files, and one body that many names share, as in bombs of overlapping entries."""
    as_zip({**files, "zz-kernel.txt": Random(1).randbytes(20_000)}, path)
    with zipfile.ZipFile(path, "a") as archive:
        kernel = archive.infolist()[-1]
        for number in range(copies):
            twin = entry(f"zz-{number}.txt")
            for name in ("header_offset", "CRC", "compress_size", "file_size"):
                setattr(twin, name, getattr(kernel, name))
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
        vars(archive)["_didModify"] = True  # rewrite the table of contents alone
    return path


def nested(path: Path, depth: int = 5) -> Path:
    """A zip in a zip in a zip, each layer of the same zeroes many times over."""
    inner = {"zeroes.txt": bytes(5_000_000)}
    for layer in range(depth):
        at = as_zip(inner, path.with_name(f"layer-{layer}.zip"))
        inner = {f"{number}.zip": at.read_bytes() for number in range(10)}
    return as_zip(inner, path)


def lying(path: Path, name: str = "Inbox") -> Path:
    """An entry that unpacks to more than the table of contents says."""
    as_zip({name: b"From a Mon Jan  1 00:00:00 2024\n" + b"x" * 3_000_000}, path)
    content = bytearray(path.read_bytes())
    struct.pack_into("<L", content, content.rfind(CENTRAL) + 24, 1000)
    path.write_bytes(content)
    return path


def of_endless_contents(path: Path) -> Path:
    """An archive whose table of contents says it is a gigabyte long."""
    content = bytearray(as_zip({"a.txt": b"text"}, path).read_bytes())
    struct.pack_into("<L", content, content.rfind(b"PK\x05\x06") + 12, 1 << 30)
    path.write_bytes(content)
    return path
