"""A hit at the terminal: a line that says when, who and where, then its text once."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_mcp_server.commands.hits_shown import HitPlace, print_hits

HIT: dict[str, Any] = {
    "id": "7",
    "stream": "messages",
    "display_name": "Home",
    "authored_at": "2024-03-13T22:05:00Z",
    "author": "Ada",
    "title": "The recipe",
    "evidence_excerpts": [{"preview_text": "with two eggs"}],
}


def lines(capsys: pytest.CaptureFixture[str], **over: Any) -> list[str]:
    place = over.pop("place", None)
    print_hits([{**HIT, **over}], place)
    return capsys.readouterr().out.splitlines()


def test_a_hit_says_when_who_and_where_then_its_title_and_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heading, *texts = lines(capsys)
    assert heading == "Wed 2024-03-13 22:05 UTC · Ada · Home · messages 7"
    assert texts == ["  The recipe", "  with two eggs"]


def test_what_a_hit_does_not_have_leaves_no_gap(capsys: pytest.CaptureFixture[str]) -> None:
    heading, *_ = lines(capsys, authored_at=None, author=None)
    assert heading == "Home · messages 7"
    heading, *_ = lines(capsys, when="Wed 2024-03-13", author=None)
    assert heading == "Wed 2024-03-13 · Home · messages 7"


@pytest.mark.parametrize(
    ("place", "ends"),
    [
        (HitPlace("", "Home/messages 7"), ["Home/messages 7"]),
        (HitPlace("Home · work", "'cin · 1/messages' 7"), ["Home · work", "'cin · 1/messages' 7"]),
    ],
)
def test_a_place_is_shown_as_it_is_whatever_it_is_made_of(
    capsys: pytest.CaptureFixture[str], place: HitPlace, ends: list[str]
) -> None:
    def placed(_: object) -> HitPlace:
        return place

    heading, *_ = lines(capsys, author=None, authored_at=None, place=placed)
    assert heading == " · ".join(ends)


@pytest.mark.parametrize(
    ("title", "excerpt", "shown"),
    [
        ("The recipe", "The recipe …", ["The recipe"]),
        ("The rec…", "the recipe with eggs", ["the recipe with eggs"]),
        ("", "with\n two  eggs", ["with two eggs"]),
        ("The recipe", "", ["The recipe"]),
        ("", "", []),
    ],
)
def test_what_title_and_text_both_say_is_said_once(
    capsys: pytest.CaptureFixture[str], title: str, excerpt: str, shown: list[str]
) -> None:
    _, *texts = lines(capsys, title=title, evidence_excerpts=[{"preview_text": excerpt}])
    assert [text.strip() for text in texts] == shown


def test_the_snippet_stands_where_there_is_no_excerpt(capsys: pytest.CaptureFixture[str]) -> None:
    _, *texts = lines(capsys, title=None, evidence_excerpts=[], snippet={"text": "two eggs"})
    assert texts == ["  two eggs"]
