"""Excerpts are verbatim, marks are balanced, and every match is where it is said to be."""

import html
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pdpp_kernel.criteria import Term
from personal_server.domain.search_words import parse_words, tokens
from personal_server.domain.text_language import language_of
from personal_server.domain.word_forms import forms, stems
from personal_server.enforcement.excerpts import (
    STRETCH_CHARS,
    FieldMatches,
    find_matches,
    passage_excerpt,
    passage_snippet,
    render_excerpt,
    render_snippet,
    strongest_first,
)

WORDS = st.sampled_from(
    ["rain", "Rain", "heavy", "ﬁne", "½", "straße", "日本", "e\u0301te", "a" * 230, "<b>", "&"]
)
GAPS = st.sampled_from([" ", "\n", ", ", "", "   "])
PIECES = st.tuples(WORDS | st.text(max_size=8), GAPS).map("".join)
TEXTS = st.lists(PIECES, min_size=1, max_size=80).map("".join)
QUERIES = st.sampled_from(
    ["rain", "ra*", '"heavy rain"', "rain heavy", "fine", "日", "strasse", "1"]
)


ENDLESS_WORD = "heavy rain" + "a" * 4_000


def matches(text: str, query: str) -> FieldMatches | None:
    return find_matches("body", text, parse_words(query).terms)


def test_a_term_that_asks_for_no_word_is_found_nowhere() -> None:
    found = find_matches("body", "heavy rain", (Term(()), *parse_words("rain").terms))
    assert found is not None
    assert (found.terms, found.ranges) == (frozenset({1}), ((6, 10),))


@given(TEXTS, QUERIES)
@example(ENDLESS_WORD, "ra*")
def test_excerpts_are_verbatim_and_bounded(text: str, query: str) -> None:
    found = matches(text, query)
    if found is None:
        return
    excerpt = render_excerpt(found)
    start, end = excerpt.start_chars, excerpt.end_chars
    assert end is not None
    assert excerpt.preview_text == text[start:end]
    assert 0 < end - start <= 200
    ranges = excerpt.match_ranges
    assert 1 <= len(ranges) <= 8
    assert all(start <= low < high <= end for low, high in ranges)
    assert all(high < low for (_, high), (low, _) in pairwise(ranges))


@given(TEXTS, QUERIES)
def test_snippets_are_escaped_marked_and_short(text: str, query: str) -> None:
    found = matches(text, query)
    if found is None:
        return
    shown = render_snippet(found, render_excerpt(found)).text
    assert shown.count("<mark>") == shown.count("</mark>") >= 1
    plain = shown.replace("<mark>", "").replace("</mark>", "")
    assert "<" not in plain
    source = html.unescape(plain)
    assert len(source) <= 122
    assert source in text or source.strip("…") in text


@given(TEXTS, QUERIES)
def test_a_text_matches_exactly_if_its_tokens_do(text: str, query: str) -> None:
    words = tokens(text)
    terms = parse_words(query).terms
    language = language_of(text)
    others = set(stems(words, language)) - {""}
    expected = any(
        _occurs(words, term) or _has_form(words, others, language, term) for term in terms
    )
    assert (find_matches("body", text, terms) is not None) is expected


def _has_form(words: list[str], stemmed: set[str], language: str | None, term: Term) -> bool:
    if not term.inflected:
        return False
    sought = forms(term.tokens[0])
    return not stemmed.isdisjoint(sought.stems_in(language)) or not set(words).isdisjoint(
        sought.words
    )


def _occurs(words: list[str], term: Term) -> bool:
    size = len(term.tokens)
    for at in range(len(words) - size + 1):
        window = words[at : at + size]
        last = (
            window[-1].startswith(term.tokens[-1]) if term.prefix else window[-1] == term.tokens[-1]
        )
        if last and tuple(window[:-1]) == term.tokens[:-1]:
            return True
    return False


def test_long_texts_are_cut_at_blanks_around_the_densest_place() -> None:
    text = "dull " * 900 + "rain rain rain " + "dull " * 900 + "rain"
    found = matches(text, "rain")
    assert found is not None
    excerpt = render_excerpt(found)
    preview = excerpt.preview_text
    assert preview.count("rain") == 3
    assert not preview.startswith("ull")
    assert excerpt.truncated is True
    snippet = render_snippet(found, render_excerpt(found)).text
    assert snippet.startswith("…")
    assert snippet.endswith("…")


