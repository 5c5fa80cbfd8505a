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
        ("\u3164\u2800", 5, ""),
        ("No\u034fte\u115fs\uffa0", 20, "Notes"),
    ],
)
def test_foreign_text_loses_what_misleads_the_eye(text: str, limit: int, seen: str) -> None:
    assert words.shown(text, limit) == seen


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        (None, "another device"),
        ("http://127.0.0.1:1234/cb", "an app on this computer"),
        ("http://localhost/cb", "an app on this computer"),
        ("cursor://anysphere.cursor/cb", "another app on this computer"),
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
