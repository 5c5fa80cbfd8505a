from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_sources.common.export import open_export
from pdpp_sources.recipes import json_places as module
from pdpp_sources.recipes.json_places import json_places, segments_of

VALUES = st.recursive(
    st.none() | st.integers() | st.text('ab"\\{}[]:,é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab/"), inner),
    max_leaves=12,
)
POINTERS = ["", "/a", "/a/b", "/*", "/*/a", "/0", "/~1", "/b/1/*"]


def at(value: Any, segments: tuple[str, ...]) -> list[Any]:
    """The lists and objects that a pointer names, found in the parsed value."""
    named: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        named = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        named = [(str(n), v) for n, v in enumerate(cast("list[Any]", value))]
    if not segments:
        return [value] if isinstance(value, list | dict) else []
    return [f for n, v in named if segments[0] in ("*", n) for f in at(v, segments[1:])]


@given(value=VALUES, pointer=st.sampled_from(POINTERS), chunk=st.integers(1, 40))
@settings(deadline=None, max_examples=150)
def test_it_finds_what_a_parser_finds(
    value: Any, pointer: str, chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("json") / "a.json"
    body = json.dumps(value).encode()
    path.write_bytes(body)
    with pytest.MonkeyPatch.context() as patch, open_export(path) as export:
        patch.setattr(module, "CHUNK_BYTES", chunk)
        places = list(json_places(export.members[0], [segments_of(pointer)]))
    assert [json.loads(body[p.begin : p.end]) for p in places] == at(value, segments_of(pointer))


def test_a_place_says_which_pointer_named_it_and_whether_it_is_a_list(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": {"l": [1]}, "b": {"m": {}}, "c": 1}')
    with open_export(path) as export:
        found = list(json_places(export.members[0], [("*", "m"), ("*", "l")]))
    assert [(place.number, place.is_list) for place in found] == [(1, True), (0, False)]