def test_a_run_of_characters_that_are_tokens_is_marked_as_one() -> None:
    found = matches("他在大雨中走了。大雨停了", "大雨 停")
    assert found is not None
    assert render_excerpt(found).match_ranges == [(2, 4), (8, 11)]
    assert (
        render_snippet(found, render_excerpt(found)).text
        == "他在<mark>大雨</mark>中走了。<mark>大雨停</mark>了"
    )


def test_the_field_with_most_terms_is_strongest_and_the_title_counts_double() -> None:
    terms = parse_words("rain wind").terms
    texts = {"title": "rain", "body": "rain rain", "note": "rain wind", "other": "rain rain"}
    found = [m for name, text in texts.items() if (m := find_matches(name, text, terms))]
    assert [m.field for m in strongest_first(found, "title")] == ["note", "title", "body", "other"]


def test_a_long_text_is_matched_wherever_its_words_stand() -> None:
    text = "wind " * 60_000 + "heavy rain " + "wind " * 60_000 + "snow"
    found = matches(text, 'snow "heavy rain"')
    assert found is not None
    assert found.terms == {0, 1}
    excerpt = render_excerpt(found)
    assert "heavy rain" in excerpt.preview_text
    assert text[excerpt.start_chars : excerpt.end_chars] == excerpt.preview_text
    assert excerpt.total_chars == len(text)
    assert matches(text, "hail") is None
    some = matches(text, "snow hail heavy")
    assert some is not None
    assert some.terms == {0, 2}


def test_a_phrase_is_found_where_one_stretch_ends_and_the_next_begins() -> None:
    for shift in range(-12, 12):
        text = "x" * (STRETCH_CHARS + shift - 1) + " heavy rain"
        spaced = "x " * ((STRETCH_CHARS + shift) // 2) + "heavy rain " + "x " * 3_000
        assert matches(spaced, '"heavy rain"') is not None
        assert matches(text, '"heavy rain"') is not None


def test_a_text_of_megabytes_is_never_in_memory_word_by_word() -> None:
    text = "rain over the harbour " * 200_000  # its words would take ten times its length
    tracemalloc.start()
    assert matches(text, "snow") is None
    assert matches(text, "harbour snow") is not None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


def test_each_match_is_known_by_where_it_begins_and_which_term_it_is_of() -> None:
    found = matches("heavy rain, then rain", "rain heavy")
    assert found is not None
    assert found.found_at == ((0, 1), (6, 0), (17, 0))


def test_an_excerpt_stands_where_the_rarest_words_are() -> None:
    text = "the rain, the rain and the rain " + "and so on " * 60 + "a heat pump in the rain"
    found = matches(text, "rain heat pump")
    assert found is not None
    assert "heat pump" in render_excerpt(found).preview_text


def test_the_title_counts_twice_and_no_more() -> None:
    sought = parse_words("rain").terms
    title = find_matches("title", "rain rain", sought)
    assert title is not None
    for count, first in ((3, "title"), (5, "body")):
        body = find_matches("body", "rain " * count, sought)
        assert body is not None
        assert strongest_first([body, title], "title")[0].field == first


@pytest.mark.parametrize(
    ("begin", "end", "text"), [(0, 5, "heavy…"), (6, 10, "…rain…"), (6, 15, "…rain snow")]
)
def test_a_passage_is_cut_where_something_stands_beside_it(begin: int, end: int, text: str) -> None:
    found = passage_excerpt("body", "heavy rain snow", begin, end)
    assert found is not None
    assert passage_snippet(found).text == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a heavy rain", "a heavy rain"),
        ("a " + "x" * 300, "a"),
        ("x" * 300, "x" * 200),
        ("heavy " * 50, ("heavy " * 33).rstrip()),
    ],
)
def test_the_beginning_of_a_passage_ends_at_a_blank(text: str, shown: str) -> None:
    found = passage_excerpt("body", text, 0, len(text))
    assert found is not None
    assert (found.preview_text, found.start_chars, found.end_chars) == (shown, 0, len(shown))
    assert (found.total_chars, found.truncated) == (len(text), shown != text)
    assert (found.match_ranges, found.provenance) == ((), "semantic_match")


def test_a_text_that_lost_its_passage_has_no_excerpt_of_it() -> None:
    assert passage_excerpt("body", "heavy rain", 10, 20) is None
    assert passage_excerpt("body", "heavy rain", 6, 6) is None
    assert passage_excerpt("body", "heavy rain", 6, 20) is not None


