"""`pdpp upgrade`: what is checked before, what stands after, and the way back."""

from __future__ import annotations

import json
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from personal_server.app.installations import OneFile
from personal_server.app.upgrades import NewProgramFailed, Upgrade
from personal_server.consent.credentials import base64url
from personal_server.upkeep.releases import ReleaseRefused, downloaded
from release.signed_digests import write_digests
from server.tests.upkeep.machine import PDPP, Machine

WORKS = f'#!/bin/sh\n# {{version}}\nexec {PDPP} "$@"\n'
FAILS = '#!/bin/sh\n# {version}\necho spoiled >"$PDPP_DATA_DIR/personal-server.sqlite3"\nexit 1\n'
CHANGES = frozenset({"os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.chmod"})
KILLED = 77
NAME = f"pdpp-0.2.0-linux-{platform.machine()}"


class Signed:
    """A folder with a release, and who signed it."""

    def __init__(self, folder: Path, text: str, name: str = NAME) -> None:
        self.folder, self.program = folder, folder / name
        folder.mkdir()
        self.program.write_text(text.format(version="0.2.0"))
        private = Ed25519PrivateKey.generate()
        self.signer = base64url(private.public_key().public_bytes_raw())
        key = folder.with_suffix(".key")
        key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        write_digests(folder, key)


@pytest.fixture
def empty(tmp_path: Path) -> Machine:
    """A machine whose program is one file."""
    program = tmp_path / "pdpp"
    program.write_text(WORKS.format(version="0.1.0"))
    program.chmod(0o755)
    return Machine(tmp_path, {"PDPP_PROGRAM": str(program)})


@pytest.fixture
def machine(empty: Machine, tmp_path: Path) -> Machine:
    """One with a record."""
    machine = empty
    (tmp_path / "runs.csv").write_text("id,day,km\n1,2026-01-01,5\n")
    machine.pdpp("import", tmp_path / "runs.csv")
    return machine


def records(machine: Machine) -> list[str]:
    """What is exported, without the moment of the export and its digest."""
    return machine.pdpp("export").stdout.splitlines()[1:-1]


def test_a_newer_program_takes_the_place_of_the_old_one(machine: Machine, tmp_path: Path) -> None:
    release = Signed(tmp_path / "release", WORKS)
    before = records(machine)
    unknown = machine.pdpp("upgrade", release.folder, expected=64)
    assert release.signer in unknown.stderr
    asked = ("upgrade", release.folder, "--signer", release.signer)
    planned = json.loads(machine.pdpp(*asked, "--dry-run", "--json").stdout)
    assert (planned["new version"], planned["done"]) == ("0.2.0", False)
    program = tmp_path / "pdpp"
    assert "0.1.0" in program.read_text()
    machine.pdpp(*asked)
    assert "0.2.0" in program.read_text()
    assert program.stat().st_mode & 0o777 == 0o755
    assert "0.1.0" in (tmp_path / "pdpp.previous").read_text()
    kept = tmp_path / "data.before-0.2.0"
    assert kept.stat().st_mode & 0o777 == 0o700
    assert records(machine) == before
    assert records(Machine(tmp_path, {"PDPP_DATA_DIR": str(kept)})) == before
    # the data of before are not written over
    again = machine.pdpp("upgrade", release.folder, expected=69)
    assert "data.before-0.2.0" in again.stderr
    # the signer is known from now on, and another is not taken for it
    machine.pdpp("upgrade", release.folder, "--dry-run")
    other = Signed(tmp_path / "other", WORKS)
    refused = machine.pdpp("upgrade", other.folder, "--dry-run", expected=65)
    assert other.signer in refused.stderr


def test_a_program_that_does_not_answer_changes_nothing(machine: Machine, tmp_path: Path) -> None:
    release = Signed(tmp_path / "release", FAILS)
    before = records(machine)
    asked = ("upgrade", release.program, "--signer", release.signer, "--json")
    refused = machine.pdpp(*asked, expected=69)
    assert "data.failed-0.2.0" in json.loads(refused.stdout)["error"]["next_step"]
    assert "0.1.0" in (tmp_path / "pdpp").read_text()
    assert records(machine) == before
    assert (tmp_path / "data.failed-0.2.0").is_dir()


def test_who_does_not_wait_has_everything_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = Signed(tmp_path / "release", WORKS)
    program, data = tmp_path / "pdpp", tmp_path / "data"
    program.write_text("the old one")
    data.mkdir()
    (data / "config.toml").write_text("old")
    found = downloaded(release.program, platform.machine())
    planned = Upgrade(OneFile(program), data / "personal-server.sqlite3", found)
    planned.replace_program()
    (data / "config.toml").write_text("new")

    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("personal_server.app.upgrades._is_live", interrupted)
    with pytest.raises(KeyboardInterrupt):
        planned.try_out({"PDPP_DATA_DIR": str(data)})
    assert program.read_text() == "the old one"
    assert (data / "config.toml").read_text() == "old"
    assert (planned.failed_data / "config.toml").read_text() == "new"


