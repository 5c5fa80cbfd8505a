"""How a file begins that `reading/export` wrote: by that an import knows it, and restores it."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from pdpp_sources.export_files import open_file
from personal_server.reading.export_names import MANIFEST

HEAD_BYTES = 1024


_HEADER = re.compile(rb'\{\s*"object":\s*"export",')


def is_own_export(path: Path, within: Path | None = None) -> bool:
    """Whether a file begins as an export of this program does; `within` as in `open_file`."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe is waited for without end
            return False
        with open_file(path, within) as file:
            head = file.read(HEAD_BYTES)
    except OSError:  # a folder, or nothing at all: whoever reads exports of others says so
        return False
    if head.startswith(b"{"):
        return _HEADER.match(head) is not None
    return MANIFEST.encode() in head[:64] and _HEADER.search(head) is not None
