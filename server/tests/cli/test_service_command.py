from __future__ import annotations

import json
import os
import plistlib
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pdpp_mcp_server.commands.exits import run_app
from personal_server.cli.service_command import (
    LaunchAgent,
    ServerCommand,
    ServiceManager,
    SystemdUser,
    service_app,
    this_command,
)
from personal_server.settings import set_variables

COMMAND = ServerCommand(
    ("/opt/my tools/python", "-m", "personal_server.cli", "serve"),
    {"PDPP_DATA_DIR": "/home/ada/my 100% data", "PDPP_SERVER_NAME": 'Ada "the first" $HOME \\'},
)


GIVEN = {
    "PDPP_PUBLIC_URL": "https://me.example",
    "PDPP_SERVER_NAME": """Ada's "first" 100% $HOME \\ [bold] pdpp serve""",
    "PDPP_BIND": "127.0.0.1:7663",
}


def assigned(printed: str) -> dict[str, str]:
    """The variables before the command that was printed last."""
    line = next(line for line in reversed(printed.splitlines()) if line.endswith("service install"))
    words = [word for word in shlex.split(line) if word.startswith("PDPP_")]
    return dict(word.split("=", 1) for word in words)


@dataclass
class Machine:
    """A manager of services that only remembers."""

    manager: ServiceManager
    command: ServerCommand = COMMAND
    asked: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    runs: bool = False
    works: bool = True
    build: Callable[[Mapping[str, str]], ServerCommand] | None = None

    def run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        if tuple(arguments) == tuple(self.manager.asking()):
            return subprocess.CompletedProcess(arguments, 0 if self.runs else 3)
        self.asked.append(tuple(arguments))
        self.runs = tuple(arguments) in set(map(tuple, self.manager.starting())) and self.works
        return subprocess.CompletedProcess(arguments, 0 if self.works else 1)

    def __call__(self, *arguments: str) -> int:
        app = service_app(lambda: self.manager, self.build or (lambda _: self.command), self.run)
        return run_app(app, arguments)


MANAGERS: list[Callable[[Path], ServiceManager]] = [
    SystemdUser,
    lambda home: LaunchAgent(home, 501),
]


