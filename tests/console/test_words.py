from __future__ import annotations

import json

import pytest

from personal_server.console import words


@pytest.mark.parametrize(
    ("text", "limit", "seen"),
    [
        ("Notes app", 20, "Notes app"),
        ("  a\n\tb  ", 20, "a b"),
        ("ab\u202edc\u2066x\u200b", 20, "abdcx"),
        ("a\x00b\x1b[31m", 20, "ab[31m"),
        ("x" * 30, 10, "x" * 9 + "…"),
        ("\ud800", 5, ""),
    ],
)
def test_foreign_text_loses_what_misleads_the_eye(text: str, limit: int, seen: str) -> None:
    assert words.shown(text, limit) == seen


def test_days_and_counts_are_written_for_people() -> None:
    assert words.day_of(1_787_443_200_000_000_000) == "23 Aug 2026"
    assert words.minute_of(1_787_493_900_000_000_000) == "23 Aug 2026, 14:05 UTC"
    assert words.day_of_text("2026-08-23T01:00:00+02:00") == "22 Aug 2026"
    assert words.day_of_text("2026-08-23") == "23 Aug 2026"
    assert words.day_of_text("unclear") == "unclear"
    assert words.counted(1, "record") == "1 record"
    assert words.counted(12_345, "record") == "12,345 records"
    assert words.counted(0, "entry", "entries") == "0 entries"


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        (None, "another device"),
        ("http://127.0.0.1:1234/cb", "an app on this computer"),
        ("http://localhost/cb", "an app on this computer"),
        ("cursor://anysphere.cursor/cb", "another app on this device"),
        ("https://app.example/cb", "app.example"),
    ],
)
def test_a_redirect_is_named_by_where_it_leads(uri: str | None, place: str) -> None:
    assert str(words.redirect_place(uri)) == place


def test_a_monogram_is_drawn_from_the_name() -> None:
    assert words.monogram("notes app for you") == "NA"
    assert words.monogram("\u202e«»") == "?"


def test_what_could_mislead_the_eye_stands_as_its_escape() -> None:
    text = json.dumps({"a": "x\u202ey\u200b"}, ensure_ascii=False, indent=2)
    open_text = words.laid_open(text)
    assert open_text == '{\n  "a": "x\\u202ey\\u200b"\n}'
    assert json.loads(open_text) == json.loads(text)


def test_a_long_list_names_a_few_and_counts_the_rest() -> None:
    assert words.listed("abc") == "a, b, c"
    assert words.listed("abcdefg") == "a, b, c, d, e and 2 more"
