import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_sources.common import json_stream
from pdpp_sources.common.json_stream import RawElement, cut_array

THINGS = [
    {"id": str(n), "name": f"thing {n}", "parts": [{"id": "p", "of": {"x": [n, 1.5, None]}}]}
    for n in range(8)
]


def cuts(content: bytes, *keys: bytes) -> list[RawElement]:
    return list(cut_array(io.BytesIO(content), frozenset(keys)))


def survivors(found: list[RawElement]) -> list[str]:
    """The ids of the objects that are whole."""
    ids: list[str] = []
    for cut in found:
        try:
            ids.append(json.loads(cut.raw or b"")["id"])
        except ValueError:
            continue
    return ids


def faults(found: list[RawElement]) -> list[str]:
    return [cut.fault for cut in found if cut.raw is None]


@pytest.mark.parametrize(
    ("whole", "damaged"),
    [
        (b'"id": "3", "name"', b'"id": "3, "name"'),
        (b'"thing 3", "parts": [', b'"thing 3", "parts": '),
        (b"[3, 1.5, null]}}]}", b"[3, 1.5, null]}}]"),
        (b"[3, 1.5, null]}}]}", b"[3, 1.5, null]}}}"),
        (b"[3, 1.5, null]}}]}", b"[3, 1.5, null}}]}"),
        (b'"name": "thing 3"', b'"name" "thing 3"'),
        (b'"name": "thing 3"', b'"name": thing\x003"'),
    ],
)
@pytest.mark.parametrize("key", [None, b"things"])
def test_a_damaged_object_costs_only_itself(
    whole: bytes, damaged: bytes, key: bytes | None
) -> None:
    content = json.dumps(THINGS).encode()
    assert whole in content
    content = content.replace(whole, damaged)
    if key:
        content = b'{"other": [{"id": "x"}], "things": ' + content + b', "end": [1]}'
    found = cuts(content, *([key] if key else []))
    assert survivors(found) == [str(n) for n in range(8) if n != 3]


def test_a_bracket_too_many_costs_nothing_but_a_report() -> None:
    content = json.dumps(THINGS).encode().replace(b"null]}}]}, ", b"null]}}]}}, ", 1)
    found = cuts(content)
    assert survivors(found) == [str(n) for n in range(8)]
    assert faults(found) == ["bad_record"]


@pytest.mark.parametrize("end", [-1, -2, -30])
def test_a_file_that_ends_early_says_so(end: int) -> None:
    assert faults(cuts(json.dumps(THINGS).encode()[:end])) == ["truncated"]


def test_a_whole_file_says_nothing() -> None:
    assert faults(cuts(json.dumps(THINGS).encode())) == []
    assert faults(cuts(json.dumps({"things": THINGS, "more": {}}).encode(), b"things")) == []


def test_an_object_beyond_the_limit_is_passed_over_and_the_next_one_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 64)
    monkeypatch.setattr(json_stream, "LARGEST_ELEMENT_BYTES", 1000)
    things = [THINGS[0], THINGS[1] | {"much": "x" * 5000}, *THINGS[2:]]
    found = cuts(json.dumps(things).encode())
    assert survivors(found) == [str(n) for n in range(8) if n != 1]
    assert faults(found) == ["too_large"]


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(list(b'"{}[],:\\x 0\xff\n')), st.integers(1, 200))
def test_one_changed_byte_costs_an_object_and_its_neighbour_at_most(
    data: st.DataObject, byte: int, chunk: int
) -> None:
    content = bytearray(json.dumps(THINGS).encode())
    content[data.draw(st.integers(len(json.dumps(THINGS[0])), len(content) - 2))] = byte
    before, json_stream.CHUNK_BYTES = json_stream.CHUNK_BYTES, chunk
    try:
        found = cuts(bytes(content))
    finally:
        json_stream.CHUNK_BYTES = before
    offsets = [cut.offset for cut in found]
    assert offsets == sorted(set(offsets))
    whole = [cut.raw for cut in found if cut.raw in {json.dumps(each).encode() for each in THINGS}]
    assert len(whole) >= len(THINGS) - 2


def test_arrays_further_inside_tell_what_stands_before_them() -> None:
    chats = [{"name": name, "things": [{"id": f"{name}{n}"} for n in range(3)]} for name in "ab"]
    content = json.dumps({"about": "x", "chats": {"list": chats}, "left": {"list": chats[:1]}})
    found = list(cut_array(io.BytesIO(content.encode()), frozenset({b"things"}), deep=True))
    assert survivors(found) == ["a0", "a1", "a2", "b0", "b1", "b2", "a0", "a1", "a2"]
    names = [cut.lead.rpartition(b'"name": "')[2][:1].decode() for cut in found]
    assert "".join(names) == "aaabbbaaa"


@pytest.mark.parametrize("kept", [1, 4096, 10**6])
def test_after_damage_an_object_is_never_taken_for_one_of_another_array(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", kept)
    chats = [{"name": name, "things": [{"id": f"{name}{n}"} for n in range(3)]} for name in "ab"]
    content = json.dumps({"list": chats}).encode().replace(b'"a2"', b'"a2')
    found = list(cut_array(io.BytesIO(content), frozenset({b"things"}), deep=True))
    assert survivors(found) == ["a0", "a1", "b0", "b1", "b2"]
    for cut in found:
        if cut.raw is not None:
            assert cut.lead.rpartition(b'"name": "')[2][:1] == cut.raw[8:9]
