import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_mcp_server.safe_text import (
    clean,
    clean_json,
    escaped_json,
    has_steering,
    label,
    one_line,
    preview_json,
    unlinked,
)

steering = [
    "\x00", "\x1b", "\x7f", "\x9f", "\xad", "\u061c", "\u180e", "\u200b", "\u202e", "\u2066",
    "\ufeff", "\ufff9", "\U0001d173", "\U000e0041", "\u034f", "\u115f", "\u1160",
    "\u17b4", "\u17b5", "\u2800", "\u3164", "\uffa0", "\ufff0", "\U00013430",
    "\U0001bca0", "\U0001d159",
]  # fmt: skip
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.mark.parametrize("char", steering)
def test_steering_characters_are_removed(char: str) -> None:
    assert clean(f"a{char}b") == "ab"
    assert has_steering(f"a{char}b")


def test_tabs_and_line_breaks_stay() -> None:
    assert clean("a\tb\r\nc") == "a\tb\r\nc"


def test_joiners_stay_between_letters_and_pictographs_only() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert clean(family) == family
    assert clean("\u0646\u200c\u06cc") == "\u0646\u200c\u06cc"
    assert clean("a \u200d b\u200d") == "a  b"


def test_selectors_stay_with_a_base_only() -> None:
    assert clean("\u2764\ufe0f") == "\u2764\ufe0f"
    assert clean("\u1820\u180b") == "\u1820\u180b"
    assert clean("\ufe0fx") == "x"
    assert clean("\u3164\ufe0fx") == "x"


def test_no_text_hides_in_a_row_of_selectors() -> None:
    hidden = "".join(chr(0xFE00 + digit) for digit in (1, 2, 3, 15))
    assert clean(f"\u2764{hidden}!") == "\u2764\ufe01!"
    assert json.loads(escaped_json(f"\u2764{hidden}")) == f"\u2764{hidden}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![x](https://a.example/?q=1)", "!\\[x]\\(https://a.example/?q=1)"),
        ("see [x](https://a.example)", "see [x]\\(https://a.example)"),
        ("![x][r]", "!\\[x][r]"),
        ("<IMG src=//a.example>", "\\<IMG src=//a.example>"),
        ("<svg><image href=//a.example/>", "\\<svg>\\<image href=//a.example/>"),
        ("<video/poster=//a.example>", "\\<video/poster=//a.example>"),
        ("cut <iframe", "cut \\<iframe"),
        ("a[1] (b) and !x < image>", "a[1] (b) and !x < image>"),
        ("<mark>a</mark> Ada <a@b.example> <https://a.example>",) * 2,
    ],
)
def test_no_link_or_image_of_a_record_is_one_in_a_preview(text: str, shown: str) -> None:
    assert unlinked(text) == shown
    assert json.loads(preview_json({"a": text})) == {"a": shown}


@settings(max_examples=200)
@given(any_text)
def test_cleaning_is_settled_after_one_pass_over_plain_text(text: str) -> None:
    cleaned = clean(text)
    assert not any(char in cleaned for char in steering)


@settings(max_examples=200)
@given(
    st.recursive(any_text | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3))
)
def test_escaped_json_is_one_line_and_parses_back(value: object) -> None:
    text = escaped_json(value)
    assert json.loads(text) == value
    assert len(text.splitlines()) == 1
    assert len(clean_json(value).splitlines()) == 1


def test_one_line_is_short_and_single() -> None:
    assert one_line("a\n\n b\u2028c") == "a b c"
    assert one_line("x" * 500, 10) == "x" * 9 + "…"
    assert one_line(" " * 100_000 + "late", 10) == "late"


def test_no_line_separator_survives_in_a_json_line() -> None:
    for char in "\u2028\u2029\u0085\n\r":
        assert len(clean_json({"a": f"x{char}y"}).splitlines()) == 1
        assert len(escaped_json({"a": f"x{char}y"}).splitlines()) == 1


@pytest.mark.parametrize("before", ["", "\\", "\\\\", "a\\\\\\"])
def test_no_backslash_of_a_record_frees_its_tag(before: str) -> None:
    text = f"{before}<img src=//a.example>"
    drawn = re.sub(r"\\(.)", "", unlinked(text))  # as Markdown takes an escaped sign
    assert "<" not in drawn
    assert "<" not in preview_json(text)


@pytest.mark.parametrize("name", ["![x](https:a.example?q)", "<img src=https:a.example>"])
def test_no_link_or_image_in_the_name_of_a_file_is_one(name: str) -> None:
    assert label(name).replace("\\", "") == name
    assert unlinked(label(name)) != name
    assert not re.search(r"!\[|\]\(|(?<!\\)<img", label(name))
