"""What is shown of a matching record."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.declaration import Property
from pdpp_kernel.record import FieldChange
from personal_server.domain.authority import ReadableSource
from personal_server.domain.search_words import parse_words
from personal_server.enforcement.rows import Neighbours
from personal_server.enforcement.search_hits import (
    FoundPassage,
    SearchResult,
    SoughtHit,
    disclose_context,
    disclose_hit,
    matches_in,
    paid_in,
    spoken_fields,
    text_chars,
)
from server.tests.enforcement.mailbox import TEXT, WHOLE, authority, mails, notes, row

RAIN = row(
    subject="Rain",
    body="Heavy rain until dark.",
    sender="ada@example.org",
    sender_name="Ada",
    parent_id="m0",
    sent_at="2026-01-01T10:00:00Z",
)
PASSAGE = FoundPassage("body", 6, 10)


def hit(words: str = "rain", *fields: str, found: Any = RAIN, **asked: Any) -> SearchResult | None:
    source = mails(*fields)
    is_lean = asked.pop("is_lean", False)
    sought = SoughtHit(parse_words(words), **asked)
    return disclose_hit(authority(source, notes()), source, found, sought, is_lean=is_lean)


def shown(words: str = "rain", *fields: str, found: Any = RAIN, **asked: Any) -> SearchResult:
    result = hit(words, *fields, found=found, **asked)
    assert result is not None
    return result


def test_a_hit_says_which_record_it_is_and_where_it_matches() -> None:
    result = shown()
    assert (result.id, result.record_id, result.record_key, result.stream) == (
        "m1",
        "m1",
        "m1",
        "mails",
    )
    assert result.record_url == "/v1/streams/mails/records/m1?connection_id=cin_a"
    assert (result.connector_id, result.connection_id, result.retrieval_mode) == (
        "mail",
        "cin_a",
        "lexical",
    )
    assert result.matched_fields == ["subject", "body"]
    assert (result.title, result.authored_at) == ("Rain", "2026-01-01T10:00:00Z")
    assert (result.retrieval_sources, result.matched_words) == (None, None)


def test_a_hit_quotes_what_the_title_does_not_say() -> None:
    assert shown().evidence_excerpts[0].field_path == "body"
    alone = row(subject="Rain")
    assert shown(found=alone).evidence_excerpts[0].field_path == "subject"
    long = row(subject="rain " * 41, body="Some rain")
    assert shown(found=long).evidence_excerpts[0].field_path == "subject"
    whole = row(subject="rain" + " " * 196, body="Some rain")
    assert shown(found=whole).evidence_excerpts[0].field_path == "body"


def test_title_author_and_time_are_told_where_they_are_granted() -> None:
    bare = shown("rain", "id", "body")
    assert (bare.title, bare.author, bare.authored_at, bare.parent) == (None, None, None, None)


def test_titles_and_authors_are_cut() -> None:
    found = row(subject="r" * 300 + " rain", sender="a" * 300, body="rain")
    result = shown(found=found)
    assert (result.title, result.author) == ("r" * 200, "a" * 200)


@pytest.mark.parametrize(
    ("folder", "name"), [("f" * 300, "f" * 200), ("General", "General"), (" ", None), (7, None)]
)
def test_a_hit_says_how_people_call_its_conversation(folder: object, name: str | None) -> None:
    found = row(subject="rain", folder=folder)
    assert shown(found=found).conversation == name
    assert shown("rain", "id", "subject", found=found).conversation is None


@pytest.mark.parametrize("sender", [None, " ", 7])
def test_the_first_field_that_names_an_author_does(sender: object) -> None:
    found = row(subject="rain", sender=sender, sender_name="Ada")
    assert shown(found=found).author == "Ada"


def test_a_hit_is_dated_by_what_may_be_seen_of_it() -> None:
    changed = RAIN._replace(field_changes={"size": FieldChange(5, 9_000_000_000)})
    assert shown("rain", "id", "body", found=changed).emitted_at == "1970-01-01T00:00:01.000Z"
    assert shown(found=changed).emitted_at == "1970-01-01T00:00:09.000Z"


def test_a_file_says_with_which_record_it_came_where_that_can_be_read() -> None:
    parent = shown().parent
    assert parent is not None
    assert (parent.stream, parent.record_id) == ("mails", "m0")
    source = mails()
    elsewhere = authority(mails(connection_id="cin_b"), notes())
    told = disclose_hit(elsewhere, source, RAIN, SoughtHit(parse_words("rain")))
    assert told is not None
    assert told.parent is None


@pytest.mark.parametrize("key", [None, "", 7])
def test_a_file_without_a_key_of_another_record_came_with_none(key: object) -> None:
    found = row(subject="rain", parent_id=key)
    assert shown(found=found).parent is None


def test_what_holds_neither_words_nor_passage_is_no_hit() -> None:
    assert hit("snow") is None
    assert hit("rain", "id", "size") is None
    assert hit("rain", "id", "size", passage=PASSAGE, mode="semantic") is None


def test_a_hit_by_meaning_quotes_its_passage() -> None:
    result = shown("storm", passage=PASSAGE, mode="semantic")
    assert (result.matched_fields, result.retrieval_mode) == (["body"], "semantic")
    assert result.evidence_excerpts[0].field_path == "body"
    assert result.evidence_excerpts[0].preview_text == "rain"
    assert result.retrieval_sources is None


def test_a_hit_by_both_says_by_which() -> None:
    both = shown("heavy", passage=PASSAGE, mode="hybrid")
    assert (both.retrieval_sources, both.matched_fields) == (["lexical", "semantic"], ["body"])
    assert shown("heavy", mode="hybrid").retrieval_sources == ["lexical"]
    assert shown("storm", passage=PASSAGE, mode="hybrid").retrieval_sources == ["semantic"]


def test_words_do_not_count_where_meaning_alone_was_asked_for() -> None:
    assert hit("rain", mode="semantic") is None


@pytest.mark.parametrize("found", [row(body=7), row(body=None), row()])
def test_a_passage_of_what_is_no_text_is_none(found: Any) -> None:
    assert hit("storm", found=found, passage=PASSAGE, mode="semantic") is None


@pytest.mark.parametrize("weight", [0, 1, 2, 3, 4, 5, 99])
@pytest.mark.parametrize("words", ["rain", "rained", "rain dark", "rain -snow", '"heavy rain"'])
def test_matches_are_the_same_whatever_is_known_of_their_weight(words: str, weight: int) -> None:
    # the weight may be that of all forms of the words, and never less
    found = row(subject="Rains", body="Heavy rain until dark. It rained.")
    asked = parse_words(words)
    known = matches_in(mails(), found, asked)
    assert known is not None
    weighty = mails().declared.weighty_fields
    whole = sum(each.occurrences * (2 if each.field in weighty else 1) for each in known)
    if weight in (0, whole) or weight > whole:
        assert matches_in(mails(), found, asked, weight) == known


def test_a_passage_of_a_field_without_meaning_is_none() -> None:
    assert hit("storm", passage=FoundPassage("subject", 0, 4), mode="semantic") is None


def test_a_hit_says_which_of_the_words_it_holds() -> None:
    found = row(subject="Rain", body="dark", folder="inbox")
    result = shown("rain dark folder:inbox", found=found, written=("rain", "dark", "folder:inbox"))
    assert result.matched_words == ["rain", "dark", "folder:inbox"]


def test_all_words_have_to_match_in_granted_fields_and_none_that_is_excluded() -> None:
    def fields(words: str, *granted: str) -> list[str] | None:
        found = matches_in(mails(*granted), RAIN, parse_words(words))
        return None if found is None else [each.field for each in found]

    assert fields("rain dark") == ["body", "subject"]
    assert fields("rain dark", "id", "subject") is None
    assert fields("rain -dark") is None
    assert fields("rain -dark", "id", "subject") == ["subject"]
    assert fields("rain -snow") == ["subject", "body"]


def test_texts_that_a_hit_is_found_in_are_counted_once() -> None:
    found = row(subject="Rain", body="Heavy", sender=7)
    assert text_chars(mails(), found) == 9
    assert text_chars(mails("id", "subject"), found) == 4


def test_what_reads_best_by_meaning_is_spoken_first() -> None:
    assert spoken_fields(mails()) == ("body", "subject", "sender")
    assert spoken_fields(mails("id", "subject")) == ("subject",)


def test_neighbours_begin_with_what_they_say() -> None:
    context = disclose_context(
        mails(), Neighbours(row("m0", body=" ", subject="Snow"), row("m2", body="w" * 90))
    )
    assert context is not None
    assert context.before is not None
    assert context.after is not None
    assert (context.before.record_id, context.before.text) == ("m0", "Snow")
    assert (context.after.record_id, context.after.text) == ("m2", "w" * 80)


def test_a_neighbour_may_be_missing_or_say_nothing() -> None:
    context = disclose_context(mails("id"), Neighbours(None, row("m2", body="hidden")))
    assert context is not None
    assert context.before is None
    assert context.after is not None
    assert context.after.text is None
    assert disclose_context(mails(), Neighbours()) is None


def _payments(*fields: str, unit_field: str = "folder") -> ReadableSource:
    source = mails(*fields)
    money = Property("size", {"x_pdpp_unit_field": unit_field}, WHOLE)
    kept = {**source.declared.properties, "size": money}
    kept["folder"] = Property("folder", {}, TEXT, type="currency")
    return dataclasses.replace(source, declared=replace(source.declared, properties=kept))


@pytest.mark.parametrize(
    ("size", "folder", "amount"),
    [(-12.5, "EUR", "-12.5 EUR"), (0, "USD", "0 USD"), (None, "EUR", None), (3, " ", None)],
)
def test_a_hit_says_what_a_payment_comes_to(size: object, folder: str, amount: str | None) -> None:
    paid = row(subject="Rain", size=size, folder=folder)

    def told(source: ReadableSource) -> str | None:
        found = disclose_hit(authority(source), source, paid, SoughtHit(parse_words("rain")))
        assert found is not None
        return found.amount

    assert told(_payments()) == amount
    assert told(mails()) is None
    assert told(_payments("id", "subject", "size")) is None
    assert told(_payments("id", "subject", "folder")) is None


def test_a_unit_field_that_is_not_declared_is_no_currency() -> None:
    assert [unit.field for _, unit in paid_in(_payments())] == ["folder"]
    assert list(paid_in(_payments(unit_field="gone"))) == []


def test_a_lean_hit_leaves_out_what_follows_from_the_rest() -> None:
    lean = shown(is_lean=True)
    assert (lean.record_id, lean.title, lean.matched_fields) == ("m1", "Rain", ["subject", "body"])
    left_out = (lean.record_url, lean.id, lean.record_key, lean.connector_id, lean.snippet)
    assert left_out == (None,) * 5
    assert lean.evidence_excerpts == [each.lean() for each in shown().evidence_excerpts]
