"""`pdpp import` as a feed has it run: in a process that comes from one which has loaded it.

Source: `pdpp_sources/process_starter.py`.
"""

from __future__ import annotations

import email.parser
import importlib.metadata
import importlib.resources.readers
import os
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from pdpp_kernel.system.confinement import end_with
from pdpp_mcp_server.commands.exits import exit_code_of
from pdpp_sources.started_process import STARTS
from personal_server.cli import report_texts
from personal_server.cli.import_command import FormatOptions, ProgramOptions, import_command
from personal_server.cli.owner_zone import ConfiguredZone
from personal_server.cli.store import open_imports, open_reader
from personal_server.domain import language_model
from personal_server.feeds.wanted_imports import WantedImport, unpacked
from personal_server.settings import become
from personal_server.storage.sql.migrations import known_steps

# What readers and imports come to need, so that all of them share it.
_PRELOADED = (
    email.parser,
    importlib.metadata,
    importlib.resources.readers,
    report_texts,
    language_model,
    known_steps(),
)


def main(files: Sequence[int], _seconds: float, _memory_bytes: int) -> NoReturn:
    """Run the command; its report goes to whoever asked, and its claim ends with it.

    What it says beside that is for a terminal, and names files: it goes nowhere.
    """
    requests, replies, asking, _claim = files
    end_with(os.getppid())
    STARTS.ask_through(socket.socket(fileno=asking))
    with os.fdopen(requests, "rb") as given:
        wanted, environment = unpacked(given.read())
    become(environment)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for file, stream in ((replies, sys.stdout), (nowhere, sys.stderr)):
        os.dup2(file, stream.fileno())
        os.close(file)
    sys.stderr = None  # so that no words are made for it
    opened = partial(open_imports, takes_little=True)
    code = run_import(import_command(opened, open_reader, ConfiguredZone()), wanted)
    sys.stdout.flush()
    os._exit(code)


def run_import(command: Callable[..., int], wanted: WantedImport) -> int:
    """Run `pdpp import` to its exit code, without the command line, which costs memory and time."""
    options = ProgramOptions(within=wanted.within, ask=True, fed=True, lists=wanted.lists)
    form = FormatOptions(as_=wanted.source)
    account = wanted.account
    called = partial(
        command, *wanted.paths, connection=account, form=form, program=options, json=True
    )
    return exit_code_of(called, as_json=True)
