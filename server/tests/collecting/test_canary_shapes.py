import random
from pathlib import Path

import orjson

from personal_server.collecting.canary_shapes import disguised
from personal_server.domain.declaration_document import parse_declaration

RAW = orjson.loads((Path(__file__).parents[1] / "samples" / "journal.json").read_bytes())
ENTRIES = parse_declaration(orjson.dumps(RAW)).streams["entries"]
SAMPLES = [
    {
        "id": f"ent_{number}a",
        "title": f"A title that only number {number} has",
        "created_at": f"2026-03-{number + 1:02}T21:40:00Z",
        "body": f"Something that was said of {number} alone, at some length and in private.",
        "mood": "calm",
        "word_count": 1_000 + number,
    }
    for number in range(20)
]


def made(number: int, seed: int = 1) -> dict[str, object]:
    return disguised(SAMPLES[number], SAMPLES, ENTRIES, random.Random(seed))


def test_a_canary_has_the_form_of_its_donor_and_a_key_of_its_own() -> None:
    canary, donor = made(3), SAMPLES[3]
    assert canary.keys() == donor.keys() & ENTRIES.properties.keys()
    assert canary["id"] != donor["id"]
    assert str(canary["id"])[3:4] == "_"
    assert all(type(canary[name]) is type(donor[name]) for name in canary)


def test_it_stands_at_the_time_of_its_donor_and_repeats_what_others_say_too() -> None:
    canary = made(3)
    assert canary["created_at"] == SAMPLES[3]["created_at"]
    assert canary.get("mood", "calm") == "calm"


def test_nothing_that_only_the_donor_says_is_in_it() -> None:
    for number in range(20):
        said = str(made(number, seed=number))
        assert "title that only" not in said
        assert "in private" not in said
