from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.faces.hits import (
    HitItem,
    HitTable,
    cut_marked,
    is_balanced,
    mark_ranges,
    repaired,
    source_mix_lines,
    unescaped,
)
from pdpp_mcp_server.faces.record_identity import RecordPlace
from pdpp_mcp_server.faces.truncation import Measure
from pdpp_mcp_server.tool_runs import draw_nonce

CALL = ToolCall("search", cast("Any", None), "http://127.0.0.1:7662", draw_nonce)

pieces = st.lists(
    st.sampled_from(["<mark>", "</mark>", "word ", "&lt;", "e\u0301", "<b>"]), max_size=12
)


@settings(max_examples=200)
@given(pieces, st.integers(0, 40))
def test_tags_are_balanced_after_any_cut(parts: list[str], limit: int) -> None:
    text = "".join(parts)
    assert is_balanced(cut_marked(text, limit))
    assert is_balanced(repaired(text))
    visible = cut_marked(text, limit).replace("<mark>", "").replace("</mark>", "")
    assert len(visible) <= limit + 1


def test_unbalanced_or_nested_tags_are_all_lost() -> None:
    assert repaired("a <mark>b") == "a b"
    assert repaired("<mark>a <mark>b</mark></mark>") == "a b"
    assert repaired("<mark>a</mark> b") == "<mark>a</mark> b"


def test_ranges_of_the_whole_value_become_tags_of_the_passage() -> None:
    assert mark_ranges("total of rain", 400, [[409, 413]]) == "total of <mark>rain</mark>"
    assert mark_ranges("rain", 400, [[1, 2], "odd", [402, 401], None]) == "rain"
    assert mark_ranges("has <mark> itself", 0, [[0, 3]]) == "has  itself"


def test_snippets_are_unescaped_outside_their_tags() -> None:
    assert unescaped("<mark>a</mark> &amp; b") == "<mark>a</mark> & b"
    assert unescaped("&lt;mark&gt;a&lt;/mark&gt; <mark>b</mark>") == "a b"


def test_long_lists_of_sources_are_counted() -> None:
    rows = [{"connection_id": f"cin_{n}", "connector_key": "k", "count": 1} for n in range(10)]
    assert source_mix_lines(rows)[0].endswith("cin_7 k 1 +2 more")


words = st.lists(st.sampled_from(["mail ", "e\u0301 ", "of", "\n", "rain ", "x" * 30]), max_size=40)


@given(words, words, st.integers(0, 500), st.integers(60, 200))
def test_a_passage_that_is_cut_shows_its_first_match_in_both_faces(
    before: list[str], after: list[str], start: int, preview: int
) -> None:
    head, tail = "".join(before), "".join(after)
    value = "." * start + head + "quokka" + tail
    begin = start + len(head)
    passage = {
        "field_path": "body",
        "preview_text": value[start:],
        "start_chars": start,
        "match_ranges": [[begin, begin + 6]],
        "total_chars": len(value),
    }
    hit = {"stream": "messages", "record_id": "m1", "evidence_excerpts": [passage]}
    table = HitTable.of_hits([hit])
    block = HitItem(CALL, hit, RecordPlace(""), 1, table).at(Measure.of(preview))
    [match] = [line for line in block.lines if line.startswith("match ")]
    assert "<mark>quokka</mark>" in match
    shown = block.row["evidence_excerpts"][0]
    seen, moved = shown["preview_text"].removesuffix("…"), shown["start_chars"]
    assert "quokka" in seen
    assert value[moved : moved + len(seen)] == seen
    for entry in block.ladder:
        assert entry["read"]["arguments"]["offset_chars"] == moved
        assert entry["shown_chars"] == min(preview, len(value) - moved)
    assert bool(block.ladder) == (moved > 0 or len(value) > preview)
