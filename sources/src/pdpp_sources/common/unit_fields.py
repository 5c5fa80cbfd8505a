"""Fields of amounts, and the field that says in which currency or unit they are.

Source: docs/contract/resource-server.md 17.
"""

from __future__ import annotations

from msgspec.structs import replace

from pdpp_sources.common.declaration import Field, number, word


def in_unit(shown: Field, *, by: str | None = None, unit: str | None = None) -> Field:
    """A number, and what says in which unit it is: another field, a word, or a part of both."""
    members = {"x_pdpp_unit_field": by, "x_pdpp_unit": unit}
    present = {name: value for name, value in members.items() if value is not None}
    return replace(shown, schema=shown.schema | present)


def adding_up(shown: Field, *measured: str) -> Field:
    """A number whose values of a day make a sum: all, or those of what is measured there."""
    return replace(shown, schema=shown.schema | {"x_pdpp_total": list(measured) or True})


def total(name: str, about: str, unit: str) -> Field:
    """A number in a unit whose values of a day make a sum."""
    return adding_up(in_unit(number(name, about, summed=True), unit=unit))


def measuring(shown: Field, by: str) -> Field:
    """A number, and the field of the same record that says what it measures."""
    return replace(shown, schema=shown.schema | {"x_pdpp_measure_field": by})


def currency(name: str, about: str, *, searched: bool = False) -> Field:
    """The ISO 4217 code that amounts beside it are in."""
    made = word(name, about, searched=searched)
    return replace(made, schema=made.schema | {"x_pdpp_type": "currency"})
