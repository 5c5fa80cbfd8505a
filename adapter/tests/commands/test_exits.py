from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import cyclopts
import pytest
from rich.text import Text

from pdpp_kernel.errors import AmbiguousConnection, NotFound, StorageUnavailable
from pdpp_mcp_server.commands.exits import print_json, run_app
from pdpp_mcp_server.commands.failures_shown import (
    EXIT_OF_CODE,
    CommandError,
    Failure,
    failure_of,
    print_failure,
)
from pdpp_mcp_server.commands.spelled_commands import spelled
from pdpp_mcp_server.commands.tables import console, plain, table
from pdpp_mcp_server.rs_client.credentials import CredentialError, NotConnected

ROOT = Path(__file__).parents[3]
app = cyclopts.App(name="pdpp")


@app.command
def fail(word: str, *, json: bool = False) -> int:
    if word == "interrupt":
        raise KeyboardInterrupt
    if word == "defect":
        raise ValueError("a secret")
    if word == "wire":
        raise AmbiguousConnection("Several sources could answer.")
    if word == "three":
        return 3
    raise CommandError(word, "It does not go.", "Do something else.")


@app.command
def chatter() -> None:
    for number in range(100_000):
        print(number)


@app.command
def chatter_in_lines() -> None:
    for number in range(20_000):
        console().print(str(number))


@pytest.mark.parametrize(("code", "number"), sorted(EXIT_OF_CODE.items()))
def test_each_word_of_the_table_has_its_number(code: str, number: int) -> None:
    assert run_app(app, ["fail", code]) == number


def test_every_credential_error_is_in_the_table() -> None:
    assert {error.code for error in CredentialError.__subclasses__()} <= set(EXIT_OF_CODE)


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (NotFound("x"), 5),
        (AmbiguousConnection("x"), 6),
        (StorageUnavailable("x"), 69),
        (NotConnected("x", "y"), 78),
    ],
)
def test_errors_of_the_program_have_an_exit_code(error: Exception, number: int) -> None:
    assert failure_of(error).exit_code == number


def test_an_error_is_one_line_and_a_next_step_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_app(app, ["fail", "not_found"]) == 5
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "pdpp: not_found: It does not go.\n  Do something else.\n"


def test_with_json_the_error_is_an_object_on_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_app(app, ["fail", "not_found", "--json"]) == 5
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {
        "error": {
            "code": "not_found",
            "message": "It does not go.",
            "next_step": "Do something else.",
        }
    }


def test_a_defect_tells_nothing_of_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(app, ["fail", "defect"]) == 1
    assert "a secret" not in "".join(capsys.readouterr())


def test_an_interrupt_ends_with_130_and_a_result_with_itself() -> None:
    assert run_app(app, ["fail", "interrupt"]) == 130
    assert run_app(app, ["fail", "three"]) == 3


@pytest.mark.parametrize("arguments", [["fail"], ["nonsense"], ["fail", "x", "--unknown"]])
def test_wrong_usage_ends_with_64(arguments: list[str]) -> None:
    assert run_app(app, arguments) == 64


@pytest.mark.parametrize("command", ["chatter", "chatter-in-lines"])
def test_a_reader_that_has_enough_is_no_failure(command: str) -> None:
    script = (
        "import sys; from adapter.tests.commands.test_exits import app, run_app;"
        f"sys.exit(run_app(app, ['{command}']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_help_ends_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(app, ["--help"]) == 0
    assert "fail" in capsys.readouterr().out


def test_a_wire_error_that_the_table_does_not_name_goes_by_its_status() -> None:
    assert Failure("query_timeout", "x", status=503).exit_code == 69
    assert Failure("invalid_filter", "x", status=400).exit_code == 64


def test_the_commands_of_a_next_step_are_spelled_as_they_work_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pdpp_mcp_server.commands.spelled_commands.own_command", lambda: "bin/pdpp")
    assert spelled("Run `pdpp sources`, or pdpp import FILE.") == (
        "Run `bin/pdpp sources`, or bin/pdpp import FILE."
    )
    assert spelled("my-pdpp runs, bin/pdpp serve, pdpp.toml") == (
        "my-pdpp runs, bin/pdpp serve, pdpp.toml"
    )
    print_failure(
        Failure("usage", "No.", "See `pdpp --help`."), as_json=False, out=sys.stdout, err=sys.stderr
    )
    assert "bin/pdpp --help" in capsys.readouterr().err
    console(sys.stderr).print("pdpp serve", plain("pdpp serve"))
    assert capsys.readouterr().err.strip() == "bin/pdpp serve pdpp serve"


STEERING = "\x1b]52;c;eA==\x07\x9b31m\u202e\u2028"


def is_quiet(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


def test_no_failure_steers_a_terminal() -> None:
    out, err = io.StringIO(), io.StringIO()
    failure = Failure(f"usage{STEERING}", f"a{STEERING}", f"b{STEERING}")
    print_failure(failure, as_json=False, out=out, err=err)
    print_failure(failure, as_json=True, out=out, err=err)
    assert err.getvalue()
    assert is_quiet(err.getvalue())
    assert is_quiet(out.getvalue())
    assert json.loads(out.getvalue())["error"]["message"] == f"a{STEERING}"


def test_no_json_steers_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"subject": f"👩\u200d👩 a\nb{STEERING}", STEERING: ["\x7f", "\U000e0041"]}
    print_json(value)
    printed = capsys.readouterr().out
    assert is_quiet(printed.replace("\u200d", "")), "joined pictures stay as they are"
    assert json.loads(printed) == value


def test_nothing_that_is_printed_steers_a_terminal_wherever_it_stands() -> None:
    shown = io.StringIO()
    made = table([STEERING], [[Text(STEERING)], [STEERING]])
    for each in (made, Text.assemble("code ", (STEERING, "bold")), STEERING):
        console(shown).print(each)
    assert is_quiet(shown.getvalue())
