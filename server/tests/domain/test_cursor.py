"""Tokens carry a place, for one request among the sources it was made for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pdpp_kernel.criteria import Condition, Operator
from pdpp_kernel.declaration import Semantics, Stream
from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.values import ValueKind
from personal_server.domain.authority import (
    ReadableSource,
    ReadAuthority,
    SourceId,
    TimeConstraint,
    TokenKind,
)
from personal_server.domain.cursor import (
    ALPHABETS,
    MAX_TOKEN_CHARS,
    PACKED_CHARS,
    CursorPlace,
    TokenUse,
    history_digest,
    holder_digest,
    open_page,
    open_place,
    outlived,
    projection_digest,
    request_digest,
    seal_place,
    sources_digest,
    unpacked_place,
)

STREAM = Stream("entries", Semantics.MUTABLE, "Entries", {}, ("id",), {})
SOURCE = ReadableSource(
    "grt_1",
    SourceId("connector", "urn:journal"),
    "journal",
    "cin_a",
    None,
    STREAM,
    ("id", "title"),
    declaration_version="1",
)
AUTHORITY = ReadAuthority(TokenKind.CLIENT, "own_1", (SOURCE,), grant_ids=("grt_1",))
SOURCES = sources_digest([SOURCE])


class OpenSealer:
    """Seals nothing: use, request and content stand in the token."""

    def seal(self, use: TokenUse, request: str, content: bytes) -> str:
        return f"{use.letter}.{request}.{content.hex()}"

    def open(self, use: TokenUse, request: str, token: str) -> bytes | None:
        letter, asked, content = token.split(".")
        return bytes.fromhex(content) if (letter, asked) == (use.letter, request) else None


SEALER = OpenSealer()


def sealed(*position: object, sources: str = SOURCES) -> str:
    return seal_place(SEALER, TokenUse.PAGE, CursorPlace("abc", sources, position))


def refusal(call: Callable[[], object]) -> PersonalServerError:
    with pytest.raises(PersonalServerError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "00",
        "-12",
        "2026-01-01T00:00:00.5Z",
        "msg_a@example.org",
        "A+b/C==",
        "ä",
        "two words",
        "z" * PACKED_CHARS,
        "z" * (PACKED_CHARS + 1),
        *(alphabet for alphabet in ALPHABETS),
    ],
)
def test_a_place_comes_back_as_it_was(text: str) -> None:
    place = CursorPlace("abc", SOURCES, (text, 7, None, 1.5, True))
    token = seal_place(SEALER, TokenUse.PAGE, place)
    assert open_place(SEALER, TokenUse.PAGE, token, "abc", param="cursor") == place


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**21])
def test_instants_of_any_year_come_back_as_they_were(number: int) -> None:
    place = CursorPlace("abc", SOURCES, (number, "m1"))
    token = seal_place(SEALER, TokenUse.PAGE, place)
    assert open_place(SEALER, TokenUse.PAGE, token, "abc", param="cursor") == place


def content_bytes(text: str) -> int:
    return len(sealed(text).split(".")[2]) // 2 - len(sealed().split(".")[2]) // 2


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0" * 16, 12),
        ("1" * 64, 36),
        ("f" * 64, 36),
        ("z" * 64, 46),
        ("K" * 64, 53),
        ("K" * 65, 67),
    ],
)
def test_keys_and_times_are_packed_and_longer_texts_are_not(text: str, size: int) -> None:
    assert content_bytes(text) == size


@pytest.mark.parametrize(
    ("number", "size"),
    [
        (2**63 - 1, None),
        (-(2**63) + 1, None),
        (2**63, 10),
        (-(2**63), 10),
        (2**71 - 1, 10),
        (2**71, 11),
    ],
)
def test_only_integers_of_more_than_63_bits_are_packed(number: int, size: int | None) -> None:
    [_, packed] = msgspec.msgpack.decode(bytes.fromhex(sealed(number).split(".")[2]))
    assert (len(packed) if isinstance(packed, bytes) else None) == size
    assert unpacked_place("abc", msgspec.msgpack.encode([b"", packed])).position == (number,)


def test_each_use_has_a_letter_of_its_own() -> None:
    assert [use.letter for use in TokenUse] == ["p", "f", "b", "s", "l", "r"]


@pytest.mark.parametrize(("use", "request_"), [(TokenUse.FEED, "abc"), (TokenUse.PAGE, "abd")])
def test_a_token_of_another_use_or_request_is_refused(use: TokenUse, request_: str) -> None:
    error = refusal(lambda: open_place(SEALER, use, sealed(1), request_, param="changes_since"))
    assert (error.code, error.param) == ("invalid_cursor", "changes_since")


def test_a_token_that_is_too_long_is_not_even_opened() -> None:
    text = "a" * 3_000
    longest = sealed(text + "a" * ((MAX_TOKEN_CHARS - len(sealed(text))) // 2))
    assert len(longest) == MAX_TOKEN_CHARS
    assert open_place(SEALER, TokenUse.PAGE, longest, "abc", param="cursor").position
    error = refusal(lambda: open_place(SEALER, TokenUse.PAGE, longest + "00", "abc", param="c"))
    assert error.code == "invalid_cursor"


def test_a_page_goes_on_among_the_sources_it_was_made_for() -> None:
    place = open_page(SEALER, TokenUse.PAGE, sealed(7), "abc", AUTHORITY, [SOURCE])
    assert place.position == (7,)


@pytest.mark.parametrize(
    ("lineage", "code"), [(None, "invalid_cursor"), ("grt_0", "cursor_expired")]
)
def test_a_page_among_other_sources_is_refused_and_expired_where_the_access_was_changed(
    lineage: str | None, code: str
) -> None:
    authority = dataclasses.replace(AUTHORITY, lineage=lineage)
    other = dataclasses.replace(SOURCE, fields=("id",))
    error = refusal(lambda: open_page(SEALER, TokenUse.PAGE, sealed(7), "abc", authority, [other]))
    assert (error.code, error.param) == (code, "cursor")
    assert error.members["recovery"] == {"cursor": None}
    assert outlived(authority).code == code


def test_content_that_was_sealed_is_unpacked_with_its_request() -> None:
    content = msgspec.msgpack.encode([b"\x01\x02", "ä", 3])
    assert unpacked_place("abc", content) == CursorPlace("abc", "0102", ("ä", 3))


def test_a_request_is_told_from_every_other() -> None:
    asked: list[tuple[str, str, tuple[object, ...]]] = [
        ("grant:grt_1", "records", ("entries", None)),
        ("grant:grt_2", "records", ("entries", None)),
        ("grant:grt_1", "changes", ("entries", None)),
        ("grant:grt_1", "records", ("entries", "None")),
        ("grant:grt_1", "records", ("entries",)),
    ]
    digests = {request_digest(*each) for each in asked}
    assert len(digests) == len(asked)
    assert {len(digest) for digest in digests} == {32}


CHANGES: list[dict[str, Any]] = [
    {"grant_id": "grt_2"},
    {"connection_id": "cin_b"},
    {"declared": replace(STREAM, name="volumes")},
    {"fields": ("id",)},
    {"time_constraint": TimeConstraint("at", 1)},
    {"time_constraint": TimeConstraint("at", 2)},
    {"time_constraint": TimeConstraint("at", None, 2)},
    {"time_constraint": TimeConstraint("on", 1)},
    {"resources": frozenset({"e1"})},
    {"resources": frozenset({"e2"})},
    {"only": (Condition("id", ValueKind.STRING, Operator.EQ, "a"),)},
    {"only": (Condition("id", ValueKind.STRING, Operator.IN, "a", ("b",)),)},
    {"made_of": (SOURCE,)},
    {"made_of": (dataclasses.replace(SOURCE, fields=("id",)),)},
]


def test_what_could_be_read_is_told_from_every_other() -> None:
    every = [SOURCE, *(dataclasses.replace(SOURCE, **change) for change in CHANGES)]
    for digest in (projection_digest, sources_digest):
        assert len({digest([each]) for each in every}) == len(every)
        assert {len(digest([each])) for each in every} == {16}
        assert digest([SOURCE]) != digest([SOURCE, SOURCE])


def test_order_of_values_makes_no_other_source() -> None:
    def limited(*values: str) -> ReadableSource:
        only = (Condition("id", ValueKind.STRING, Operator.IN, values[0], values[1:]),)
        return dataclasses.replace(SOURCE, only=only, resources=frozenset(values))

    assert sources_digest([limited("a", "b")]) == sources_digest([limited("b", "a")])


def test_a_new_declaration_ends_cursors_and_not_feeds() -> None:
    newer = dataclasses.replace(SOURCE, declaration_version="2")
    assert projection_digest([newer]) == projection_digest([SOURCE])
    assert sources_digest([newer]) != sources_digest([SOURCE])


def test_a_feed_is_of_one_history() -> None:
    histories = [
        history_digest([SOURCE], "epoch", "era"),
        history_digest([SOURCE], "other", "era"),
        history_digest([SOURCE], "epoch", "other"),
        history_digest([dataclasses.replace(SOURCE, fields=("id",))], "epoch", "era"),
    ]
    assert len(set(histories)) == 4
    assert {len(history) for history in histories} == {16}


def test_a_successor_shares_cursors_and_not_the_holder() -> None:
    successor = dataclasses.replace(AUTHORITY, grant_ids=("grt_2",), lineage="grt_1")
    assert successor.cursor_holder == AUTHORITY.cursor_holder
    assert holder_digest(successor) != holder_digest(AUTHORITY)
    assert len(holder_digest(AUTHORITY)) == 16
