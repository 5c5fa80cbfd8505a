import pytest

from pdpp_mcp_server.rs_client.json_values import as_count, as_text, parse_json


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


def test_numbers_of_any_length_are_kept() -> None:
    long = 123456789012345678901234567890
    assert parse_json(f'{{"a":[{long}, -{long}],"b":"{long}"}}'.encode()) == {
        "a": [long, -long],
        "b": str(long),
    }
    assert parse_json(b"[18446744073709551615, 1e300]") == [2**64 - 1, 1e300]


def test_depth_counts_beside_a_large_number_too() -> None:
    deep = b"[" * 97 + b"]" * 97
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(b"[1e300," + deep + b"]")


def test_a_boolean_is_no_count_and_an_empty_text_none() -> None:
    assert as_count(True) is None
    assert as_count(0) == 0
    assert as_text("") is None
