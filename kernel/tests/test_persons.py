from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from pdpp_kernel.person_fields import (
    Identity,
    IdentityKind,
    PersonField,
    PersonForm,
    handle_of,
    identity_of,
    number_of,
    person_field,
)
from pdpp_kernel.persons import (
    MOST_LINKS,
    MOST_NAMES,
    NO_CORRECTIONS,
    Mention,
    merged,
    parted,
    persons_of,
)

ADA = Identity(IdentityKind.ADDRESS, "ada@example.org")
BOB = Identity(IdentityKind.ADDRESS, "bob@example.org")
HOME = Identity(IdentityKind.NUMBER, "+493012345678")


def card(key: str, *identities: Identity, name: str | None = None) -> list[Mention]:
    where = ("contacts", "cin_a", "contacts", "emails", key)
    return [Mention(identity, name, *where, card=key) for identity in identities]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (" Ada@Example.ORG ", "ada@example.org"),
        ("MAILTO:ada@example.org?subject=x", "ada@example.org"),
        ("ada@localhost", "ada@localhost"),
        ("+49 (0)170 / 123 45-67", "+491701234567"),
        ("0049 170 1234567", "+491701234567"),
        ("tel:+491701234567;ext=3", "+491701234567"),
        ("+1 (212) 555-0100 x12", "+12125550100"),
        ("+\u0664\u0669 170 1234567", "+491701234567"),
        ("0170 1234567", "01701234567"),
        ("skype: Ada.B", "skype:ada.b"),
    ],
)
def test_spellings_of_one_identity_are_one(text: str, wanted: str) -> None:
    found = identity_of(text)
    assert found is not None
    assert found.value == wanted


@pytest.mark.parametrize(
    "text", ["", "Ada", "@", "a@", "@b", "a b@c", "112", "1" * 16, "+12", ":x", "x:", "a@b@c"]
)
def test_what_is_no_identity_is_none(text: str) -> None:
    assert identity_of(text) is None


def test_a_number_without_a_country_is_not_one_with_it() -> None:
    assert number_of("0170 1234567") != number_of("+49 170 1234567")


def test_what_is_written_for_people_has_a_name_beside() -> None:
    field = PersonField("to", PersonForm.WRITTEN)
    texts = [
        '"Byron, Ada" <ADA@example.org>',
        "Bob",
        "<bob@example.org>",
        7,
        "a@x <bob@example.org>",
    ]
    found = list(field.read({"to": texts}))
    assert found == [(ADA, "Byron, Ada"), (BOB, None), (BOB, None)]


@pytest.mark.parametrize(("length", "count"), [(1_000, 1), (1_001, 0)])
def test_an_entry_has_a_longest(length: int, count: int) -> None:
    text = "<ada@example.org>".rjust(length)
    assert len(list(PersonField("to", PersonForm.WRITTEN).read({"to": text}))) == count


@pytest.mark.parametrize(
    "text", [" " * 900 + "<", "<" * 900, "x" * 900, "1x\n" * 300, "a" * 900, "+1 " * 10**6]
)
def test_what_others_wrote_to_take_time_takes_none(text: str) -> None:
    assert list(PersonField("to", PersonForm.WRITTEN).read({"to": text})) == []
    assert list(PersonField("to", PersonForm.NUMBER).read({"to": [text]})) == []


@pytest.mark.parametrize("said", [None, "address", {}, {"form": "face"}, {"form": ["address"]}])
def test_what_a_declaration_says_otherwise_says_nothing(said: object) -> None:
    assert person_field("x", {"type": "string", "x_pdpp_person": said}) is None


def test_a_card_joins_and_a_name_does_not() -> None:
    persons = persons_of(
        [*card("1", ADA, HOME, name="A"), *card("2", BOB, name="A")], NO_CORRECTIONS
    )
    assert sorted(str(each["addresses"]) for each in persons) == [
        "['ada@example.org']",
        "['bob@example.org']",
    ]


def test_what_was_parted_joins_nobody_until_it_is_merged_again() -> None:
    mentions = [*card("1", ADA, HOME), *card("2", BOB, HOME)]
    assert len(persons_of(mentions, NO_CORRECTIONS)) == 1
    apart = parted(NO_CORRECTIONS, HOME)
    assert len(persons_of(mentions, apart)) == 3
    again = merged(apart, HOME, BOB)
    assert len(persons_of(mentions, again)) == 2
    assert parted(again, HOME) == apart


def test_a_merge_with_somebody_unseen_joins_nothing() -> None:
    known = merged(merged(NO_CORRECTIONS, ADA, HOME), HOME, BOB)
    assert len(persons_of([*card("1", ADA), *card("2", BOB)], known)) == 2


def test_a_person_keeps_its_id_while_others_join_behind_the_first() -> None:
    (alone,) = persons_of(card("1", ADA), NO_CORRECTIONS)
    (more,) = persons_of(card("1", ADA, BOB, HOME), NO_CORRECTIONS)
    assert alone["id"] == more["id"]


