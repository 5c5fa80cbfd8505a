"""The tables of languages fit each other."""

from __future__ import annotations

from personal_server.domain.language_names import (
    FAMILIES,
    LANGUAGE_CODES,
    OTHER_FAMILY,
    STEMLESS,
    STEMMERS,
    USUAL_LANGUAGE,
)


def test_each_stemmer_has_one_code_and_each_family_is_of_stemmers() -> None:
    assert {LANGUAGE_CODES[name]: name for name in LANGUAGE_CODES} == STEMMERS
    assert FAMILIES.keys() <= LANGUAGE_CODES.keys()
    assert OTHER_FAMILY not in FAMILIES.values()
    assert STEMMERS["en"] == USUAL_LANGUAGE


def test_no_language_is_with_and_without_a_stemmer() -> None:
    assert STEMMERS.keys().isdisjoint(STEMLESS.split())
