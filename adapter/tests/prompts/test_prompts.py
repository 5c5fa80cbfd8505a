import pytest

from pdpp_mcp_server.prompts import PROMPTS, UnusableArguments


def test_there_are_four_prompts_with_their_arguments() -> None:
    listed = {name: [a.name for a in prompt.arguments] for name, prompt in PROMPTS.items()}
    assert listed == {
        "what_is_shared": [],
        "answer_with_evidence": ["question", "stream", "connection_id"],
        "timeline": ["topic", "stream", "connection_id", "since", "until"],
        "stream_overview": ["stream", "connection_id", "field"],
    }


def test_arguments_are_inserted_as_short_clean_json_strings() -> None:
    text = PROMPTS["timeline"].render({"topic": 'a "b"\n\u202ec' + "x" * 900, "since": "2026"})
    assert 'topic: "a \\"b\\" cx' in text
    assert 'since: "2026"' in text
    assert len(text) < 1_200


@pytest.mark.parametrize(
    ("given", "missing", "unknown"),
    [({}, ["topic"], []), ({"topic": " "}, ["topic"], []), ({"topic": "x", "y": "z"}, [], ["y"])],
)
def test_missing_and_unknown_arguments_are_named(
    given: dict[str, str], missing: list[str], unknown: list[str]
) -> None:
    with pytest.raises(UnusableArguments) as refused:
        PROMPTS["timeline"].render(given)
    assert (refused.value.missing, refused.value.unknown) == (missing, unknown)
    assert all(name in refused.value.message for name in missing + unknown)
