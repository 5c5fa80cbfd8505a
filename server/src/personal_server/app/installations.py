"""The program of this machine as it was installed, replaced by another and put back.

    ~/bin/pdpp                      one file:           ~/bin/pdpp.previous
    ~/.venv/ with bin/pdpp in it    an environment:     ~/.venv.previous/

Rule: what stood before is whole beside it until its owner deletes it, or it is put back.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Protocol

import msgspec

from personal_server.upkeep.releases import Release

_OWN = "pdpp-personal-server"


class NotInstalled(Exception):
    """The installer of packages failed; what stood before is back."""


class Installation(Protocol):
    """How the program came to this machine."""

    @property
    def place(self) -> Path:
        """The file or folder that changes."""
        ...

    @property
    def program(self) -> Path:
        """What is started."""
        ...

    @property
    def previous(self) -> Path:
        """Where the present one is kept."""
        ...

    def bytes_needed(self, release: Release) -> int:
        """How much the disk must take beside the data."""
        ...

    def replace(self, release: Release) -> None:
        """Put the release in the place of what is there, of which a copy is kept.

        Raises: ReleaseRefused, NotInstalled, OSError; what was there stands then.
        """
        ...

    def forget_previous(self) -> None:
        """Delete what an earlier upgrade kept.  Raises: OSError."""
        ...

    def put_back(self) -> None:
        """Put what stood before in its place again.  Raises: OSError."""
        ...


class OneFile(msgspec.Struct, frozen=True):
    """The program that is one file."""

    place: Path

    @property
    def program(self) -> Path:
        """The file itself."""
        return self.place

    @property
    def previous(self) -> Path:
        """Beside it."""
        return _previous(self.place)

    def bytes_needed(self, release: Release) -> int:
        """As much as the new one has."""
        return release.size

    def replace(self, release: Release) -> None:
        """Write the new one beside the old one; then their names change hands."""
        new = self.place.with_name(f"{self.place.name}.new")
        try:
            release.copy_of(next(iter(release.files)), new)
            new.chmod(0o755)
            with new.open("rb") as written:
                os.fsync(written.fileno())
            self.previous.unlink(missing_ok=True)
            os.link(self.place, self.previous)
            new.replace(self.place)
        except BaseException:
            new.unlink(missing_ok=True)
            raise

    def forget_previous(self) -> None:
        """The file beside it."""
        self.previous.unlink(missing_ok=True)

    def put_back(self) -> None:
        """Under its own name again."""
        self.previous.replace(self.place)


class PackageEnvironment(msgspec.Struct, frozen=True):
    """A virtual environment that holds our packages.

    Shapes: `installer` is a command that takes the words of `pip install`.
    """

    place: Path
    installer: Sequence[str]

    @property
    def program(self) -> Path:
        """The command of the server."""
        return self.place / "bin" / "pdpp"

    @property
    def previous(self) -> Path:
        """The whole environment, beside it."""
        return _previous(self.place)

    def bytes_needed(self, release: Release) -> int:
        """As much as a second environment has: packages that ours need may be new as well."""
        return release.size + 2 * _bytes_in(self.place)

    def replace(self, release: Release) -> None:
        """Copy the environment, then install in its place: programs in it name their own path."""
        with tempfile.TemporaryDirectory(prefix="pdpp-wheels-") as folder:
            copies = (release.copy_of(file, Path(folder, file.name)) for file in release.files)
            wheels = [str(copy) for copy in copies]
            self._keep()
            try:
                # Ours anew even where the version is the same, then what they need besides.
                self._install("--force-reinstall", "--no-deps", *wheels)
                self._install(*wheels)
            except BaseException:
                self.put_back()
                raise

    def _keep(self) -> None:
        copied = self.place.with_name(f"{self.place.name}.part")
        for old in (copied, self.previous):
            shutil.rmtree(old, ignore_errors=True)
        try:
            shutil.copytree(self.place, copied, symlinks=True)
        except BaseException:
            shutil.rmtree(copied, ignore_errors=True)
            raise
        copied.replace(self.previous)

    def _install(self, *words: str) -> None:
        # Not where the owner happens to be: uv takes an index from a uv.toml that lies there.
        done = subprocess.run(  # noqa: S603 (files whose signature held)
            [*self.installer, "--quiet", *words],
            stdin=subprocess.DEVNULL,
            cwd=self.place,
            check=False,
        )
        if done.returncode:
            raise NotInstalled

    def forget_previous(self) -> None:
        """The folder beside it."""
        if self.previous.exists():
            shutil.rmtree(self.previous)

    def put_back(self) -> None:
        """The environment of before; what was made of it goes."""
        failed = self.place.with_name(f"{self.place.name}.failed")
        shutil.rmtree(failed, ignore_errors=True)
        self.place.replace(failed)
        self.previous.replace(self.place)
        shutil.rmtree(failed, ignore_errors=True)


def own_environment() -> PackageEnvironment | None:
    """The environment this runs in, if our packages were installed there and an installer is there.

    A checkout's environment follows its checkout, and the system's own Python is no place of ours.
    """
    if sys.prefix == sys.base_prefix or _is_checkout():
        return None
    environment, python = Path(sys.prefix), str(Path(sys.prefix, "bin", "python"))
    if Path(sys.prefix, "bin", "pip").exists():
        return PackageEnvironment(environment, (python, "-P", "-m", "pip", "install"))
    uv = shutil.which("uv")  # what `uv tool install` makes has no pip
    return (
        None
        if uv is None
        else PackageEnvironment(environment, (uv, "pip", "install", "--python", python))
    )


def _is_checkout() -> bool:
    try:
        origin: Mapping[str, Mapping[str, object]] = json.loads(
            distribution(_OWN).read_text("direct_url.json") or "{}"
        )
    except PackageNotFoundError:
        return True
    return bool(origin.get("dir_info", {}).get("editable"))


def _previous(environment: Path) -> Path:
    return environment.with_name(f"{environment.name}.previous")


def _bytes_in(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
