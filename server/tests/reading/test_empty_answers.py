"""Which values are near one that nobody has."""

import pytest

from personal_server.reading.empty_answers import MAX_NEAR, few, nearest

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


def test_where_there_are_few_all_are_named_the_frequent_first() -> None:
    assert few({"in": 2, "out": 7}) == ["out", "in"]
    assert few({str(number): 1 for number in range(MAX_NEAR + 1)}) == []


def test_few_are_named_and_the_frequent_first() -> None:
    many = {f"shop {n}": n for n in range(1, 50)}
    assert nearest(["shop"], many) == [f"shop {n}" for n in range(49, 49 - MAX_NEAR, -1)]
