"""Long texts cut into passages."""

from hypothesis import given
from hypothesis import strategies as st

from personal_server.semantics.passages import MOST_PASSAGES, PASSAGE_CHARS, passages_of


def test_a_short_text_is_one_passage() -> None:
    assert passages_of("  Heavy rain.\n") == [(2, 13)]
    assert passages_of(" -- ") == []


def test_a_long_one_is_cut_at_paragraphs_and_sentences() -> None:
    text = "A sentence of some length follows. " * 100
    parts = [text[start:end] for start, end in passages_of(text)]
    assert all(part.startswith("A sentence") and part.endswith("follows.") for part in parts)
    assert len(passages_of("word " * 100_000)) == MOST_PASSAGES


@given(st.text(alphabet="ab. \n。", max_size=3_000))
def test_passages_follow_each_other_and_lose_nothing_but_blanks(text: str) -> None:
    at = 0
    for start, end in passages_of(text):
        assert at <= start < end <= start + PASSAGE_CHARS
        assert sum(sign in "ab" for sign in text[at:start]) < 3 * (1 + (start - at) // 300)
        at = end
