"""The wheels hold everything: installed into empty environments, they serve and they connect."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import httpx2
import pytest

from bench.clients import StdioCaller
from bench.samples import statement
from pages.parts import PACKAGES, ROOT
from server.tests.app.http_server.served import until
from tests.ports import free_port
from tests.processes import started, stop

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
LOCKED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==", re.MULTILINE)
NOT_OF_THE_ADAPTER = ("pdpp_sources", "personal_server", "apsw", "psycopg", "icalendar", "pypdf")


@dataclass(frozen=True)
class Installed:
    """An environment of its own: its folder, and that of its programs."""

    folder: Path

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def packages(self) -> Path:
        (found,) = (self.folder / "lib").glob("*/site-packages")
        return found


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    folder = tmp_path_factory.mktemp("wheels")
    build = ("wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder)
    parts = [package.parents[1] for package in PACKAGES.values()]
    subprocess.run([*PIP, *build, *parts], check=True)
    assert len(list(folder.glob("*.whl"))) == len(parts)
    yield folder
    shutil.rmtree(folder)  # the search for secrets takes letters in code for a code of a user


def install(folder: Path, wheels: Sequence[Path]) -> Installed:
    """An environment that has these wheels and nothing else yet."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    options = ("--python", python, "install", "--no-deps", "--no-index")
    subprocess.run([*PIP, *options, *wheels], check=True)
    return Installed(folder)


def lend(environment: Installed, lock: str) -> None:
    """Give it the libraries of a lock file, those of this checkout, and no others."""
    for name in LOCKED.findall((ROOT / "requirements" / lock).read_text()):
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue  # of another system or version of Python
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            link = environment.packages / top
            if not link.exists():
                link.symlink_to(Path(sysconfig.get_path("purelib")) / top)


@pytest.fixture(scope="module")
def server(wheels: Path) -> Installed:
    """All four parts, and the libraries of this checkout."""
    made = install(wheels / "server", list(wheels.glob("*.whl")))
    # a path in a .pth file is searched, and its own .pth files, as that of this checkout, are not
    (made.packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return made


@pytest.fixture(scope="module")
def adapter(wheels: Path) -> Installed:
    """The adapter on the kernel, with what `requirements/adapter.txt` names and nothing else."""
    parts = [*wheels.glob("pdpp_kernel-*.whl"), *wheels.glob("pdpp_mcp_server-*.whl")]
    made = install(wheels / "adapter", parts)
    lend(made, "adapter.txt")
    return made


def ran(*arguments: str | Path, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_commands_come_from_the_wheels(server: Installed) -> None:
    for package in PACKAGES:
        script = f"import {package} as p; print(p.__path__[0])"
        found = ran(server.programs / "python", "-c", script)
        assert Path(found.strip()).is_relative_to(server.folder)
    assert ran(server.programs / "pdpp", "--version").strip()
    assert "mbox" in ran(server.programs / "pdpp", "sources")
    ran(server.programs / "pdpp-mcp-server", "--version")  # raises unless it ends with 0


def test_the_adapter_alone_has_its_own_commands(adapter: Installed) -> None:
    script = "import sys, importlib.util as u; print([n for n in sys.argv[1:] if u.find_spec(n)])"
    assert ran(adapter.programs / "python", "-c", script, *NOT_OF_THE_ADAPTER).strip() == "[]"
    shown = ran(adapter.programs / "pdpp", "--help")
    assert {"connect", "status", "read", "mcp"} <= set(shown.split())
    assert "import" not in shown.split()
    ran(adapter.programs / "pdpp-mcp-server", "--version")


@pytest.mark.parametrize(
    ("command", "code"), [(("status",), 78), (("read", "schema"), 78), (("serve",), 64)]
)
def test_the_adapter_alone_says_what_is_missing(
    adapter: Installed, tmp_path: Path, command: tuple[str, ...], code: int
) -> None:
    done = subprocess.run([adapter.programs / "pdpp", *command], cwd=tmp_path, capture_output=True)
    assert done.returncode == code, done.stderr


@dataclass(frozen=True)
class Served:
    origin: str
    cache: Path
    """The credential of an app that its owner allowed to read."""


@pytest.fixture(scope="module")
def served(server: Installed, tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder, port = tmp_path_factory.mktemp("served"), free_port()
    environ = {"PDPP_DATA_DIR": str(folder / "data"), "PDPP_BIND": f"127.0.0.1:{port}"}
    pdpp = server.programs / "pdpp"
    ran(pdpp, "import", statement().path, "--connection", "Checking account", env=environ)
    cache = folder / ".pdpp"
    selection = folder / "selection.json"
    selection.write_text(json.dumps([SELECTION]))
    named = ("--client", "Host", "--from", selection, "--cache-root", cache, "--yes")
    ran(pdpp, "grant", "create", *named, env=environ)
    with (folder / "log").open("w") as log:
        process = started([pdpp, "serve"], env=environ, stderr=log)
    try:
        until(lambda: _answers(port) or process.poll() is not None)
        assert process.poll() is None, (folder / "log").read_text()
        yield Served(f"http://127.0.0.1:{port}", cache)
    finally:
        stop(process)


SELECTION = {
    "type": "https://pdpp.dev/data-access",
    "source": {"id": "https://registry.pdpp.dev/connectors/bank"},
    "purpose_code": "https://pdpp.dev/purpose/agent_context",
    "access_mode": "continuous",
    "streams": [{"name": "transactions", "fields": ["id", "posted_on", "payee", "amount"]}],
}


def _answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/healthz/live").status_code == 200
    except httpx2.TransportError:
        return False


def test_it_serves_with_all_that_it_reads_from_its_own_files(served: Served) -> None:
    login = httpx2.get(f"{served.origin}/owner/login")
    assert login.status_code == 200
    (sheet,) = [part for part in login.text.split('"') if part.startswith("/assets/")]
    assert httpx2.get(f"{served.origin}{sheet}").headers["content-type"].startswith("text/css")
    assert httpx2.post(f"{served.origin}/mcp", json={}).status_code == 401


def test_the_adapter_alone_answers_a_host(served: Served, adapter: Installed) -> None:
    command = [adapter.programs / "pdpp-mcp-server", "--cache-root", served.cache]
    with StdioCaller(command) as host:
        names = {tool["name"] for tool in host.request("tools/list", {})["tools"]}
        assert "query_records" in names
        result = host.call("query_records", {"stream": "transactions", "limit": 2})
        assert len(result["structuredContent"]["data"]["data"]) == 2
    told = ran(adapter.programs / "pdpp", "status", "--json", "--cache-root", served.cache)
    assert json.loads(told)[0]["status"] == "active"
    options = ("transactions", "--json", "--cache-root", served.cache)
    read = ran(adapter.programs / "pdpp", "read", "query", *options)
    assert json.loads(read)["data"]
