"""What reads stand on where nobody says otherwise."""

from __future__ import annotations

from msgspec.structs import replace

from personal_server.reading.ports import model_of, unsigned
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import furnished


class Embedder:
    model = "small"


def test_nobody_signs_nothing_is_planted_and_days_are_those_of_utc() -> None:
    ports = Door(furnished()).ports
    assert ports.sign_export("0" * 64) == unsigned("0" * 64) == {}
    assert ports.planted() == frozenset()
    assert ports.time_zone() == "UTC"


def test_meaning_is_searched_by_the_model_that_is_there() -> None:
    ports = Door(furnished()).ports
    assert model_of(ports) is None
    assert model_of(replace(ports, embedder=Embedder())) == "small"  # type: ignore[arg-type]
