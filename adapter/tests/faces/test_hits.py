from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_mcp_server.faces.hits import (
    cut_marked,
    is_balanced,
    mark_ranges,
    repaired,
    source_mix_lines,
    unescaped,
)

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