@pytest.fixture(params=MANAGERS, ids=["systemd", "launchd"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(request.param(tmp_path))


@pytest.fixture
def terminal(machine: Machine) -> Machine:
    """A machine whose commands read the variables of this process."""
    machine.build = this_command
    return machine


def settings_of(machine: Machine) -> Mapping[str, str]:
    return machine.manager.settings(machine.manager.path.read_bytes())


def is_current(machine: Machine, capsys: pytest.CaptureFixture[str]) -> bool:
    capsys.readouterr()
    machine("status", "--json")
    return json.loads(capsys.readouterr().out)["current"]


def test_nobody_else_may_change_what_is_started_for_its_owner(machine: Machine) -> None:
    usual = os.umask(0)
    try:
        assert machine("install") == 0
    finally:
        os.umask(usual)
    unit = machine.manager.path
    assert unit.stat().st_mode & 0o077 == 0
    assert [str(each) for each in unit.parents[:3] if each.stat().st_mode & 0o022] == []


def test_it_is_installed_started_told_and_removed(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert machine("status") == 69
    assert machine("install") == 0
    assert machine.asked == [tuple(each) for each in machine.manager.starting()]
    assert machine.manager.path.read_bytes() == machine.manager.render(COMMAND)
    assert machine.manager.path.stat().st_mode & 0o077 == 0
    capsys.readouterr()
    assert machine("status", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["installed"], told["running"], told["current"]) == (True, True, True)
    assert machine("remove") == 0
    assert not machine.manager.path.exists()
    assert machine.asked[-1] == tuple(machine.manager.stopping()[-1])
    assert machine("remove") == 5


def test_other_settings_are_noticed_and_installed_over_the_old_ones(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert machine("install") == 0
    machine.command = ServerCommand(COMMAND.arguments, {"PDPP_BIND": "127.0.0.1:7663"})
    capsys.readouterr()
    assert machine("status", "--json") == 0
    assert json.loads(capsys.readouterr().out)["current"] is False
    assert machine("install") == 0
    assert b"7663" in machine.manager.path.read_bytes()


def test_a_plain_terminal_keeps_what_the_service_was_given(
    terminal: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as given:
        for name, value in GIVEN.items():
            given.setenv(name, value)
        assert terminal("install") == 0
    before = terminal.manager.path.read_bytes()
    assert is_current(terminal, capsys)
    assert terminal("install") == 0
    assert terminal.manager.path.read_bytes() == before
    printed = capsys.readouterr().out
    assert all(name in printed for name in GIVEN)
    assert "PDPP_DATA_DIR" not in printed  # nobody set it


def test_a_setting_that_is_named_anew_is_replaced_and_an_empty_one_dropped(
    terminal: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as given:
        for name, value in GIVEN.items():
            given.setenv(name, value)
        assert terminal("install") == 0
    monkeypatch.setenv("PDPP_PUBLIC_URL", "https://new.example")
    monkeypatch.setenv("PDPP_SERVER_NAME", "")
    assert not is_current(terminal, capsys)
    terminal("status")
    told = capsys.readouterr().err
    assert "PDPP_PUBLIC_URL" in told
    assert "PDPP_SERVER_NAME" in told
    assert "PDPP_BIND" not in told
    assert terminal("install") == 0
    changed = {"PDPP_PUBLIC_URL": "https://new.example", "PDPP_BIND": GIVEN["PDPP_BIND"]}
    assert {n: v for n, v in settings_of(terminal).items() if n in GIVEN} == changed
    assert is_current(terminal, capsys)


def test_settings_that_do_not_fit_those_kept_are_refused_while_the_service_runs_on(
    terminal: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as given:
        given.setenv("PDPP_PUBLIC_URL", "forwarded")
        given.setenv("PDPP_TRUSTED_PROXIES", "127.0.0.1/32")
        given.setenv("PDPP_TRUSTED_HOSTS", "me.example")
        assert terminal("install") == 0
    before, done = terminal.manager.path.read_bytes(), len(terminal.asked)
    monkeypatch.setenv("PDPP_TRUSTED_PROXIES", "")
    assert terminal("install") == 78
    assert (terminal.manager.path.read_bytes(), len(terminal.asked)) == (before, done)


def test_removal_prints_the_command_that_installs_it_again_as_it_was(
    terminal: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as given:
        for name, value in GIVEN.items():
            given.setenv(name, value)
        assert terminal("install") == 0
    capsys.readouterr()
    assert terminal("remove") == 0
    assert assigned(capsys.readouterr().out) == GIVEN


def test_removal_shows_no_password(
    terminal: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as given:
        given.setenv("PDPP_DATABASE_URL", "postgresql://ada:s3c@ret@db.example/records")
        given.setenv(
            "PDPP_DATABASE_LISTEN_URL", "postgresql://db.example/records?password=s3cret&a=b"
        )
        assert terminal("install") == 0
    capsys.readouterr()
    assert terminal("install") == 0
    assert terminal("remove") == 0
    printed = capsys.readouterr().out
    assert "s3c" not in printed
    assert "ret@" not in printed
    assert assigned(printed) == {
        "PDPP_DATABASE_URL": "postgresql://ada:PASSWORD@db.example/records",
        "PDPP_DATABASE_LISTEN_URL": "postgresql://db.example/records?password=PASSWORD&a=b",
    }


def test_removal_of_a_service_that_was_given_nothing_names_no_settings(
    terminal: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert terminal("install") == 0
    assert terminal("remove") == 0
    assert "PDPP_" not in capsys.readouterr().out


def test_settings_of_another_version_stay(
    terminal: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.command = ServerCommand(COMMAND.arguments, {"PDPP_OF_TOMORROW": "1"})
    terminal.build = None
    assert terminal("install") == 0
    terminal.build = this_command
    assert terminal("install") == 0
    assert settings_of(terminal)["PDPP_OF_TOMORROW"] == "1"


def test_settings_are_read_from_a_unit_that_was_edited_as_systemd_reads_them(
    tmp_path: Path,
) -> None:
    edited = rb"""
[Service]
Environment=PDPP_BIND=127.0.0.1:1 'PDPP_SERVER_NAME=a b' LANG=C
 Environment = "PDPP_BIND=127.0.0.1:2"
Environment="PDPP_LOG_LEVEL=debug
#Environment=PDPP_DCR=off
"""
    read = SystemdUser(tmp_path).settings(edited)
    assert read == {"PDPP_BIND": "127.0.0.1:2", "PDPP_SERVER_NAME": "a b"}


def test_a_file_that_launchd_could_not_read_gives_no_settings(tmp_path: Path) -> None:
    agent = LaunchAgent(tmp_path, 501)
    for broken in (b"", b"<plist", b"\xff", plistlib.dumps({}), plistlib.dumps([])):
        assert agent.settings(broken) == {}


def test_without_a_manager_the_file_is_written_and_the_failure_told(machine: Machine) -> None:
    machine.works = False
    assert machine("install") == 69
    assert machine.manager.path.exists()
    assert machine("install", "--no-start") == 0


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    program = tmp_path / "a python"
    program.symlink_to("/bin/true")
    unit = tmp_path / "pdpp.service"
    unit.write_bytes(
        SystemdUser(tmp_path).render(ServerCommand((str(program),), COMMAND.variables))
    )
    # sockets of other units lie there, and the path of a socket is short
    with tempfile.TemporaryDirectory(prefix="pdpp-", dir="/tmp") as runtime:
        done = subprocess.run(
            ["systemd-analyze", "--user", "verify", "--man=no", str(unit)],
            capture_output=True,
            text=True,
            check=False,
            env={"XDG_RUNTIME_DIR": runtime, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_values_of_a_unit_stand_for_themselves(tmp_path: Path) -> None:
    lines = SystemdUser(tmp_path).render(COMMAND).decode().splitlines()
    assert 'Environment="PDPP_DATA_DIR=/home/ada/my 100%% data"' in lines
    assert 'Environment="PDPP_SERVER_NAME=Ada \\"the first\\" $HOME \\\\"' in lines
    assert 'ExecStart="/opt/my tools/python" "-m" "personal_server.cli" "serve"' in lines


def test_the_agent_is_a_property_list_of_the_keys_that_launchd_knows(tmp_path: Path) -> None:
    """Read back with plistlib; it was never loaded by launchd."""
    told = plistlib.loads(LaunchAgent(tmp_path, 501).render(COMMAND))
    assert told["ProgramArguments"] == list(COMMAND.arguments)
    log = told["EnvironmentVariables"].pop("PDPP_LOG_FILE")  # launchd would let it grow for ever
    assert log != told["StandardErrorPath"]
    assert told["EnvironmentVariables"] == COMMAND.variables
    assert told["KeepAlive"] == {"SuccessfulExit": False}
    assert told["Umask"] == 0o077


def test_the_service_gets_the_settings_that_are_set_and_no_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {
        "PDPP_DATA_DIR": "kept",
        "PDPP_PUBLIC_URL": "https://me.example",
        "PDPP_OWNER_TOKEN": "pdpp_at_x",
        "PATH": "/bin",
        "PDPP_BIND": "",
        "PDPP_BACKUP_DIR": "copies",
    }
    assert set(set_variables({}, environ)) == {
        "PDPP_BACKUP_DIR",
        "PDPP_DATA_DIR",
        "PDPP_PUBLIC_URL",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    command = this_command({})
    assert command.variables["PDPP_DATA_DIR"] == str(tmp_path / "kept")
    assert command.variables["PDPP_BACKUP_DIR"] == str(tmp_path / "copies")
    assert "PDPP_OWNER_TOKEN" not in command.variables
