"""How objects are sent."""

from __future__ import annotations

import msgspec

from pdpp_kernel.wire_objects import ENCODE, WireObject, raw_json


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
