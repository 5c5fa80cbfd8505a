"""`pdpp service`: the server started by the machine itself: a unit of systemd, an agent of launchd.

Rule: it belongs to the person who installs it and keeps the settings that it was given until a
command names them anew; removing it leaves every record where it is.
"""

from __future__ import annotations

import plistlib
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Protocol
from xml.parsers.expat import ExpatError

import cyclopts
import msgspec
from cyclopts import Parameter

from pdpp_kernel.system.own_account import own_number
from pdpp_kernel.system.own_folders import make_folders, write_private
from pdpp_mcp_server.commands.exits import print_json, usable
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.spelled_commands import spelled
from pdpp_mcp_server.commands.tables import console, plain, print_facts, words
from pdpp_mcp_server.settings import one_file_program
from personal_server.settings import Settings, from_env, set_variables

UNIT = "pdpp.service"
LABEL = "dev.pdpp.personal-server"
STOPPING_SECONDS = 30
Run = Callable[[Sequence[str]], subprocess.CompletedProcess[str]]


class ServerCommand(msgspec.Struct, frozen=True):
    """How the server is started.  `variables` holds its settings."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str]


class ServiceManager(Protocol):
    """What starts programs on a machine."""

    @property
    def path(self) -> Path:
        """The file that describes the service."""
        ...

    @property
    def log_hint(self) -> str:
        """How its log is read."""
        ...

    def render(self, command: ServerCommand) -> bytes:
        """The file of a service that runs this."""
        ...

    def settings(self, content: bytes) -> Mapping[str, str]:
        """The PDPP_ variables in a file of this manager; none where the manager reads none."""
        ...

    def starting(self) -> Sequence[Sequence[str]]:
        """The commands that make it known and start it, now and from now on."""
        ...

    def stopping(self) -> Sequence[Sequence[str]]:
        """The commands that end it for good, while its file is still there."""
        ...

    def asking(self) -> Sequence[str]:
        """The command that succeeds while it runs."""
        ...


class SystemdUser(msgspec.Struct, frozen=True):
    """systemd for one person."""

    home: Path

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return self.home / ".config" / "systemd" / "user" / UNIT

    @property
    def log_hint(self) -> str:
        """The command that shows the log."""
        return f"journalctl --user -u {UNIT}"

    def render(self, command: ServerCommand) -> bytes:
        """The text of the unit or property list that starts this command."""
        settings = "".join(
            f"Environment={_quoted(f'{name}={value}')}\n"
            for name, value in sorted(command.variables.items())
        )
        arguments = " ".join(_quoted(argument, "$") for argument in command.arguments)
        return f"""\
[Unit]
Description=Personal server (pdpp)

[Service]
Type=exec
ExecStart={arguments}
{settings}Restart=on-failure
RestartSec=5
# wrong use and wrong settings do not mend themselves
RestartPreventExitStatus=64 78
TimeoutStopSec={STOPPING_SECONDS}
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
SystemCallArchitectures=native

