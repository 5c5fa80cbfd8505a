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


def test_a_key_keeps_what_all_keys_of_its_stream_have_alike() -> None:
    samples = [
        {**each, "id": f"note-{number:04}@mail.example"} for number, each in enumerate(SAMPLES)
    ]
    for seed in range(10):
        canary = disguised(samples[3], samples, ENTRIES, random.Random(seed))
        key = str(canary["id"])
        assert key.startswith("note-00")
        assert key.endswith("@mail.example")
        assert len(key) == len("note-0003@mail.example")
        assert key not in {each["id"] for each in samples}
    keys = {disguised(samples[3], samples, ENTRIES, random.Random(n))["id"] for n in range(10)}
    assert len(keys) > 1


def test_its_words_are_those_of_several_records_and_no_sentence_is_known() -> None:
    known = {word for each in SAMPLES for word in str(each["body"]).split()}
    bodies = {str(made(3, seed)["body"]) for seed in range(10)}
    assert len(bodies) == 10
    for body in bodies:
        assert len(body.split()) == len(str(SAMPLES[3]["body"]).split())
        assert {word.lower() for word in body.split()} <= {word.lower() for word in known}