@pytest.mark.parametrize(
    ("network", "name", "is_one"),
    [
        ("n" * 64, "a", True),
        ("n" * 65, "a", False),
        ("n", "a" * 256, True),
        ("n", "a" * 257, False),
    ],
)
def test_a_network_and_a_name_in_it_have_a_longest(network: str, name: str, is_one: bool) -> None:
    assert (handle_of(name, network) is not None) is is_one


def test_a_name_beside_an_identity_is_that_of_its_own_field() -> None:
    sender = PersonField("from", PersonForm.ADDRESS, named_by="sender")
    record = {"from": "ada@example.org", "sender": "Ada", "subject": "Rain"}
    assert list(sender.read(record)) == [(ADA, "Ada")]
    assert list(replace(sender, named_by=None).read(record)) == [(ADA, None)]


def test_the_name_of_a_card_comes_before_one_that_is_mentioned_more_often() -> None:
    messages = ("mail", "cin_b", "messages", "from", "m1")
    mentioned = [Mention(ADA, "Ada B.", *messages, count=5)]
    (person,) = persons_of([*mentioned, *card("1", ADA, name="Ada Byron")], NO_CORRECTIONS)
    assert person["name"] == "Ada Byron"


HANDLE = Identity(IdentityKind.HANDLE, "skype:ada")


def mentioned(connection: str, key: str, name: str | None = None, **members: Any) -> Mention:
    return Mention(ADA, name, "mail", connection, "messages", "from", key, **members)


def test_a_person_has_identities_names_and_figures_in_the_order_of_their_kinds() -> None:
    cards = card("1", HANDLE, HOME, BOB, ADA, name="Ada Byron")
    (person,) = persons_of([*cards, mentioned("cin_b", "m1", "Ada", count=3)], NO_CORRECTIONS)
    links = person.pop("links")
    assert person == {
        "id": "per_f49e99a003fcd93b04c95e18",
        "name": "Ada Byron",
        "other_names": ["Ada"],
        "address": "ada@example.org",
        "addresses": ["ada@example.org", "bob@example.org"],
        "number": "+493012345678",
        "numbers": ["+493012345678"],
        "handles": ["skype:ada"],
        "reachable_at": "ada@example.org bob@example.org +493012345678 skype:ada",
        "mention_count": 7,
    }
    link = {"connection_id": "cin_a", "stream": "contacts", "id": "1"}
    mail = {"connection_id": "cin_b", "stream": "messages", "id": "m1", "field": "from"}
    assert links == [{"connector_key": "contacts", **link}, {"connector_key": "mail", **mail}]


def test_a_person_without_names_addresses_and_numbers_has_none() -> None:
    (person,) = persons_of(card("1", HANDLE), NO_CORRECTIONS)
    assert (person["name"], person["address"], person["number"]) == (None, None, None)
    assert (person["other_names"], person["reachable_at"]) == ([], "skype:ada")


def test_links_are_cards_first_then_the_first_record_of_each_field() -> None:
    mails = [mentioned("cin_a", "m2"), mentioned("cin_a", "m1"), mentioned("cin_0", "m3")]
    cards = [*card("2", ADA), *card("1", ADA)]
    (person,) = persons_of([*mails, *cards], NO_CORRECTIONS)
    links = cast("list[dict[str, object]]", person["links"])
    assert [link["id"] for link in links] == ["1", "2", "m3", "m1"]


def test_links_and_names_are_bounded() -> None:
    assert (MOST_LINKS, MOST_NAMES) == (20, 10)
    mails = [mentioned(f"cin_{n:02}", "m", f"Ada {n:02}") for n in range(30)]
    (person,) = persons_of(mails, NO_CORRECTIONS)
    links = cast("list[dict[str, object]]", person["links"])
    assert [link["connection_id"] for link in links] == [f"cin_{n:02}" for n in range(20)]
    assert (person["name"], person["other_names"]) == (
        "Ada 00",
        [f"Ada {n:02}" for n in range(1, 11)],
    )


def test_among_names_those_of_cards_come_first_then_those_of_most_mentions() -> None:
    mails = [
        mentioned("cin_a", "m1", "Rare"),
        mentioned("cin_a", "m2", "Often", count=5),
        mentioned("cin_a", "m3", "Once"),
        *card("1", ADA, name="Card"),
    ]
    (person,) = persons_of(mails, NO_CORRECTIONS)
    assert (person["name"], person["other_names"]) == ("Card", ["Often", "Once", "Rare"])


def test_cards_of_another_stream_or_connection_are_other_cards() -> None:
    elsewhere = [
        replace(*card("1", BOB), stream="people"),
        replace(*card("1", HOME), connection_id="cin_b"),
    ]
    assert len(persons_of([*card("1", ADA), *elsewhere], NO_CORRECTIONS)) == 3


def test_long_chains_of_cards_are_one_person() -> None:
    chain = [Identity(IdentityKind.ADDRESS, f"{n}@example.org") for n in range(40)]
    mentions = [m for n in range(39) for m in card(str(n), chain[n], chain[n + 1])]
    for order in (mentions, mentions[::-1]):
        assert len(persons_of(order, NO_CORRECTIONS)) == 1