[Install]
WantedBy=default.target
""".encode()

    def settings(self, content: bytes) -> Mapping[str, str]:
        """The settings of a unit, edited or not; systemd ignores broken lines, too."""
        read: dict[str, str] = {}
        for line in content.decode(errors="replace").splitlines():
            key, _, text = line.partition("=")
            if key.strip() == "Environment":
                with suppress(ValueError):
                    pairs = (word.partition("=") for word in shlex.split(text))
                    read.update((name, value) for name, sign, value in pairs if sign)
        return _ours({name: value.replace("%%", "%") for name, value in read.items()})

    def starting(self) -> Sequence[Sequence[str]]:
        """Known, started, and started again later."""
        return (
            ("systemctl", "--user", "daemon-reload"),
            ("systemctl", "--user", "enable", UNIT),
            ("systemctl", "--user", "restart", UNIT),
        )

    def stopping(self) -> Sequence[Sequence[str]]:
        """The commands that stop the service and keep it from starting again."""
        return (("systemctl", "--user", "disable", "--now", UNIT),)

    def asking(self) -> Sequence[str]:
        """The command whose exit code says whether the service runs."""
        return ("systemctl", "--user", "is-active", "--quiet", UNIT)


def _quoted(text: str, doubled: str = "") -> str:
    """A word of a unit: specifiers, and variables where they count, stand for themselves."""
    for character in f"%{doubled}":
        text = text.replace(character, character * 2)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _ours(variables: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in variables.items() if name.startswith("PDPP_")}


class LaunchAgent(msgspec.Struct, frozen=True):
    """launchd for one person."""

    home: Path
    user_id: int

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return self.home / "Library" / "LaunchAgents" / f"{LABEL}.plist"

    @property
    def log_hint(self) -> str:
        """The command that shows the log."""
        return f"tail -F {self._log_file}"

    @property
    def _logs(self) -> Path:
        return self.home / "Library" / "Logs"

    @property
    def _log_file(self) -> str:
        return str(self._logs / "pdpp.log")

    def render(self, command: ServerCommand) -> bytes:
        """The file.  launchd lets a log grow for ever, so that the server writes its own."""
        said_at_start = str(self._logs / "pdpp-start.log")
        variables = {"PDPP_LOG_FILE": self._log_file, **command.variables}
        return plistlib.dumps(
            {
                "Label": LABEL,
                "ProgramArguments": list(command.arguments),
                "EnvironmentVariables": variables,
                "RunAtLoad": True,
                "KeepAlive": {"SuccessfulExit": False},
                "ThrottleInterval": 10,
                "ExitTimeOut": STOPPING_SECONDS,
                "ProcessType": "Background",
                "Umask": 0o077,
                "StandardOutPath": said_at_start,
                "StandardErrorPath": said_at_start,
            }
        )

    def settings(self, content: bytes) -> Mapping[str, str]:
        """The settings of a property list, but for the log that every agent writes."""
        try:
            variables = plistlib.loads(content)["EnvironmentVariables"]
            read = {str(name): str(value) for name, value in variables.items()}
        except (plistlib.InvalidFileException, ExpatError, LookupError, TypeError, AttributeError):
            return {}
        if read.get("PDPP_LOG_FILE") == self._log_file:
            del read["PDPP_LOG_FILE"]
        return _ours(read)

    def starting(self) -> Sequence[Sequence[str]]:
        """Known, started, and started again later."""
        return (("launchctl", "bootstrap", f"gui/{self.user_id}", str(self.path)),)

    def stopping(self) -> Sequence[Sequence[str]]:
        """The commands that stop the service and keep it from starting again."""
        return (("launchctl", "bootout", f"gui/{self.user_id}/{LABEL}"),)

    def asking(self) -> Sequence[str]:
        """The command whose exit code says whether the service runs."""
        return ("launchctl", "print", f"gui/{self.user_id}/{LABEL}")


def service_app(
    manager: Callable[[], ServiceManager],
    command: Callable[[Mapping[str, str]], ServerCommand],
    run: Run,
) -> cyclopts.App:
    """The command group `pdpp service`.

    Shapes: `command` takes the settings that the service has and answers how it runs from now on.
    """
    app = cyclopts.App(name="service", help="Start the server automatically at login.")

    @app.command
    def install(
        *, start: Annotated[bool, Parameter(name="--start", negative="--no-start")] = True
    ) -> None:
        """Start the server now, at every login, and again when it fails.

        The service uses the PDPP_ variables set for this command, and keeps those that it was
        installed with. To change one, set it and run the command again; to drop one, set it to an
        empty value.

        Parameters
        ----------
        start
            Start the service now. With --no-start, only write its file.
        """
        service, out = manager(), console()
        given = _given(service)
        planned = command(given)
        if start and service.path.exists():
            _each(run, service.stopping())
        # what lies there is started as this account, and holds the password of a database
        make_folders(service.path.parent)
        write_private(service.path, service.render(planned))
        out.print(f"Written: {service.path}", soft_wrap=True)
        _tell_kept(given, planned.variables)
        if start:
            _must(run, service.starting())
            out.print(f"The server is running. Its log: {service.log_hint}", soft_wrap=True)

    @app.command
    def status(*, json: bool = False) -> int:
        """Show whether the service is installed and running; exit code 69 if it is not running.

        Parameters
        ----------
        json
            Print JSON.
        """
        service = manager()
        is_installed = service.path.exists()
        runs = is_installed and run(service.asking()).returncode == 0
        given = _given(service)
        planned = command(given)
        is_current = is_installed and service.path.read_bytes() == service.render(planned)
        if json:
            status_shown = {"installed": is_installed, "running": runs, "current": is_current}
            print_json({**status_shown, "path": str(service.path)})
        else:
            waiting = "service installed, but not running" if is_installed else "not running"
            facts = {
                "file": str(service.path)
                if is_installed
                else "service not installed; to install it: pdpp service install",
                "state": "runs" if runs else waiting,
                "log": service.log_hint,
            }
            print_facts(facts.items(), console())
            if is_installed and not is_current:
                words().print(_difference(given, _chosen(planned.variables)), soft_wrap=True)
                words().print("Update the service: pdpp service install")
        return 0 if runs else 69

    @app.command
    def remove() -> None:
        """Stop the service and remove it; your records stay."""
        service = manager()
        if not service.path.exists():
            raise CommandError(
                "not_found", "pdpp is not installed as a service of this system.", ""
            )
        given = _given(service)
        _each(run, service.stopping())
        service.path.unlink()
        console().print(f"Removed: {service.path}", soft_wrap=True)
        if given:
            _tell_again(given)

    return app


def _given(service: ServiceManager) -> Mapping[str, str]:
    """What the installed service was given; nothing where none is installed."""
    if not service.path.exists():
        return {}
    return _chosen(service.settings(service.path.read_bytes()))


def _chosen(variables: Mapping[str, str]) -> Mapping[str, str]:
    """Settings in order, without the one that every service has."""
    every = {"PDPP_DATA_DIR": str(Settings().data_dir.expanduser())}
    return {name: value for name, value in sorted(variables.items()) if every.get(name) != value}


def _tell_kept(given: Mapping[str, str], planned: Mapping[str, str]) -> None:
    """Say which settings the service keeps, and which it had."""
    out = console()
    kept = [name for name in given if planned.get(name) == given[name]]
    dropped = [name for name in given if name not in _chosen(planned)]
    if kept:
        out.print(
            f"The service keeps these settings: {', '.join(kept)}. To drop one, install with an "
            f"empty value: {kept[0]}= pdpp service install",
            soft_wrap=True,
        )
    if dropped:
        out.print(f"The service no longer has these settings: {', '.join(dropped)}", soft_wrap=True)


def _tell_again(given: Mapping[str, str]) -> None:
    """Print the command that installs a service with these settings."""
    shown = {name: _without_password(value) for name, value in given.items()}
    out = console()
    out.print("To install the service again with the same settings:")
    if shown != given:
        out.print("(Put the password of your database in place of PASSWORD.)")
    pairs = " ".join(f"{name}={shlex.quote(value)}" for name, value in shown.items())
    out.print(plain(f"{pairs} {spelled('pdpp service install')}"), soft_wrap=True)


def _difference(given: Mapping[str, str], planned: Mapping[str, str]) -> str:
    names = sorted({name for name, _ in given.items() ^ planned.items()})
    if not names:
        return "The service was installed by another version, or another copy, of this program."
    return f"This terminal and the service have different values of {', '.join(names)}."


_PASSWORD = re.compile(r"(://[^/:@]*:)[^/]*(?=@)|([?&]password=)[^&]*")


def _without_password(value: str) -> str:
    return _PASSWORD.sub(lambda found: f"{found[1] or found[2]}PASSWORD", value)


def _each(run: Run, commands: Sequence[Sequence[str]]) -> None:
    """Commands that may fail: what they end may have ended."""
    for command in commands:
        run(command)


_START_STEP = (
    "Run that command to see why. If there is no user session, run"
    " `loginctl enable-linger $USER`, then sign in again."
    if sys.platform == "linux"
    else "Run that command to see why."
)


def _must(run: Run, commands: Sequence[Sequence[str]]) -> None:
    for command in commands:
        if run(command).returncode != 0:
            raise CommandError(
                "unavailable",
                f"The service file is written, but `{' '.join(command)}` failed.",
                _START_STEP,
            )


def this_manager() -> ServiceManager:
    """The one of this machine.  Raises: CommandError."""
    if sys.platform == "darwin":
        return LaunchAgent(Path.home(), own_number())
    if sys.platform == "linux":
        return SystemdUser(Path.home())
    raise CommandError(
        "unavailable",
        "Only systemd and launchd are supported here.",
        "Configure your system to run `pdpp serve` at startup.",
    )


def this_command(given: Mapping[str, str]) -> ServerCommand:
    """The program that runs, with the settings that are set here, then those `given` before.

    The data directory is always named.  Raises: CommandError (`config`).
    """
    variables = usable(lambda: set_variables(given))
    settings = usable(lambda: from_env(variables))
    environ = {**variables, "PDPP_DATA_DIR": str(settings.data_dir.absolute())}
    for name, path in (
        ("PDPP_OWNER_PASSWORD_FILE", settings.owner_password_file),
        ("PDPP_METRICS_TOKEN_FILE", settings.metrics_token_file),
        ("PDPP_LOG_FILE", settings.log_file),
        ("PDPP_BACKUP_DIR", settings.backup_dir),
    ):
        if path is not None:
            environ[name] = str(path.absolute())
    # the file that was downloaded, and not what this version of it unpacked
    whole = one_file_program()
    python = (sys.executable, "-P", "-m", "personal_server.cli")
    program = python if whole is None else (whole,)
    return ServerCommand((*program, "serve"), environ)


def _run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(arguments, capture_output=True, text=True, check=False)  # noqa: S603 (ours)
    except FileNotFoundError:
        return subprocess.CompletedProcess(arguments, 127)


service = service_app(this_manager, this_command, _run)
