"""Archives that are equal, byte for byte, wherever and whenever they are made of equal files.

Rule: sorted names, one time, no owner, no mode but "may be executed".
Source: reproducible-builds.org, "Archive metadata", SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
import zipfile
from pathlib import Path

_EXECUTABLE, _PLAIN = 0o755, 0o644


def files_of(folder: Path) -> list[Path]:
    """Every file and link below a folder, in one order everywhere."""
    found = [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def packed_tar(folder: Path, seconds: int) -> bytes:
    """The files of a folder as a compressed tar.  Units: Unix seconds."""
    packed = io.BytesIO()
    # the name and the time of a gzip header would tell one making from another
    with (
        gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=seconds) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for path in files_of(folder):
            entry = tar.gettarinfo(path, path.relative_to(folder).as_posix())
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = seconds
            entry.mode = _mode(path)
            if entry.isfile():
                with path.open("rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)
    return packed.getvalue()


def write_zip(folder: Path, target: Path, seconds: int) -> None:
    """The files of a folder as a zip.  Units: Unix seconds."""
    moment = time.gmtime(seconds)[:6]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in files_of(folder):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), moment)
            entry.external_attr = _mode(path) << 16
            # packages are compressed already
            kept = path.suffix == ".whl"
            entry.compress_type = zipfile.ZIP_STORED if kept else zipfile.ZIP_DEFLATED
            packed.writestr(entry, path.read_bytes())


def _mode(path: Path) -> int:
    return _EXECUTABLE if os.access(path, os.X_OK) else _PLAIN
