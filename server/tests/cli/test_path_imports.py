from __future__ import annotations

import copy
from typing import Any

from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.cli.path_imports import declared
from personal_server.collecting.imports import ImportPorts
from server.tests.resource_server.journal import JOURNAL_RAW
from tests.oracle.memory import MemoryStore


class Declarations(MemoryStore):
    """A store that knows what it was asked to declare."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def put_declaration(self, declaration: SourceDeclaration, raw: bytes, now_ns: int) -> Any:
        self.asked.append(declaration.version)
        return super().put_declaration(declaration, raw, now_ns)


def journal(version: str) -> dict[str, Any]:
    return copy.deepcopy(JOURNAL_RAW) | {"declaration_version": version}


def test_what_a_feed_brings_again_as_it_is_declared_now_is_not_declared_again() -> None:
    store = Declarations()
    ports = ImportPorts(store, lambda: 1, bytes, is_fed=True)
    brought = ["1", "1", "2", "2", "1"]
    assert [declared(ports, journal(each), 1).version for each in brought] == brought
    assert store.asked == ["1", "2", "1"]
