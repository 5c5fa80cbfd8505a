"""The program of this machine, replaced by a release and put back."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from personal_server.app.installations import NotInstalled, OneFile, PackageEnvironment
from personal_server.upkeep.releases import Release, ReleaseRefused

# As pip does it: what it is asked is written down; it spoils what it cannot install.
INSTALLER = """#!/bin/sh
echo "$@" >>{asked}
pwd -P >>{where}
echo new >{place}/bin/pdpp
exit {code}
"""


def environment(folder: Path, code: int = 0) -> PackageEnvironment:
    """One with a program, and an installer that ends so."""
    place = folder / "env"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "pdpp").write_text("old")
    (place / "bin" / "python").symlink_to("/usr/bin/env")
    installer = folder / "installer"
    installer.write_text(
        INSTALLER.format(asked=folder / "asked", where=folder / "where", place=place, code=code)
    )
    return PackageEnvironment(place, ("sh", str(installer), "install"))


def signed(folder: Path) -> Release:
    """A release of one wheel."""
    wheel = folder / "pdpp_kernel-0.2.0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    return Release("0.2.0", {wheel: hashlib.sha256(b"a wheel").hexdigest()}, "signer")


def test_wheels_are_installed_and_the_environment_of_before_is_kept(tmp_path: Path) -> None:
    installed = environment(tmp_path)
    installed.replace(signed(tmp_path))
    own, needed = (line.split() for line in (tmp_path / "asked").read_text().splitlines())
    assert own[:4] == ["install", "--quiet", "--force-reinstall", "--no-deps"]
    assert needed[:2] == ["install", "--quiet"]
    assert Path(own[-1]).name == Path(needed[-1]).name == "pdpp_kernel-0.2.0-py3-none-any.whl"
    assert not Path(own[-1]).exists()
    assert set((tmp_path / "where").read_text().split()) == {str(installed.place.resolve())}
    assert installed.program.read_text() == "new\n"
    assert (installed.previous / "bin" / "pdpp").read_text() == "old"
    assert (installed.previous / "bin" / "python").is_symlink()
    installed.put_back()
    assert installed.program.read_text() == "old"
    assert not installed.previous.exists()


def test_an_installer_that_fails_changes_nothing(tmp_path: Path) -> None:
    installed = environment(tmp_path, code=1)
    with pytest.raises(NotInstalled):
        installed.replace(signed(tmp_path))
    assert installed.program.read_text() == "old"
    assert not installed.previous.exists()


def test_a_wheel_that_changed_since_it_was_looked_at_is_not_installed(tmp_path: Path) -> None:
    installed, release = environment(tmp_path), signed(tmp_path)
    next(iter(release.files)).write_bytes(b"another")
    with pytest.raises(ReleaseRefused):
        installed.replace(release)
    assert installed.program.read_text() == "old"
    assert not (tmp_path / "asked").exists()


def test_a_file_system_without_links_keeps_the_program_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "pdpp"
    program.write_text("old")
    with pytest.raises(PermissionError):
        OneFile(program).replace(signed(tmp_path))
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"pdpp": "old"}
