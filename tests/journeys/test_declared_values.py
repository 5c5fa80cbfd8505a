"""What a package of readers is told of its records and its declaration is what an import says."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from pdpp_kernel.errors import InvalidDeclaration
from pdpp_sources.common import declaration as said
from pdpp_sources.declared_values import faults_of_declaration, faults_of_record
from personal_server.collecting.ingest import LineChecker, LineRefused
from personal_server.domain.declaration_document import parse_declaration

LAPS = said.StreamForm(
    "laps",
    "Laps",
    "Each lap.",
    [
        said.key(),
        said.moment("began", "When", event=True),
        said.day("on", "The day"),
        said.number("price", "What it cost"),
        said.integer("laps", "How many"),
        said.flag("won", "Whether"),
        said.text("title", "Its title"),
        said.names("tags", "Words"),
        said.blob(),
        said.free("more", "Whatever"),
        said.reference("race", "Its race"),
    ],
    time_field="began",
)
GOOD: dict[str, Any] = {"id": "a", "began": "2024-05-03T06:05:01.25Z"}
VALUES: dict[str, list[Any]] = {
    "id": ["b", "", "a\nb", "x" * 1024, "x" * 1025, None, 3],
    "began": ["2024-05-03T06:05:01+02:00", "1714722301.25", None, "2024-05-03", "", 3],
    "on": ["2024-02-29", "2023-02-29", None, "20240229", "2024-02-29T00:00:00Z"],
    "price": [3, 3.5, "3.5", True, None, 2**63],
    "laps": [3, 3.0, 3.5, "3", True, None, 2**63 - 1, 2**64],
    "won": [True, None, 1, "yes"],
    "title": ["", None, 3, "a\x00b"],
    "tags": [[], ["a"], ["a", 3], ["a\x00"], "a", None],
    "blob_ref": [{}, None, "a"],
    "more": [None, 3, {"a": [1]}, "a", {"a": ["a\x00"]}],
    "elsewhere": [1],
}


def declared() -> Any:
    return said.declaration("laps", "Laps", "Laps.", [LAPS])


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in VALUES.items() for value in values]
)
def test_a_record_is_judged_alike(name: str, value: Any) -> None:
    declaration = declared()
    data = GOOD | {name: value}
    line = json.dumps({"data": data, "emitted_at": "2024-05-03T06:05:01Z"}).encode()
    try:
        LineChecker(parse_declaration(declaration).streams["laps"]).check(line)
    except LineRefused:
        refused = True
    else:
        refused = False
    assert bool(list(faults_of_record(declaration["streams"][0], data))) is refused


def _broken(**members: Any) -> Any:
    declaration = deepcopy(declared())
    declaration["streams"][0] |= members
    return declaration


RELATION = {"name": "of", "stream": "laps", "foreign_key": "race"}


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"primary_key": ["no"]},
        {"cursor_field": "no"},
        {"consent_time_field": "no"},
        {"views": [{"id": "v", "label": "V", "fields": ["no"]}]},
        {"query": {"range_filters": {"no": ["gte"]}}},
        {"query": {"search": {"lexical_fields": ["no"]}}},
        {"query": {"aggregations": {"group_by": ["no"]}}},
        {"relationships": [RELATION | {"cardinality": "has_many"}]},
        {"relationships": [RELATION | {"foreign_key": "no", "cardinality": "has_many"}]},
        {"relationships": [RELATION | {"stream": "later", "cardinality": "has_many"}]},
        {
            "relationships": [
                RELATION | {"foreign_key": "no", "cardinality": "has_one", "foreign_key_on": "self"}
            ]
        },
    ],
)
def test_a_declaration_is_judged_alike(members: Any) -> None:
    declaration = _broken(**members)
    try:
        parse_declaration(declaration)
    except InvalidDeclaration:
        refused = True
    else:
        refused = False
    assert bool(list(faults_of_declaration(declaration))) is refused
