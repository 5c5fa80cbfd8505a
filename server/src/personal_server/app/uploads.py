"""Uploads as the server wires them: `pdpp import` reads them, in a process of its own.

Rule: the command finds the very store that serves; nothing of an upload is read in this process.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import orjson

from pdpp_sources.common.errors import BadRecord, ExportError
from pdpp_sources.export_files import BESIDE
from pdpp_sources.reader_process import RECIPES, CostlyPlaces, ReaderProcess, Wanted
from personal_server.app.own_export_head import is_own_export
from personal_server.app.stores import Stores
from personal_server.collecting.import_folders import FolderListing, ImportFolders
from personal_server.collecting.uploads import Uploads
from personal_server.settings import Settings, command_environment

PDPP = (sys.executable, "-P", "-m", "personal_server.cli")
FOLDER = "uploads"
CATALOGUE_SECONDS = 60
LOOK_SECONDS = 3.0
MOST_REMEMBERED = 5_000
OWN_EXPORT = "An export of this program"
_File = tuple[Path, int, int]


def uploads_of(settings: Settings, stores: Stores) -> Uploads:
    """The uploads of this server."""

    def command(paths: Sequence[Path], within: Path | None, account: str | None) -> Sequence[str]:
        chosen = [] if account is None else ["--connection", account]
        limits = [] if within is None else ["--within", str(within)]
        return [*PDPP, "import", "--json", "--ask", *limits, *chosen, "--", *map(str, paths)]

    return Uploads(
        settings.data_dir / FOLDER,
        settings.upload_bytes,
        command,
        command_environment(settings),
        stores.clock,
        stores.random_bytes,
    )


def import_folders_of(settings: Settings) -> ImportFolders:
    """The folders that imports may come from: none where others than this machine may ask."""
    return ImportFolders(settings.import_folders if settings.is_loopback else ())


@cache
def importable_exports(settings: Settings) -> Sequence[dict[str, Any]]:
    """What can be imported, as `pdpp sources` lists it; its modules are not loaded here."""
    done = subprocess.run(  # noqa: S603 - our own command
        [*PDPP, "sources", "--json"],
        capture_output=True,
        timeout=CATALOGUE_SECONDS,
        check=True,
        env=command_environment(settings),
    )
    return orjson.loads(done.stdout)


def sample_declarations() -> Sequence[Mapping[str, Any]]:
    """What the made-up records are declared by; the readers are loaded by those who want them."""
    from pdpp_sources.bank.reader import DECLARATION as BANK  # noqa: PLC0415
    from pdpp_sources.mail.reader import DECLARATION as MAIL  # noqa: PLC0415

    return (MAIL, BANK)


class RecognizedFiles:
    """What files are, by a look at each in the process that reads exports.

    It is remembered while a file stays the same.  A list takes `LOOK_SECONDS` at most; what was
    not looked at by then is when the list is asked for again.
    """

    def __init__(self, settings: Settings) -> None:
        self._recipes = settings.data_dir / RECIPES
        self._known: dict[_File, str] = {}
        self._lock = Lock()

    def __call__(self, listing: FolderListing) -> Mapping[str, str]:
        """By the name of each file that was looked at; empty where nothing reads it."""
        folder, within = listing.folder / listing.path, listing.folder.resolve()
        names = {each.name for each in listing.entries}
        files = {
            each.name: (folder / each.name, each.size_bytes, each.modified_at_ns)
            for each in listing.entries
            # a database in use would be copied first
            if not each.is_folder and not any(each.name + ending in names for ending in BESIDE)
        }
        with self._lock:
            unknown = [file for file in files.values() if file not in self._known]
            ends_at = time.monotonic() + LOOK_SECONDS
            if unknown:
                with ReaderProcess(CostlyPlaces(), beneath=within, recipes=self._recipes) as reader:
                    for file in unknown:
                        if time.monotonic() > ends_at:
                            break
                        self._known[file] = _looked_at(reader, file[0], Wanted(within=within))
            for file in list(self._known)[:-MOST_REMEMBERED]:
                del self._known[file]
            known = self._known.copy()
        return {name: known[file] for name, file in files.items() if file in known}


def _looked_at(reader: ReaderProcess, path: Path, wanted: Wanted) -> str:
    if is_own_export(path, wanted.within):
        return OWN_EXPORT
    try:
        found = reader.look(path, wanted).readings
    except (ExportError, BadRecord):
        return ""
    return ", ".join(str(each.seen.declaration["display"]["name"]) for each in found)
