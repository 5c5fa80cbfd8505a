from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def on(terminal: Any) -> Any:
    assert terminal.run("person", "on") == 0
    return terminal


def test_persons_are_off_until_they_are_turned_on(terminal: Any) -> None:
    assert terminal.run("person", "list") == 5
    assert "pdpp person on" in terminal.err
    assert terminal.run("person", "on") == 0
    said = terminal.out + terminal.err
    assert terminal.run("person", "on") == 0
    assert terminal.out + terminal.err != said
    assert terminal.run("person", "list") == 0
    assert terminal.run("person", "off") == 0
    assert terminal.run("person", "off") == 5
    assert terminal.run("person", "list") == 5


def test_a_person_is_listed_and_shown_with_its_records(on: Any) -> None:
    first, *_ = on.json("person", "list")
    assert on.run("person", "list", "--limit", "1") == 0
    assert first["id"] in on.out
    assert "--limit" in on.err
    address = first["address"]
    assert on.json("person", "show", address.upper()) == first
    assert on.json("person", "show", first["id"]) == first
    assert on.run("person", "show", address) == 0
    for link in first["links"]:
        assert link["id"] in on.out
    assert on.json("person", "list", address[:8].upper())[0] == first
    assert on.run("person", "list", "nobody of that name") == 0
    assert on.json("person", "list", "nobody of that name") == []
    assert on.run("person", "show", "who@example.org") == 5


def test_the_owner_merges_and_parts(on: Any) -> None:
    before = on.json("person", "list")
    one, other = before[0]["address"], before[1]["address"]
    assert on.run("person", "merge", one, other) == 0
    assert {one, other} <= set(on.json("person", "show", one)["addresses"])
    assert on.run("person", "separate", other) == 0
    assert on.json("person", "list") == before


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("merge", "Ada", "ada@example.org"), 64),
        (("merge", "ada@example.org", "ADA@example.org"), 64),
        (("merge", "nobody@example.org", "none@example.org"), 5),
        (("separate", "Ada"), 64),
        (("part", "nobody@example.org"), 5),
    ],
)
def test_what_cannot_be_corrected_is_refused(on: Any, words: tuple[str, ...], code: int) -> None:
    assert on.run("person", *words) == code
