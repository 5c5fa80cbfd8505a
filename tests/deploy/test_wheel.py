"""The wheels of the four parts hold everything: in an empty environment, they serve."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Generator
from pathlib import Path

import httpx2
import pytest

from pages.parts import PACKAGES
from server.tests.app.http_server.served import until
from tests.browser.chromium import free_port
from tests.processes import started, stop


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """The folder of an environment that has the wheels, and the libraries of this one."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    build = ("wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder)
    parts = [package.parents[1] for package in PACKAGES.values()]
    subprocess.run([*pip, *build, *parts], check=True)
    wheels = list(folder.glob("*.whl"))
    assert len(wheels) == len(parts)
    venv.create(folder / "env")
    python = folder / "env" / "bin" / "python"
    subprocess.run(
        [*pip, "--python", python, "install", "--no-deps", "--no-index", *wheels], check=True
    )
    # a path in a .pth file is searched, and its own .pth files, as that of this checkout, are not
    (packages,) = (folder / "env" / "lib").glob("*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    yield python.parent
    shutil.rmtree(folder)  # the search for secrets takes letters in code for a code of a user


def ran(*arguments: str | Path) -> str:
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def test_its_commands_come_from_the_wheel(programs: Path) -> None:
    for package in PACKAGES:
        found = ran(programs / "python", "-c", f"import {package} as p; print(p.__path__[0])")
        assert Path(found.strip()).is_relative_to(programs.parent)
    assert ran(programs / "pdpp", "--version").strip()
    assert "mbox" in ran(programs / "pdpp", "sources")
    ran(programs / "pdpp-mcp-server", "--version")  # raises unless it ends with 0


@pytest.fixture
def origin(programs: Path, tmp_path: Path) -> Generator[str]:
    port = free_port()
    environ = {"PDPP_DATA_DIR": str(tmp_path / "data"), "PDPP_BIND": f"127.0.0.1:{port}"}
    with (tmp_path / "log").open("w") as log:
        process = started([programs / "pdpp", "serve"], env=environ, stderr=log)
    try:
        until(lambda: _answers(port) or process.poll() is not None)
        assert process.poll() is None, (tmp_path / "log").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        stop(process)


def _answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/healthz/live").status_code == 200
    except httpx2.TransportError:
        return False


def test_it_serves_with_all_that_it_reads_from_its_own_files(origin: str) -> None:
    login = httpx2.get(f"{origin}/owner/login")
    assert login.status_code == 200
    (sheet,) = [part for part in login.text.split('"') if part.startswith("/assets/")]
    assert httpx2.get(f"{origin}{sheet}").headers["content-type"].startswith("text/css")
    assert httpx2.post(f"{origin}/mcp", json={}).status_code == 401
