"""Files of an export, as a folder or a zip."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

Files = dict[str, bytes]
WRITTEN_AT = datetime(2024, 2, 1, 12, tzinfo=UTC)


def as_json(value: object) -> bytes:
    """JSON as platforms write it, with escapes beyond ASCII."""
    return json.dumps(value).encode()


def as_folder(files: Files, folder: Path) -> Path:
    """The files under a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (WRITTEN_AT.timestamp(), WRITTEN_AT.timestamp()))
    return folder


def as_zip(files: Files, path: Path) -> Path:
    """The files in an archive, dated alike so that the archive is always the same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, WRITTEN_AT.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


def as_tgz(files: Files, path: Path) -> Path:
    """The files in a tar packed with gzip, in their order."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), int(WRITTEN_AT.timestamp())
            archive.addfile(entry, io.BytesIO(content))
    return path
