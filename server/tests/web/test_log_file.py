from __future__ import annotations

import json
import logging
import os
import resource
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from personal_server.web.log_file import LogFile
from personal_server.web.logs import configure_logging
from server.tests.app.server.test_read_only import disk
from server.tests.web.test_logs import SECRETS, logging_as_it_was

__all__ = ["disk", "logging_as_it_was"]
MOST_BYTES, KEPT = 4_000, 3


@pytest.fixture
def log(tmp_path: Path) -> Generator[LogFile]:
    made = LogFile(tmp_path / "pdpp.log", MOST_BYTES, KEPT)
    yield made
    made.close()


def line(text: str) -> logging.LogRecord:
    return logging.LogRecord("there", logging.WARNING, "here.py", 7, text, None, None)


def told(path: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in path.read_text(encoding="utf-8").splitlines()]


@contextmanager
def no_file_beyond(size_bytes: int) -> Generator[None]:
    """A write beyond it fails, as on a full disk; what fits before is written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, heard)


def test_a_line_is_one_json_object_without_secrets(log: LogFile) -> None:
    configure_logging("info", log)
    logging.getLogger("there").warning("two\nlines with %s", SECRETS[0])
    (said,) = told(log.path)
    assert said["message"] == "two lines with [secret]"
    assert (said["level"], said["from"]) == ("warning", "there")
    assert said["at"].endswith("Z")


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "pdpp.log"
    path.touch(mode=0o644)
    LogFile(path, MOST_BYTES, KEPT).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_begins_anew_and_stays_bounded_in_total(log: LogFile) -> None:
    for number in range(500):
        log.handle(line(f"line {number} {'x' * 80}"))
    files = sorted(log.path.parent.iterdir())
    assert [each.name for each in files] == ["pdpp.log", "pdpp.log.1", "pdpp.log.2"]
    assert all(0 < each.stat().st_size <= MOST_BYTES for each in files)
    assert all(each.stat().st_mode & 0o777 == 0o600 for each in files)
    kept = [said["message"] for each in reversed(files) for said in told(each)]
    numbers = [int(text.split()[1]) for text in kept]
    assert numbers == list(range(numbers[0], 500))  # the newest, in their order, none missing


def test_one_file_alone_is_bounded_too(tmp_path: Path) -> None:
    alone = LogFile(tmp_path / "pdpp.log", MOST_BYTES, 1)
    for number in range(200):
        alone.handle(line(f"line {number} {'x' * 80}"))
    alone.close()
    assert [each.name for each in tmp_path.iterdir()] == ["pdpp.log"]
    assert told(alone.path)[-1]["message"].startswith("line 199")


def test_what_somebody_took_away_is_begun_again(log: LogFile) -> None:
    log.handle(line("before"))
    log.path.unlink()
    log.handle(line("after"))
    assert [said["message"] for said in told(log.path)] == ["after"]


def test_on_a_full_disk_lines_go_to_standard_error_and_health_says_so(
    capsys: pytest.CaptureFixture[str], log: LogFile
) -> None:
    log.handle(line("while there was space"))
    assert not list(log.faults())
    # the last bytes take a part of the line, which must not stay
    with no_file_beyond(log.path.stat().st_size + 20):
        log.handle(line("the disk is full now"))
    (fault,) = log.faults()
    assert (fault.part, fault.code, fault.serving) == ("log", "log_unwritable", True)
    assert log.unwritten == 1
    assert "the disk is full now" in capsys.readouterr().err
    log.handle(line("space again"))
    assert not list(log.faults())
    assert [said["message"] for said in told(log.path)] == ["while there was space", "space again"]


def test_a_name_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "pdpp.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"pdpp\.log"):
        LogFile(tmp_path / "pdpp.log", MOST_BYTES, KEPT)
    assert not os.path.lexists(tmp_path / "elsewhere")


def test_a_disk_that_cannot_be_written_at_the_start_stops_no_server(
    disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    log = LogFile(disk / "pdpp.log", MOST_BYTES, KEPT)
    assert [fault.code for fault in log.faults()] == ["log_unwritable"]
    log.handle(line("read-only"))
    assert "read-only" in capsys.readouterr().err
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    log.handle(line("written"))
    assert not list(log.faults())
    assert [said["message"] for said in told(log.path)] == ["written"]
    log.close()
