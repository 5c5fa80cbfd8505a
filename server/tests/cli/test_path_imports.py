from __future__ import annotations

import copy
from typing import Any

from personal_server.cli.path_imports import declared_already
from personal_server.collecting.declarations import declare
from server.tests.resource_server.journal import JOURNAL_RAW
from tests.oracle.memory import MemoryStore


def journal(version: str) -> dict[str, Any]:
    return copy.deepcopy(JOURNAL_RAW) | {"declaration_version": version}


def test_what_is_the_current_declaration_already_is_not_declared_again() -> None:
    store = MemoryStore()
    assert declared_already(store, journal("1")) is None
    declare(store, journal("1"), 1)
    found = declared_already(store, journal("1"))
    assert found is not None
    assert found.version == "1"
    assert declared_already(store, journal("2")) is None
    declare(store, journal("2"), 2)
    assert declared_already(store, journal("1")) is None
