"""A package with a reader, as an installer leaves it in a folder that Python searches."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = (ROOT / "sources" / "src" / "pdpp_sources" / "source_template.py").read_text()
# Fails to load wherever a network could be reached.
CONFINED = f"""{TEMPLATE}

import socket
try:
    socket.socket()
except PermissionError:
    pass
else:
    raise RuntimeError("loaded in a process that is not confined")
"""
# Fails to load wherever a file beside the export, or the process that stores, can be read.
CURIOUS = f"""{TEMPLATE}

import os
for path in (BESIDE, f"/proc/{{os.getppid()}}/mem", f"/proc/{{os.getppid()}}/environ"):
    try:
        open(path, "rb").read(1)
    except PermissionError:
        continue
    raise RuntimeError("reads more than the export")
"""
VIEWINGS = b'Title,Date\n"Dark: Season 1: Secrets",2024-02-01\nHeat,2024-02-03\n'


def install(
    folder: Path, text: str, name: str = "viewings_reader", reader: str = "ViewingsSource"
) -> Path:
    """Put a module of that text there, whose class is a reader by the entry point."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(text)
    facts = folder / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[pdpp.sources]\n{name} = {name}:{reader}\n")
    return folder
