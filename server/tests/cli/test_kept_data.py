"""What commands say that find nothing, what belongs to somebody else, or no driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pdpp_mcp_server.commands.exits import run_app
from pdpp_mcp_server.commands.main import command_line
from personal_server.app.stores import open_stores
from personal_server.settings import Settings
from server.tests.app.server.test_collectors import MANIFEST

LISTING = [
    ["grant", "list"],
    ["connection", "list"],
    ["feed", "list"],
    ["canary", "list"],
    ["collector", "list"],
    ["subscription", "list"],
    ["disclosures"],
    ["receipts"],
    ["records"],
    ["search", "rain"],
    ["semantic", "status"],
    ["backup", "status"],
]
REFUSED = [
    ["verify"],
    ["backup", "list"],
    ["backup", "copy.tar"],
    ["export"],
    ["export", "copy.zip"],
    ["doctor", "--data"],
    ["watch-changes", "--once"],
]


def run(words: list[str]) -> int:
    return run_app(command_line(), words)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / "mistyped"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mistyped"


def test_commands_that_read_make_nothing_in_a_mistyped_directory(nowhere: Path) -> None:
    assert {tuple(words): run(words) for words in LISTING} == {tuple(w): 0 for w in LISTING}
    assert not nowhere.exists()


def test_what_an_empty_store_would_answer_wrongly_is_refused(nowhere: Path) -> None:
    assert {tuple(words): run(words) for words in REFUSED} == {tuple(w): 5 for w in REFUSED}
    assert os.listdir(nowhere.parent) == []


def test_what_begins_a_directory_still_makes_it(nowhere: Path) -> None:
    (nowhere.parent / "plays.json").write_text(json.dumps(MANIFEST), encoding="utf-8")
    assert run(["collector", "create", "Player", "--declaration", "plays.json"]) == 0
    assert nowhere.exists()


def test_a_link_for_a_server_that_does_not_run_makes_none(nowhere: Path) -> None:
    assert run(["owner", "link"]) == 69
    assert not nowhere.exists()


IN_A_DIRECTORY_OF_ANOTHER = """
import sys
from pdpp_mcp_server.commands.exits import run_app
from pdpp_mcp_server.commands.main import command_line
for words in sys.argv[1:]:
    print(words, file=sys.stderr)
    print(run_app(command_line(), words.split(" ")), file=sys.stderr)
"""


def test_a_directory_that_is_not_ours_to_read_is_told_by_every_command(tmp_path: Path) -> None:
    closed = tmp_path / "data"
    with open_stores(Settings(data_dir=closed), serving=False):
        pass
    closed.chmod(0)
    # who may read everything gives that up
    power = "--bounding-set=-dac_override,-dac_read_search"
    first = ["setpriv", power] if os.geteuid() == 0 else []
    commands = [" ".join(words) for words in (*LISTING, *REFUSED, ["status"], ["sources"])]
    done = subprocess.run(
        [*first, sys.executable, "-c", IN_A_DIRECTORY_OF_ANOTHER, *commands],
        cwd=tmp_path,
        env={**os.environ, "PDPP_DATA_DIR": str(closed)},  # noqa: TID251 (a child's environment)
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    closed.chmod(0o700)
    assert "internal_error" not in done.stderr
    assert done.stderr.count("storage_unavailable") == len(commands), done.stderr


def test_postgresql_without_its_driver_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "personal_server.storage.postgres.database", None)
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / "data"))
    with open_stores(Settings(data_dir=tmp_path / "data"), serving=False):
        pass
    address = "postgresql://nobody@127.0.0.1:1/none"
    assert run(["move", "--to", address]) == 78
    monkeypatch.setenv("PDPP_DATABASE_URL", address)
    monkeypatch.setenv("PDPP_WORKERS", "1")
    for words in (["grant", "list"], ["serve", "--port", "0"]):
        assert run(words) == 78
    assert capsys.readouterr().err.count("postgresql") == 6


def test_a_worker_whose_supervisor_ended_meanwhile_says_so(tmp_path: Path) -> None:
    program = (
        "import socket, sys\n"
        "from personal_server.app.shared_memory import SharedMemory\n"
        "from personal_server.app.worker_processes import WorkerRole\n"
        "import msgspec, personal_server.cli.serving_process as worker\n"
        "listener = socket.create_server(('127.0.0.1', 0))\n"
        "theirs, ours = socket.socketpair()\n"
        "theirs.close()\n"
        "role = WorkerRole(number=0, of=2, listeners=(listener.detach(),),\n"
        "    memory=SharedMemory.make(2).descriptor, line=ours.detach())\n"
        "sys.argv[1:] = [msgspec.json.encode(role).decode()]\n"
        "sys.exit(worker.main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PDPP_DATA_DIR": str(tmp_path / "data")},  # noqa: TID251 (a child's environment)
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 69
    assert done.stderr.count("pdpp: unavailable:") == 1, done.stderr
