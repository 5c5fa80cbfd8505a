"""What a search without enough matches says, as a reader understands it."""

from typing import Any

from pdpp_mcp_server.faces.relaxed_words import held_as_written, relaxed_facts, relaxed_sentence

BODY: dict[str, Any] = {
    "data": [{}],
    "meta": {"relaxed": {"words": 5, "exact_count": 0, "least": 3, "spelled": ["adoptoin"]}},
}


def test_no_hit_is_said_to_hold_a_word_that_was_searched_in_another_spelling() -> None:
    lines = ["[1] cin_a/messages:m1", "holds: adoptoin, papers", "holds: adoptoin"]
    assert held_as_written(lines, BODY) == ["[1] cin_a/messages:m1", "holds: papers"]
    assert held_as_written(lines, {"meta": {}}) == lines


def test_json_for_readers_of_text_says_the_sentence() -> None:
    told = relaxed_sentence(BODY)
    assert told.startswith('with_all_words=0; others="at least 3 of 5 words"')
    assert "respelled: adoptoin" in told
    assert relaxed_sentence({"data": []}) == ""


def test_words_that_stand_apart_are_not_called_spelled_otherwise() -> None:
    relaxed = {"words": 1, "exact_count": 0}
    apart, spelled = (
        relaxed_facts({"data": [{}], "meta": {"relaxed": {**relaxed, **more}}})
        for more in ({}, {"spelled": ["remialer"]})
    )
    assert apart != spelled
