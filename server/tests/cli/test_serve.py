"""The server as a process: what its owner sees when it starts, and when it cannot."""

import os
import pty
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from pdpp_mcp_server.commands.failures_shown import CommandError
from personal_server.app.stores import open_stores
from personal_server.cli.serve import has_address, listening
from personal_server.cli.serving_process import SIGN_IN_PAGE, require_password
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.settings import Settings, from_env
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.ports import free_port
from tests.processes import started, stop, stopped
from tests.secrecy.plugin import WATCH

Pdpp = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    return environment_of(tmp_path)


def environment_of(folder: Path) -> dict[str, str]:
    """A machine of its own: no setting of this one, data of its own, a free port."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PDPP_")}  # noqa: TID251 (a child's environment)
    return kept | {
        "PDPP_DATA_DIR": str(folder / "data"),
        "PDPP_BIND": f"127.0.0.1:{free_port()}",
        "PDPP_WORKERS": "1",
    }


def command(*arguments: str) -> list[str]:
    return [str(Path(sysconfig.get_path("scripts")) / "pdpp"), *arguments]


@pytest.fixture
def pdpp(machine: Mapping[str, str]) -> Pdpp:
    return commands_on(machine)


def commands_on(machine: Mapping[str, str]) -> Pdpp:
    """What runs `pdpp` there."""

    def run(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments),
            env={**machine, **changes},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    return run


@pytest.fixture
def serve(machine: Mapping[str, str]) -> Generator[Callable[..., subprocess.Popen[str]]]:
    """Start the server with changed variables, and stop it at the end."""
    with ExitStack() as stack:

        def start(**changes: str) -> subprocess.Popen[str]:
            environment = {**machine, **changes}
            process = started(command("serve"), env=environment, stderr=subprocess.PIPE, text=True)
            stack.callback(
                lambda: WATCH.log(stopped(process, signal.SIGINT), "standard error of pdpp serve")
            )
            return process

        yield start


LAST_OF_GREETING = "Ctrl-C"


def greeting(process: subprocess.Popen[str]) -> str:
    """What the server says until the last line of its greeting."""
    lines: list[str] = []
    for line in process.stderr or ():
        lines.append(line)
        if LAST_OF_GREETING in line:
            break
    WATCH.log("".join(lines), "standard error of pdpp serve")
    return "".join(lines)


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that goes on while others are started beside it."""

    process: subprocess.Popen[str]
    said: str
    machine: Mapping[str, str]

    def pdpp(self, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return commands_on(self.machine)(*arguments, **changes)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    machine = environment_of(tmp_path_factory.mktemp("serving"))
    process = started(command("serve"), env=machine, stderr=subprocess.PIPE, text=True)
    try:
        yield Serving(process, greeting(process), machine)
    finally:
        WATCH.log(stopped(process, signal.SIGINT), "standard error of pdpp serve")


def test_the_greeting_has_the_address_and_one_way_for_each_host(serving: Serving) -> None:
    said, machine = serving.said, serving.machine
    origin = f"http://{machine['PDPP_BIND']}"
    assert f"{origin}/mcp" in said
    assert "claude mcp add" in said
    assert machine["PDPP_DATA_DIR"] in said
    assert "pdpp owner link" in said  # standard error is no terminal here: no link is printed
    assert "pdpp_ol_" not in said
    elsewhere = serving.pdpp("owner", "link", PDPP_BIND="127.0.0.1:1")  # as by `serve --port`
    assert elsewhere.stdout.startswith(f"{origin}/owner/enter?t=")
    assert httpx2.get(f"{origin}/healthz").json() == {"status": "ok"}


@pytest.mark.skipif(sys.platform != "linux", reason="a screen is a variable there")
@pytest.mark.parametrize(("opens", "screen"), [("1", ":0"), ("0", ":0"), ("1", "")])
def test_a_desktop_is_shown_the_sign_in_link_once(
    machine: Mapping[str, str], tmp_path: Path, opens: str, screen: str
) -> None:
    page, opened, browser = (tmp_path / name for name in ("data", "opened", "browser"))
    page /= SIGN_IN_PAGE
    os.mkfifo(opened)
    browser.write_text(f'#!/bin/sh\n(echo "$1"; stat -c %a {page}; cat {page}) > {opened}\n')
    browser.chmod(0o755)
    ours, theirs = pty.openpty()
    desktop = {"DISPLAY": screen, "WAYLAND_DISPLAY": "", "BROWSER": f"{browser} %s"}
    process = started(
        command("serve"), env={**machine, **desktop, "PDPP_OPEN_BROWSER": opens}, stderr=theirs
    )
    os.close(theirs)
    is_opened = (opens, screen) == ("1", ":0")
    with os.fdopen(ours, encoding="utf-8", errors="replace") as terminal:
        said = ""
        while LAST_OF_GREETING not in said:
            said += terminal.readline()
        told = opened.read_text() if is_opened else ""
        assert page.exists() is is_opened
        stop(process, signal.SIGINT)
    (link,) = re.findall(r"http://\S+/owner/enter\?t=\S+", said)
    if is_opened:
        address, mode, content = told.splitlines()
        assert (address, mode) == (page.as_uri(), "600")
        assert "/owner/enter?t=pdpp_ol_" in content
        assert link not in content  # what is printed is not spent by the browser that opened
    assert not page.exists()


def test_a_second_server_on_the_same_data_is_told_so_and_the_first_lives_on(
    serving: Serving,
) -> None:
    second = serving.pdpp("serve", PDPP_BIND=f"127.0.0.1:{free_port()}")
    assert second.returncode == 69
    assert second.stderr.startswith("pdpp: storage_unavailable: ")
    assert "Traceback" not in second.stderr
    assert httpx2.get(f"http://{serving.machine['PDPP_BIND']}/healthz").status_code == 200


def test_commands_work_beside_the_server(serving: Serving) -> None:
    link = serving.pdpp("owner", "link")
    assert link.returncode == 0
    assert httpx2.get(link.stdout.strip()).status_code == 200


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux")
def test_a_crash_would_leave_no_image_of_its_memory(serving: Serving) -> None:
    limits = Path(f"/proc/{serving.process.pid}/limits").read_text(encoding="utf-8").splitlines()
    core = next(line for line in limits if line.startswith("Max core file size"))
    assert core.split()[-3:-1] == ["0", "0"]


def test_a_busy_port_is_named_in_one_sentence() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        settings = from_env({"PDPP_BIND": f"127.0.0.1:{other.getsockname()[1]}"})
        with pytest.raises(CommandError) as raised, listening("127.0.0.1", settings.bind_port):
            pass
    assert raised.value.failure.exit_code == 69
    assert str(other) not in raised.value.failure.message


@pytest.mark.skipif(not has_address("::1"), reason="this machine has no IPv6")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_every_address_of_localhost_is_the_servers(
    serve: Callable[..., subprocess.Popen[str]], machine: dict[str, str], workers: str
) -> None:
    greeting(serve(PDPP_WORKERS=workers))
    port = int(machine["PDPP_BIND"].rpartition(":")[2])
    for host in ("127.0.0.1", "[::1]", "localhost"):
        assert httpx2.get(f"http://{host}:{port}/healthz").status_code == 200
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as relay, pytest.raises(OSError, match="in use"):
            relay.bind((host, port))


@pytest.mark.skipif(not has_address("::1"), reason="this machine has no IPv6")
@pytest.mark.parametrize(("taken", "bound"), [("::1", "127.0.0.1"), ("127.0.0.1", "[::1]")])
def test_a_server_does_not_start_where_another_program_is_localhost(
    pdpp: Pdpp, machine: dict[str, str], taken: str, bound: str
) -> None:
    port = int(machine["PDPP_BIND"].rpartition(":")[2])
    with socket.socket(socket.AF_INET6 if ":" in taken else socket.AF_INET) as relay:
        relay.bind((taken, port))
        relay.listen()
        refused = pdpp("serve", PDPP_BIND=f"{bound}:{port}")
    assert refused.returncode == 69
    assert f":{port}" in refused.stderr
    assert "localhost" in refused.stderr
    assert "ss -ltnp" in refused.stderr


def test_who_starts_a_server_twice_is_told_that_it_runs(serving: Serving) -> None:
    again = serving.pdpp("serve")
    assert again.returncode == 69
    assert "owner link" in again.stderr
    beside = serving.pdpp("serve", "--port", "0")
    assert beside.returncode == 69
    assert "PDPP_DATA_DIR" in beside.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_that_cannot_begin_says_why_and_nothing_else(
    pdpp: Pdpp, tmp_path: Path, workers: str
) -> None:
    with open_stores(Settings(data_dir=tmp_path / "data"), serving=False):
        pass
    (tmp_path / "data" / "personal-server.sqlite3").write_bytes(b"no database")
    refused = pdpp("serve", PDPP_WORKERS=workers)
    assert refused.returncode == 69
    assert [line[:1] for line in refused.stderr.splitlines()] == ["p", " "]


def test_a_database_of_a_newer_version_is_left_alone(pdpp: Pdpp, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    with open_stores(settings, serving=False):
        pass
    with closing(sqlite3.connect(settings.database_path)) as database:
        database.execute("INSERT INTO schema_version VALUES ('999_of_later', 1)")
        database.commit()
    refused = pdpp("serve")
    assert refused.returncode != 0
    assert refused.stderr.startswith("pdpp: storage_unavailable: ")
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("value", ["http://me.example", "forwarded"])
def test_an_unusable_setting_ends_with_78(pdpp: Pdpp, value: str) -> None:
    refused = pdpp("serve", PDPP_PUBLIC_URL=value)
    assert refused.returncode == 78
    assert "PDPP_PUBLIC_URL" in refused.stderr


def owner() -> OwnerSignIn:
    return OwnerSignIn(MemoryAuthorizationStore("own_x"), lambda: 1, lambda size: b"x" * size)


@pytest.mark.parametrize(
    "environ", [{"PDPP_PUBLIC_URL": "https://me.example"}, {"PDPP_BIND": "0.0.0.0:7662"}]
)
def test_a_reachable_server_needs_a_password(environ: dict[str, str]) -> None:
    sign_in, settings = owner(), from_env(environ)
    with pytest.raises(CommandError) as raised:
        require_password(sign_in, settings)
    assert raised.value.failure.exit_code == 78
    sign_in.set_password("a long enough phrase")
    require_password(sign_in, settings)


def test_the_password_file_counts_on_the_first_start_only(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("a long enough phrase\n", encoding="utf-8")
    settings = Settings(owner_password_file=file, public_url="https://me.example")
    sign_in = owner()
    require_password(sign_in, settings)
    file.unlink()
    require_password(sign_in, settings)
    assert sign_in.has_password()
    with pytest.raises(CommandError):
        require_password(owner(), settings)


SUPERVISING = """
import gc, sys
from personal_server.cli import serve

class Told(serve.Supervisor):
    def run(self):
        print(gc.isenabled())
        return 0

platform = sys.argv[1]
begun, serve.Supervisor = serve.workers_of, Told
serve.workers_of = lambda _: begun(platform)
sys.exit(serve.serve(workers=2))
"""


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_whoever_supervises_for_years_looks_for_what_nothing_refers_to(
    machine: Mapping[str, str], platform: str
) -> None:
    program = [sys.executable, "-c", SUPERVISING, platform]
    told = subprocess.run(program, env=machine, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True"]
