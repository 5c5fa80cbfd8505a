"""The declarations of two sources: the journal of `journal.json`, and notes that are like it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.domain.declaration_document import parse_declaration

SAMPLE = Path(__file__).with_name("journal.json")
JOURNAL = "https://registry.pdpp.dev/connectors/journal"
NOTES = "https://registry.pdpp.dev/connectors/notes"


@cache
def declarations() -> Mapping[str, SourceDeclaration]:
    """By the id of the source: values, which all tests may share."""
    raw = json.loads(SAMPLE.read_text(encoding="utf-8"))
    notes = {**raw, "source": {"kind": "connector", "id": NOTES}, "connector_key": "notes"}
    return MappingProxyType({JOURNAL: parse_declaration(raw), NOTES: parse_declaration(notes)})