@pytest.mark.parametrize("answers", [True, False])
def test_wherever_it_is_killed_the_way_back_of_the_docs_leads_back(
    answers: bool, tmp_path: Path
) -> None:
    """Killed before each of its changes to the disk, beside what an earlier upgrade left."""
    release = Signed(tmp_path / "release", WORKS)
    found = downloaded(release.program, platform.machine())
    number, is_done = 0, False
    while not is_done:
        number += 1
        home = tmp_path / str(number)
        program, previous, data = home / "pdpp", home / "pdpp.previous", home / "data"
        data.mkdir(parents=True)
        program.write_text("the old one")
        previous.write_text("an older one")
        (data / "config.toml").write_text("old")
        planned = Upgrade(OneFile(program), data / "personal-server.sqlite3", found)
        is_done = _is_done_before_change(number, planned, answers=answers)
        if planned.kept_data.exists():
            if previous.exists():
                previous.replace(program)
            if data.exists():
                data.replace(home / "data.failed")
            planned.kept_data.replace(data)
        assert (program.read_text(), (data / "config.toml").read_text()) == ("the old one", "old")
    assert number > 8


def _is_done_before_change(number: int, planned: Upgrade, *, answers: bool) -> bool:
    """Upgrade in a process that ends before that change to the disk; whether it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            changes = iter(range(1, number))

            def watch(event: str, words: tuple[object, ...]) -> None:
                writes = event == "open" and isinstance(words[2], int) and words[2] & os.O_WRONLY
                if (writes or event in CHANGES) and next(changes, None) is None:
                    os._exit(KILLED)

            def answer(*_: object) -> bool:
                return answers

            sys.addaudithook(watch)
            planned.replace_program()
            (planned.data_dir / "config.toml").write_text("new")
            with suppress(NewProgramFailed), pytest.MonkeyPatch.context() as patch:
                patch.setattr("personal_server.app.upgrades._answers", answer)
                planned.try_out({})
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, KILLED)
    return status == 0


def test_a_data_directory_that_is_a_disk_of_its_own_is_refused(
    empty: Machine, tmp_path: Path
) -> None:
    """It could not be put back by its name."""
    release = Signed(tmp_path / "release", WORKS)
    disk = Machine(tmp_path, empty.settings | {"PDPP_DATA_DIR": "/proc"})
    asked = ("upgrade", release.folder, "--signer", release.signer)
    assert "PDPP_DATA_DIR" in disk.pdpp(*asked, expected=69).stderr


def test_a_running_server_is_not_upgraded_under_its_feet(empty: Machine, tmp_path: Path) -> None:
    release = Signed(tmp_path / "release", WORKS)
    with empty.running():
        empty.start()
        refused = empty.pdpp("upgrade", release.folder, "--signer", release.signer, expected=69)
    assert "Stop that server" in refused.stderr
    assert "0.1.0" in (tmp_path / "pdpp").read_text()


@pytest.mark.parametrize(
    "fault", ["changed", "unsigned", "renamed", "of another processor", "gone"]
)
def test_what_is_not_signed_for_this_machine_is_refused(
    fault: str, empty: Machine, tmp_path: Path
) -> None:
    name = "pdpp-0.2.0-linux-other" if fault == "of another processor" else NAME
    release = Signed(tmp_path / "release", WORKS, name)
    path = release.program
    if fault == "changed":
        path.write_text(path.read_text() + "# and more\n")
    elif fault == "unsigned":
        (release.folder / "SHA256SUMS.sig").write_bytes(bytes(64))
    elif fault == "renamed":
        path = path.rename(release.folder / "pdpp-0.9.0-linux-x86_64")
    elif fault == "gone":
        path = tmp_path / "nowhere"
    expected = 5 if fault == "gone" else 65
    empty.pdpp("upgrade", path, "--signer", release.signer, expected=expected)
    assert "0.1.0" in (tmp_path / "pdpp").read_text()
    assert not list(tmp_path.glob("data.*"))


def test_no_release_that_is_older_takes_the_place_of_the_program(
    empty: Machine, tmp_path: Path
) -> None:
    """It has a good signature for ever, and the faults that were mended since."""
    name = f"pdpp-0.0.99-linux-{platform.machine()}"
    release = Signed(tmp_path / "release", WORKS, name)
    asked = ("upgrade", release.folder, "--dry-run", "--signer", release.signer)
    assert "export_unsafe" in empty.pdpp(*asked, expected=65).stderr


def test_a_key_may_begin_as_an_option_does(empty: Machine, tmp_path: Path) -> None:
    release = Signed(tmp_path / "release", WORKS)
    asked = ("upgrade", release.folder, "--dry-run", "--signer", "-aKeyOfSomebody")
    assert "export_unsafe" in empty.pdpp(*asked, expected=65).stderr


def test_what_changes_between_look_and_copy_is_not_started(tmp_path: Path) -> None:
    release = Signed(tmp_path / "release", WORKS)
    looked_at = downloaded(release.program, platform.machine())
    release.program.write_text("#!/bin/sh\n")
    program, data = tmp_path / "pdpp", tmp_path / "data"
    program.write_text("the old one")
    data.mkdir()
    planned = Upgrade(OneFile(program), data / "personal-server.sqlite3", looked_at)
    with pytest.raises(ReleaseRefused):
        planned.replace_program()
    assert program.read_text() == "the old one"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "release.key") == [
        "data",
        "pdpp",
        "release",
    ]


def test_another_installation_is_told_how_it_is_upgraded(tmp_path: Path) -> None:
    refused = Machine(tmp_path).pdpp("upgrade", tmp_path, expected=69)
    assert "make install" in refused.stderr
