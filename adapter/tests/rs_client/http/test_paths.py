import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_mcp_server.rs_client.http import encode_path, encode_query

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


def record(key: str) -> str:
    return encode_path(("v1", "streams", "notes", "records", key)).rpartition("/")[2]


@pytest.mark.parametrize(
    ("key", "sent"),
    [
        ("a/b", "a%2Fb"),
        ("a..b", "a%2E%2Eb"),
        (".", "~b64.Lg"),
        ("..", "~b64.Li4"),
        ("~b64.x", "~b64.fmI2NC54"),
        ("a b", "a%20b"),
        ("é", "%C3%A9"),
        ("50%", "50%25"),
        ("a.b", "a.b"),
    ],
)
def test_record_keys_survive_every_normalizer(key: str, sent: str) -> None:
    assert record(key) == sent


@settings(max_examples=100)
@given(texts)
def test_a_segment_is_one_segment(key: str) -> None:
    assert "/" not in record(key)
    assert ".." not in record(key)


@pytest.mark.parametrize("path", [("v1", ""), ("v1", "streams", ".."), ("v1", ".")])
def test_relative_and_empty_segments_are_refused(path: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="segment"):
        encode_path(path)


def test_parameters_keep_order_and_may_repeat() -> None:
    query = (("fields", "a b"), ("fields", "c&d"), ("filter[x][gte]", "1+2"))
    assert encode_query(query) == "fields=a%20b&fields=c%26d&filter[x][gte]=1%2B2"
