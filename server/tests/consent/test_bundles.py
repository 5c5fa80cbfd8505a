"""Ready choices of fields follow from what a source declares, and never add to what was asked."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.oauth_errors import NotANarrowing
from personal_server.consent.bundles import (
    BUNDLES,
    EVERYTHING,
    OUTLINE,
    TEXTS,
    bundle_fields,
    bundles_of,
    with_bundle,
)
from personal_server.consent.choices import EntryChoice, StreamChoice
from server.tests.consent.test_terms import entry, offered


def offer_of(**stream: Any) -> Any:
    (found,) = offered([entry([{"name": "entries", "necessity": "optional", **stream}])])
    return found


def test_each_bundle_has_more_than_the_one_before() -> None:
    stream = offer_of().streams[0]
    outline, texts, everything = (bundle_fields(stream, bundle) for bundle in BUNDLES)
    assert set(stream.stream.floor) <= outline < texts <= everything == set(stream.fields)
    assert outline == {"id", "title", "created_at"}
    assert "body" in texts


def test_without_a_view_texts_and_files_are_left_out() -> None:
    stream = offer_of().streams[0]
    bare = replace(stream, stream=replace(stream.stream, views=()))
    outline = bundle_fields(bare, OUTLINE)
    assert "body" not in outline
    assert {"title", "word_count", "created_at"} <= outline


@pytest.mark.parametrize("bundle", [OUTLINE, TEXTS, EVERYTHING])
def test_a_bundle_adds_nothing_to_what_was_asked(bundle: str) -> None:
    stream = offer_of(fields=["word_count"]).streams[0]
    assert bundle_fields(stream, bundle) <= set(stream.fields)


def test_a_bundle_is_of_the_kinds_that_are_ticked_or_else_of_all() -> None:
    (offer,) = offered([entry([{"name": "*", "necessity": "optional"}])])
    every = with_bundle(offer, EntryChoice(), TEXTS)
    assert every.keep
    assert {name for name, choice in every.streams.items() if choice.wanted} == {
        stream.name for stream in offer.streams
    }
    one = EntryChoice(streams={"entries": StreamChoice(wanted=True)})
    ticked = with_bundle(offer, one, TEXTS).streams
    assert [name for name, choice in ticked.items() if choice.wanted] == ["entries"]


def test_only_bundles_that_differ_are_offered() -> None:
    assert [bundle for bundle, _ in bundles_of(offer_of())] == [OUTLINE, EVERYTHING]
    assert bundles_of(offer_of(fields=["title"])) == ()


def test_an_unknown_bundle_is_refused() -> None:
    with pytest.raises(NotANarrowing):
        bundle_fields(offer_of().streams[0], "all")
