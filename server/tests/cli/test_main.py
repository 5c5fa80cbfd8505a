"""The table of commands: each is imported only when it is called."""

import importlib
import inspect
import re
import subprocess
import sys

import cyclopts
import pytest

from pages.generated import every_command
from pdpp_mcp_server.commands.main import OWN, command_line, installed

PROGRAM = "import sys; from pdpp_mcp_server.commands.main import run\ntry: run()\n"
LOADED = PROGRAM + "except SystemExit: print(*sys.modules, file=sys.stderr)"


def loaded(*arguments: str) -> set[str]:
    """The modules that a command line has imported when it ends."""
    command = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def own_help(path: str) -> str:
    module, _, name = path.partition(":")
    target = getattr(importlib.import_module(module), name)
    if isinstance(target, cyclopts.App) and target.default_command is None:
        return target.help
    function = target.default_command if isinstance(target, cyclopts.App) else target
    return (inspect.getdoc(function) or "").partition("\n\nParameters")[0]


COMMANDS = {**installed(), **OWN}
ROOMS = ("personal_server.cli.", "pdpp_mcp_server.commands.")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_in_the_table_is_the_command_s_own(command: str) -> None:
    _, path, text = COMMANDS[command]
    assert text == own_help(path)


def test_what_help_calls_an_option_is_one() -> None:
    """`pdpp` itself takes no option's opposite by itself, so each that a text names is declared."""
    line, unknown = command_line(), dict[str, set[str]]()
    for app in every_command(line):
        if app.default_command is None:
            continue
        text = inspect.getdoc(app.default_command) or ""
        arguments = app.assemble_argument_collection(default_parameter=line.default_parameter)
        options = {name for one in arguments for name in one.names}
        unknown[text] = set(re.findall(r"--no-[a-z-]+", text)) - options
    assert len(unknown) > 60
    assert [text for text, options in unknown.items() if options] == []


def test_help_loads_no_command() -> None:
    assert {name for name in loaded("--help") if name.startswith(ROOMS)} == {
        "pdpp_mcp_server.commands.exits",
        "pdpp_mcp_server.commands.failures_shown",
        "pdpp_mcp_server.commands.main",
        "pdpp_mcp_server.commands.spelled_commands",
        "personal_server.cli.commands",
    }


@pytest.mark.parametrize("arguments", [["--version"], ["status", "--help"], ["export", "--help"]])
def test_a_light_command_loads_nothing_heavy(arguments: list[str]) -> None:
    assert not loaded(*arguments) & {"starlette", "mcp", "uvicorn", "dateparser", "icalendar"}
