"""A newer release put in the place of this one, and taken back where that does not start.

    pdpp, data/             before
    pdpp, data.before-0.2.0/  a copy of all data, made while no server runs
    pdpp (0.2.0), pdpp.previous, data/ (brought to its layout by 0.2.0, which answers)
                            after; or, if it never answers, as before, and data.failed-0.2.0/

Rule: at every step one program and one whole copy of the data of its version are on the disk. Where
`data.before-0.2.0` is there, it belongs to `pdpp.previous`, or to `pdpp` where that is not there.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import httpx2
import msgspec

from personal_server.app.installations import Installation
from personal_server.storage.sqlite.database import copy_database
from personal_server.upkeep.releases import Release

START_SECONDS = 300
"""A large store is brought to a new layout before its server answers."""
STOP_SECONDS = 60
_POLL_SECONDS = 0.5


class NewProgramFailed(Exception):
    """The new program did not answer; everything is as it was before."""


class Upgrade(msgspec.Struct, frozen=True):
    """What is about to change."""

    installation: Installation
    database: Path
    release: Release

    @property
    def data_dir(self) -> Path:
        """All that is kept, the database among it."""
        return self.database.parent

    @property
    def kept_data(self) -> Path:
        """The copy of all data as they are now."""
        return self.data_dir.with_name(f"{self.data_dir.name}.before-{self.release.version}")

    @property
    def failed_data(self) -> Path:
        """What a new program that did not start made of the data."""
        return self.data_dir.with_name(f"{self.data_dir.name}.failed-{self.release.version}")

    def bytes_needed(self) -> int:
        """How much the disk must take for the copies."""
        files = (path for path in self.data_dir.rglob("*") if path.is_file())
        return sum(path.lstat().st_size for path in files) + self.installation.bytes_needed(
            self.release
        )

    def replace_program(self) -> None:
        """Copy the data, then put the new program in the place of the old one.

        The caller holds the claim on the data.
        Raises: OSError, ReleaseRefused, NotInstalled; nothing was replaced then, and no copy of
            the data is left.
        """
        copied = self.kept_data.with_name(f"{self.kept_data.name}.part")
        shutil.rmtree(copied, ignore_errors=True)
        try:
            self._copy_data(copied)
            self.installation.forget_previous()
            copied.replace(self.kept_data)
            self.installation.replace(self.release)
        except BaseException:
            if self.kept_data.exists():  # what is removed in part is no copy
                shutil.rmtree(copied, ignore_errors=True)
                self.kept_data.replace(copied)
            shutil.rmtree(copied, ignore_errors=True)
            raise

    def _copy_data(self, copied: Path) -> None:
        # An import may still write. Files of records come before the records that name them, so
        # the database is copied first, as of one moment.
        copied.mkdir(mode=0o700)
        if self.database.exists():
            copy_database(self.database, copied / self.database.name)
        of_database = shutil.ignore_patterns(f"{self.database.name}*")
        shutil.copytree(
            self.data_dir, copied, symlinks=True, ignore=of_database, dirs_exist_ok=True
        )
        copied.chmod(0o700)

    def try_out(self, environ: Mapping[str, str]) -> None:
        """Start the new program on the data until it answers, then stop it.

        Raises: NewProgramFailed and what interrupts the wait, after the old program and the old
            data were put back.
        """
        try:
            if not _answers(self.installation.program, environ):
                raise NewProgramFailed
        except BaseException:
            self._put_back()
            raise

    def _put_back(self) -> None:
        self.installation.put_back()
        shutil.rmtree(self.failed_data, ignore_errors=True)
        self.data_dir.replace(self.failed_data)
        self.kept_data.replace(self.data_dir)


def _answers(program: Path, environ: Mapping[str, str]) -> bool:
    """Whether a server of that program, on an address of its own, comes to answer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    settings = {"PDPP_BIND": address, "PDPP_WORKERS": "1"}
    try:
        server = subprocess.Popen(  # noqa: S603 (the program whose signature held)
            [str(program), "serve"],
            env={**environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:  # it is no program of this system
        return False
    end = time.monotonic() + START_SECONDS
    try:
        while server.poll() is None and time.monotonic() < end:
            if _is_live(address):
                return True
            time.sleep(_POLL_SECONDS)
        return False
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _is_live(address: str) -> bool:
    try:
        return httpx2.get(f"http://{address}/healthz/live").status_code == 200
    except httpx2.TransportError:
        return False