@pytest.mark.parametrize(("text", "truncated"), [("heavy rain", False), ("rain " * 60, True)])
def test_an_excerpt_says_whether_it_is_the_whole_text(text: str, *, truncated: bool) -> None:
    found = matches(text, "rain")
    assert found is not None
    excerpt = render_excerpt(found)
    assert (excerpt.truncated, excerpt.total_chars) == (truncated, len(text))
    lean = excerpt.lean()
    assert (lean.object, lean.provenance, lean.end_chars, lean.truncated) == (None,) * 4
    assert (lean.preview_text, lean.match_ranges) == (excerpt.preview_text, excerpt.match_ranges)


@pytest.mark.parametrize(
    ("begin", "length", "excerpt", "snippet"),
    [
        # 40 characters before the match, 24 in a snippet; no more than 200, and 120
        (200, 600, (160, 360), (176, 296)),
        (40, 600, (0, 200), (16, 136)),
        (42, 600, (2, 202), (18, 138)),
        (10, 600, (0, 200), (0, 120)),
        (590, 600, (400, 600), (480, 600)),
        (10, 200, (0, 200), (0, 120)),
        (10, 120, (0, 120), (0, 120)),
    ],
)
def test_an_excerpt_begins_a_little_before_its_match(
    begin: int, length: int, excerpt: tuple[int, int], snippet: tuple[int, int]
) -> None:
    text = ("a\n" * 300)[:begin] + "rain" + ("\nb" * 300)[: length - begin - 4]
    found = matches(text, "rain")
    assert found is not None
    shown = render_excerpt(found)
    assert (shown.start_chars, shown.end_chars) == excerpt
    assert shown.match_ranges == [(begin, begin + 4)]
    assert shown.truncated is (excerpt != (0, length))
    start, end = snippet
    marked = f"{text[start:begin]}<mark>rain</mark>{text[begin + 4 : end]}"
    before, after = "…" if start else "", "…" if end < length else ""
    assert render_snippet(found, render_excerpt(found)).text == f"{before}{marked}{after}"


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        # cuts move to blanks: behind one before the match, and before one behind it
        ("a" * 150 + " " + "b" * 9 + "\nrain\n" + "c" * 300, (151, 321)),
        ("a" * 160 + "\nrain\n" + "c" * 100 + " " + "d" * 300, (121, 266)),
        ("a " * 100 + "rain" + " b" * 200, (162, 358)),
    ],
)
def test_an_excerpt_is_cut_at_blanks(text: str, excerpt: tuple[int, int]) -> None:
    found = matches(text, "rain")
    assert found is not None
    shown = render_excerpt(found)
    start, end = shown.start_chars, shown.end_chars
    assert (start, end) == excerpt


@pytest.mark.parametrize(
    ("places", "start"),
    [
        ((300, 1_000), 260),  # of two that tell as much the first
        ((300, 1_000, 1_100), 960),
        ((300, 1_000, 1_156), 960),  # which ends where the excerpt does
        ((300, 1_000, 1_157), 260),
    ],
)
def test_an_excerpt_stands_where_most_matches_are_whole(
    places: tuple[int, ...], start: int
) -> None:
    text = "\n" * 2_000
    for place in places:
        text = f"{text[:place]}rain{text[place + 4 :]}"
    found = matches(text, '"rain"')
    assert found is not None
    assert render_excerpt(found).start_chars == start


@pytest.mark.parametrize(
    ("query", "located"), [('"rain"', 64), ('"rain" "snow"', 128), ('"rain" "snow" "wind"', 128)]
)
def test_of_many_matches_the_first_are_located_and_all_counted(query: str, located: int) -> None:
    found = matches("rain snow wind x\n" * 100, query)
    assert found is not None
    assert (len(found.ranges), found.occurrences) == (located, 100 * len(query.split()))
    assert len(render_excerpt(found).match_ranges) == 8


@pytest.mark.parametrize(
    ("start", "text"),
    [(0, "a" * 120 + "…"), (10, "…" + "a" * 120 + "…"), (280, "…" + "a" * 20)],
)
def test_the_snippet_of_a_passage_has_at_most_120_characters(start: int, text: str) -> None:
    found = passage_excerpt("body", "a" * 300, start, 300)
    assert found is not None
    assert passage_snippet(found).text == text


@pytest.mark.parametrize("sign", ["<", ">", "&", '"', "'"])
def test_signs_of_html_are_escaped_in_snippets(sign: str) -> None:
    found = matches(f"a{sign} rain {sign}b", "rain")
    assert found is not None
    escaped = html.escape(sign)
    assert escaped != sign
    assert (
        render_snippet(found, render_excerpt(found)).text
        == f"a{escaped} <mark>rain</mark> {escaped}b"
    )
    passage = passage_excerpt("body", f"a{sign}b", 0, 3)
    assert passage is not None
    assert passage_snippet(passage).text == f"a{escaped}b"
