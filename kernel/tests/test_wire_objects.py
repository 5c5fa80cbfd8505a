"""How objects are sent."""

from __future__ import annotations

import msgspec
import pytest

from pdpp_kernel.wire_objects import ENCODE, Count, No, WireObject, Word, Yes, raw_json


class Shelf(WireObject):
    label: str | None
    count: int | None = None
    books: msgspec.Raw | None = None


def test_a_member_with_a_default_is_left_out_and_one_without_may_be_null() -> None:
    assert ENCODE(Shelf(label=None)) == b'{"label":null}'
    assert ENCODE(Shelf(label="a", count=0)) == b'{"label":"a","count":0}'


def test_a_stored_value_is_sent_as_stores_write_it() -> None:
    books = raw_json({"price": 1.0, "title": "Ä", "read": None})
    assert ENCODE(Shelf(label="a", books=books)) == (
        '{"label":"a","books":{"price":1.0,"title":"Ä","read":null}}'.encode()
    )


def test_a_word_has_a_letter_and_a_count_is_not_negative() -> None:
    assert msgspec.convert(["a", 0], tuple[Word, Count]) == ("a", 0)
    for value, kind in (("", Word), (-1, Count)):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(value, kind)


def test_a_flag_that_is_always_the_same_says_so_where_it_is_published() -> None:
    assert [msgspec.json.schema(kind)["enum"] for kind in (Yes, No)] == [[True], [False]]
