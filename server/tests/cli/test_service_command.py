from __future__ import annotations

import json
import plistlib
import shutil
import subprocess
from collections.abc import Callable, Sequence
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


@dataclass
class Machine:
    """A manager of services that only remembers."""

    manager: ServiceManager
    command: ServerCommand = COMMAND
    asked: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    runs: bool = False
    works: bool = True

    def run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        if tuple(arguments) == tuple(self.manager.asking()):
            return subprocess.CompletedProcess(arguments, 0 if self.runs else 3)
        self.asked.append(tuple(arguments))
        self.runs = tuple(arguments) in set(map(tuple, self.manager.starting())) and self.works
        return subprocess.CompletedProcess(arguments, 0 if self.works else 1)

    def __call__(self, *arguments: str) -> int:
        app = service_app(lambda: self.manager, lambda: self.command, self.run)
        return run_app(app, arguments)


MANAGERS: list[Callable[[Path], ServiceManager]] = [
    SystemdUser,
    lambda home: LaunchAgent(home, 501),
]


@pytest.fixture(params=MANAGERS, ids=["systemd", "launchd"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(request.param(tmp_path))


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
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
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
    }
    assert set(set_variables(environ)) == {"PDPP_DATA_DIR", "PDPP_PUBLIC_URL"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    command = this_command()
    assert command.variables["PDPP_DATA_DIR"] == str(tmp_path / "kept")
    assert "PDPP_OWNER_TOKEN" not in command.variables
