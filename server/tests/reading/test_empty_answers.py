"""Which values are near one that nobody has."""

import pytest

from pdpp_kernel.criteria import Condition
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import ValueKind
from personal_server.reading.empty_answers import (
    MAX_NEAR,
    MAX_VALUE_CHARS,
    few,
    nearest,
    visible_values,
)
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import BANK, BANKING, OWNER, write

PAYEES = {
    "Netflix": 12,
    "Netflix.com": 3,
    "Café Roma": 4,
    "Nettle Farm": 40,
    "Amazon": 90,
    "Rewe": 7,
    "Reve": 1,
    "Deutsche Bahn": 5,
    "null": 2,
    "Mike's Construction Co.": 2,
    "L’Étoile": 1,
}


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        ("netflix", ["Netflix", "Netflix.com"]),
        ("NETFLIX.COM", ["Netflix.com", "Netflix"]),
        ("cafe roma", ["Café Roma"]),
        ("bahn", ["Deutsche Bahn"]),
        ("Netlfix", ["Netflix"]),
        ("rewe", ["Rewe", "Reve"]),
        ("Amazon Marketplace", ["Amazon"]),
        ("Mikes construction", ["Mike's Construction Co."]),
        ("mike’s construction", ["Mike's Construction Co."]),
        ("letoile", ["L’Étoile"]),
        ("re", []),
        ("zzz", []),
        ("", []),
        ("!?", []),
    ],
)
def test_near_is_what_differs_by_signs_by_its_rest_or_by_letters(
    sought: str, found: list[str]
) -> None:
    assert nearest([sought], PAYEES) == found


def test_what_holds_a_part_is_nearer_than_what_differs_in_letters() -> None:
    values = {"market": 1, "mart": 1, "big mark": 1, "marks": 1, "maxx": 1}
    # the rest, what stands around, one letter, two letters of a longer one
    assert nearest(["mark"], values) == ["market", "marks", "big mark", "mart"]
    assert nearest(["market"], {"malkot": 9, "markit": 1}) == ["markit", "malkot"]
    assert nearest(["rewe"], {"rewwe": 1, "rewwwe": 1, "rwe": 1}) == ["rewwe", "rwe"]


@pytest.mark.parametrize(
    ("sought", "edits", "is_near"),
    [
        ("ab", 1, False),
        ("abc", 1, True),
        ("abcde", 1, True),
        ("abcde", 2, False),
        ("abcdef", 2, True),
        ("abcdefgh", 2, True),
        ("abcdefghi", 2, True),
        ("abcdefghi", 3, False),
        ("abcdefghijklmnop", 3, False),
    ],
)
def test_a_third_of_the_letters_may_differ_and_two_at_most(
    sought: str, edits: int, is_near: bool
) -> None:
    value = "z" * edits + sought[edits:]
    assert nearest([sought], {value: 1}) == ([value] if is_near else [])


def test_where_there_are_few_all_are_named_the_frequent_first() -> None:
    assert few({"in": 2, "out": 7}) == ["out", "in"]
    assert few({str(number): 1 for number in range(MAX_NEAR + 1)}) == []
    assert len(few({str(number): 1 for number in range(MAX_NEAR)})) == MAX_NEAR


def test_few_are_named_and_the_frequent_first() -> None:
    many = {f"shop {n}": n for n in range(1, 50)}
    assert nearest(["shop"], many) == [f"shop {n}" for n in range(49, 49 - MAX_NEAR, -1)]


def test_values_longer_than_a_line_are_not_offered(door: Door) -> None:
    longest = "x" * MAX_VALUE_CHARS
    titles = ["", longest, longest + "x", "Rain"]
    written = [{"id": f"n{n}", "title": title} for n, title in enumerate(titles)]
    write(door.store, BANK, "entries", written, declared=BANKING)
    (source,) = (s for s in OWNER.sources if s.order == (BANK, "entries"))
    wanted = Condition("title", ValueKind.STRING, Operator.EQ, "Snow")
    with door.store.snapshot() as snapshot:
        found = visible_values(snapshot, (source,), wanted, ())
    assert found == {"Rain": 2, longest: 1}
