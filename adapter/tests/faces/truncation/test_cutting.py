from base64 import b64encode
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_mcp_server.faces.truncation import (
    Measure,
    Truncation,
    cut_members,
    cut_position,
    members_of,
    reach_of,
)
from pdpp_mcp_server.rs_client.json_values import compact

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=800),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)


def cut_payload(
    payload: dict[str, Any], measure: Measure
) -> tuple[dict[str, Any], list[Truncation]]:
    return cut_members(members_of(payload), measure)


@settings(max_examples=150)
@given(st.dictionaries(st.text(min_size=1, max_size=6), values, max_size=6), st.integers(60, 400))
def test_what_is_not_noted_is_whole(payload: dict[str, Any], preview: int) -> None:
    shown, cuts = cut_payload(payload, Measure.of(preview))
    noted = {cut.field_path for cut in cuts}
    for name, value in payload.items():
        assert name in noted or shown[name] == value
        if isinstance(value, str) and name not in noted:
            assert len(value) <= preview
        assert type(shown[name]) is type(value)


def test_a_cut_text_is_its_start_and_an_ellipsis() -> None:
    shown, cuts = cut_payload({"body": "x" * 1_000}, Measure.of(300))
    assert shown["body"] == "x" * 300 + "…"
    assert (cuts[0].shown, cuts[0].total, cuts[0].status) == (300, 1_000, "truncated")


def test_a_combining_sequence_is_never_split() -> None:
    text = "ae\u0301\u0323b"
    assert cut_position(text, 3) == 1


def test_arrays_and_objects_keep_what_fits() -> None:
    payload = {"tags": ["x" * 50] * 40, "map": {str(n): "y" * 50 for n in range(40)}}
    shown, cuts = cut_payload(payload, Measure.of(300))
    assert 0 < len(shown["tags"]) < 40
    assert len(compact(shown["map"])) <= 300
    assert [(cut.kind, cut.total) for cut in cuts] == [("json", 40), ("json", 40)]


def test_bytes_are_replaced_at_any_depth() -> None:
    inline = b64encode(bytes(range(256)) * 2).decode()
    shown, cuts = cut_payload({"a": inline, "b": [{"c": inline}]}, Measure.of(8_000))
    assert inline not in compact(shown)
    assert shown["a"] == "[binary 512 bytes application/octet-stream]"
    assert [cut.kind for cut in cuts] == ["binary", "binary"]


def test_members_left_out_are_noted_one_by_one_or_together() -> None:
    few, cuts = cut_payload({f"f{n}": "x" for n in range(8)}, Measure(60, 0, 2))
    assert list(few) == ["f0", "f1"]
    assert [cut.field_path for cut in cuts] == [f"f{n}" for n in range(2, 8)]
    _, gathered = cut_payload({f"f{n}": "x" for n in range(80)}, Measure(60, 0, 2))
    assert [(cut.field_path, cut.shown, cut.total) for cut in gathered] == [("*", 2, 80)]


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=6), values, max_size=6))
def test_from_its_reach_on_a_payload_is_whole(payload: dict[str, Any]) -> None:
    members = members_of(payload)
    assert cut_members(members, Measure.of(reach_of(members))) == (payload, [])


def test_a_reference_to_bytes_stays_as_sent() -> None:
    reference = {"blob_id": "blob_1", "fetch_url": "/v1/blobs/blob_1?" + "x" * 500}
    shown, cuts = cut_payload({"blob_ref": reference}, Measure.of(60))
    assert shown["blob_ref"] == reference
    assert [(cut.kind, cut.facts.blob_id) for cut in cuts if cut.facts] == [("binary", "blob_1")]


def test_a_field_declared_as_bytes_is_not_shown() -> None:
    lines = "iVBORw0KGgo\nAAAANSUhEUg\n=="
    shown, cuts = cut_members(members_of({"a": lines, "b": lines}, frozenset("a")), Measure.of(60))
    assert shown == {"a": "[binary 16 bytes application/octet-stream]", "b": lines}
    assert [cut.field_path for cut in cuts] == ["a"]
