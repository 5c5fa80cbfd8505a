"""Commands that read exports: the process that reads is begun before they are loaded.

It loads what reads while this process loads what stores; else each waited for the other.
"""

from __future__ import annotations

from importlib import import_module

from pdpp_sources.started_process import READER, STARTS

MODULES = {"import_exports": "import_command", "sources": "sources"}


def __getattr__(name: str) -> object:
    """One of the commands, loaded when it is asked for."""
    if name not in MODULES:
        raise AttributeError(name)
    STARTS.begin((READER,))
    return getattr(import_module(f"personal_server.cli.{MODULES[name]}"), name)
