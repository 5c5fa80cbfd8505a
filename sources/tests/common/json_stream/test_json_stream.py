import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pdpp_kernel.source_item import Skipped
from pdpp_sources.common import json_stream
from pdpp_sources.common.export import open_export
from pdpp_sources.common.json_stream import Element, json_elements

values = st.recursive(
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
things = st.lists(st.dictionaries(st.text(max_size=4), values, max_size=3), max_size=5)


def elements(path: Path, *keys: str) -> list[Element | Skipped]:
    with open_export(path) as export:
        return list(json_elements(export.members[0], *keys))


def test_a_faulty_entry_is_reported_and_the_next_one_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"a": 1}, {"a": nope}, 3, {"a": "\xff"}, {"a": 1e999}, {"a": [')
    first, second, *rest = elements(path)
    assert isinstance(first, Element)
    assert first.value == {"a": 1}
    assert isinstance(second, Skipped)
    assert second.code == "bad_record"
    assert [type(each) for each in rest[:3]] == [Skipped, Element, Element]
    assert [each.code for each in rest[3:] if isinstance(each, Skipped)] == ["truncated"]


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 8, 1000])
@pytest.mark.parametrize("keys", [(), ("named",)])
def test_what_is_no_object_among_objects_is_named_where_it_stands(
    keys: tuple[str, ...], chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", chunk)
    others = (b"null", b'"a, {b}"', b"-3.5e1", b"true")
    listed = (
        b"[null, {}" + b"".join(b",\n " + each + b', {"a": [1, null]}' for each in others) + b"]"
    )
    path = tmp_path / "a.json"
    path.write_bytes(b'{"named": ' + listed + b', "tags": ["x", 1]}' if keys else listed)
    found = elements(path, *keys)
    raw = path.read_bytes()
    named = [raw[each.position :] for each in found if isinstance(each, Skipped)]
    assert all(rest.startswith(each) for rest, each in zip(named, (b"null", *others), strict=True))
    assert [type(each) for each in found] == [Skipped, Element] * 5
    assert {each.code for each in found if isinstance(each, Skipped)} == {"bad_record"}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(things, st.integers(1, 40), st.sampled_from([None, 1]))
def test_it_gives_what_a_whole_parse_gives(
    tmp_path: Path, wanted: list[dict[str, object]], chunk: int, indent: int | None
) -> None:
    before, json_stream.CHUNK_BYTES = json_stream.CHUNK_BYTES, chunk
    try:
        path = tmp_path / "a.json"
        text = json.dumps(wanted, indent=indent, ensure_ascii=False)
        path.write_text(text, encoding="utf-8", errors="replace")
        expected = json.loads(path.read_text(encoding="utf-8"))
        found = elements(path)
        assert [e.value for e in found if isinstance(e, Element)] == expected
        raw = path.read_bytes()
        assert all(raw[e.position : e.position + 1] == b"{" for e in found)
        path.write_bytes(b'{"skip": [{"x": 1}], "named": ' + raw + b', "after": {"y": [{}]}}')
        assert [e.value for e in elements(path, "named") if isinstance(e, Element)] == expected
    finally:
        json_stream.CHUNK_BYTES = before
