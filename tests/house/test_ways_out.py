"""docs/ways-out.md is whole: what hands out records, and what calls elsewhere, is named there.

Rule: no list of exceptions; a module that only decides is named there too, among its like.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from pages.parts import SERVER, short_name

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ways-out.md"
NAMED = re.compile(r"`([\w./-]+\.py)`")
HANDING = ("enforcement", "reading", "storage/sql/reads")
CALLING = frozenset({"httpx2", "network_exchange", "create_connection", "create_default_context"})
"""What opens a connection to elsewhere: imported, or asked of `socket` and `ssl`."""


def called(text: str) -> set[str]:
    """What of `CALLING` a module imports or asks for."""
    found = set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            own = node.module.startswith("personal_server.")
            found |= set() if own else {node.module, *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            found |= {node.attr} if owner in {"socket", "ssl"} else set()
    return found & CALLING


def named() -> set[str]:
    return set(NAMED.findall(PAGE.read_text(encoding="utf-8")))


def test_every_module_that_reads_or_enforces_is_named() -> None:
    modules = {short_name(p) for room in HANDING for p in (SERVER / room).rglob("*.py")}
    handing = {name for name in modules if not name.endswith("/__init__.py")}
    assert len(handing) > 60
    assert sorted(handing - named()) == []


def test_every_module_that_calls_elsewhere_is_named() -> None:
    calling = {
        short_name(path)
        for path in SERVER.rglob("*.py")
        if called(path.read_text(encoding="utf-8"))
    }
    assert {"delivery/callbacks.py", "semantics/endpoint.py", "app/mailbox_runs.py"} <= calling
    assert sorted(calling - named()) == []


def test_a_call_is_found() -> None:
    assert called("import httpx2\n") == {"httpx2"}
    assert called("import socket\nsocket.create_connection(place)\n") == {"create_connection"}
    assert called("from pdpp_mcp_server.rs_client.discovery import network_exchange\n") != set()
    assert called("from personal_server.collecting.connections import create_connection\n") == set()
