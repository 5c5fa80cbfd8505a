"""The frame of every command: one place where errors are caught, printed and become exit codes.

Rule: data goes to standard output, words to standard error; a failure is one sentence and a next
step, never a traceback and never a stored value.
Source: docs/contract/authorization-server.md 14.3.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import cyclopts

from pdpp_mcp_server.commands.failures_shown import (
    EVERY_VARIABLE,
    CommandError,
    failure_of,
    print_failure,
)
from pdpp_mcp_server.settings import InvalidSetting, StdioSettings, adapter_from_env

T = TypeVar("T")
INTERRUPTED = 130


def run_app(app: cyclopts.App, arguments: Sequence[str]) -> int:
    """Run a command line to its exit code."""

    def called() -> object:
        command, bound, _ = app.parse_args(list(arguments), exit_on_error=False, print_error=False)
        if any("~" in word for word in arguments):
            from pdpp_mcp_server.commands.home_paths import from_home  # noqa: PLC0415 (seldom)

            bound = from_home(bound)
        return command(*bound.args, **bound.kwargs)

    return exit_code_of(called, as_json="--json" in arguments)


def exit_code_of(command: Callable[[], object], *, as_json: bool) -> int:
    """Run a command to its exit code; the only place where errors become words."""
    try:
        result = command()
    except (KeyboardInterrupt, SystemExit):  # cyclopts exits by itself on an interrupt
        return INTERRUPTED
    except BrokenPipeError:  # the reader has enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 (the boundary of the command line)
        failure = failure_of(error)
        print_failure(failure, as_json=as_json, out=sys.stdout, err=sys.stderr)
        return failure.exit_code
    return result if isinstance(result, int) and not isinstance(result, bool) else 0


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    from pdpp_mcp_server.commands.quiet_texts import quiet_json  # noqa: PLC0415 (help)

    print(quiet_json(value, indent=2))  # noqa: T201 (data)


def package_version() -> str:
    """The version of this distribution."""
    return version("pdpp-mcp-server")


def adapter_settings_or_exit() -> StdioSettings:
    """The adapter's settings.  Raises: CommandError (`config`)."""
    return usable(adapter_from_env)


def default_cache() -> Path:
    """Where credentials of this directory lie.  Raises: CommandError (`config`)."""
    return adapter_settings_or_exit().cache_root


def usable(read: Callable[[], T]) -> T:
    """The settings that `read` reads.  Raises: CommandError (`config`)."""
    try:
        return read()
    except InvalidSetting as error:
        raise CommandError("config", str(error), EVERY_VARIABLE) from None
