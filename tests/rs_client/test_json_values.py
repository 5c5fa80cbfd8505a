import pytest

from personal_server.rs_client.json_values import as_count, as_text, parse_json


def test_lone_surrogates_become_replacement_characters() -> None:
    assert parse_json(b'{"a\\ud800":["\\udfff x"]}') == {"a\ufffd": ["\ufffd x"]}
    assert parse_json(b'"\\ud83d\\ude00"') == "\U0001f600"


refused = [
    (b"", "Expecting value"),
    (b"NaN", "not a JSON number"),
    (b"[1,]", "Expecting value|Illegal"),
    (b"\xff", "decode"),
    (b"[" * 97 + b"]" * 97, "nested too deeply"),
]


@pytest.mark.parametrize(("raw", "words"), refused)
def test_what_is_not_json_is_refused(raw: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_json(raw)


def test_a_boolean_is_no_count_and_an_empty_text_none() -> None:
    assert as_count(True) is None
    assert as_count(0) == 0
    assert as_text("") is None
