"""Each line of a log follows from the one before."""

from __future__ import annotations

import hashlib

from personal_server.domain.log_chain import GENESIS, LogHead, link_of

LINE = {"number": 1, "event": "read", "client": None}


def test_a_link_is_a_digest_over_the_link_before_and_the_line_in_one_order() -> None:
    written = GENESIS + b'{"event":"read","number":1}'
    assert GENESIS == b"\0" * 32
    assert link_of(GENESIS, LINE) == hashlib.sha256(written).digest()


def test_members_without_a_value_and_their_order_do_not_count() -> None:
    assert link_of(GENESIS, {"event": "read", "number": 1}) == link_of(GENESIS, LINE)
    assert link_of(GENESIS, {**LINE, "client": ""}) != link_of(GENESIS, LINE)


def test_another_line_before_is_another_link() -> None:
    assert link_of(link_of(GENESIS, LINE), LINE) != link_of(GENESIS, LINE)


def test_a_signature_stands_for_where_a_log_was_or_was_cut() -> None:
    head = LogHead("disclosures", 7, b"\x0f", 5)
    cut = LogHead("disclosures", 7, b"\x0f", 5, is_cut=True)
    assert head.signed_text == b"pdpp log head\ndisclosures\n7\n0f\n5"
    assert cut.signed_text == b"pdpp log cut\ndisclosures\n7\n0f\n5"
