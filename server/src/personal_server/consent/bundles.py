"""Ready choices of fields for a source: without its texts, with them, everything.

Rule: what a bundle has follows from what a source declares of its fields, and is never more than
was asked for; the floor of each stream is always in it.
Source: docs/contract/authorization-server.md 7.6.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from pdpp_kernel.oauth_errors import NotANarrowing
from personal_server.consent.choices import EntryChoice, StreamChoice
from personal_server.consent.offers import EntryOffer, StreamOffer

OUTLINE, TEXTS, EVERYTHING = "outline", "texts", "everything"
BUNDLES: Mapping[str, str] = {
    OUTLINE: "Without full texts",
    TEXTS: "With the text",
    EVERYTHING: "Everything",
}


def bundle_fields(stream: StreamOffer, bundle: str) -> frozenset[str]:
    """The fields of a stream in a bundle, of those that were asked for.

    The outline is the first view that the source declares; without one, all but texts, files and
    what is sensitive.  Raises: NotANarrowing.
    """
    if bundle not in BUNDLES:
        raise NotANarrowing("This preset is not one of those offered.")
    declared, floor = stream.stream, frozenset(stream.stream.floor)
    if bundle == EVERYTHING or not declared.selectable_fields:
        return frozenset(stream.fields)
    if bundle == OUTLINE and declared.views:
        return (frozenset(declared.views[0].fields) | floor) & frozenset(stream.fields)
    return frozenset(
        name for name in stream.fields if name in floor or _is_in(stream, name, bundle)
    )


def _is_in(stream: StreamOffer, name: str, bundle: str) -> bool:
    declared = stream.stream.properties[name]
    if declared.is_sensitive or declared.is_blob:
        return False
    return bundle == TEXTS or not is_full_text(stream, name)


def is_full_text(stream: StreamOffer, name: str) -> bool:
    """Whether a field is a long text, and not what a record is called by or who is in it."""
    declared = stream.stream.properties[name]
    return declared.type == "text" and declared.role is None


def with_bundle(offer: EntryOffer, choice: EntryChoice, bundle: str) -> EntryChoice:
    """The choice of an entry with a bundle: of the kinds that are ticked, or else of all.

    Raises: NotANarrowing.
    """
    some = any(choice.stream(stream.name).wanted for stream in offer.streams)
    streams: dict[str, StreamChoice] = {}
    for stream in offer.streams:
        before = choice.stream(stream.name)
        fields = bundle_fields(stream, bundle) if stream.stream.selectable_fields else before.fields
        is_wanted = stream.required or before.wanted or not some
        streams[stream.name] = replace(before, wanted=is_wanted, fields=fields)
    return replace(choice, keep=True, streams=streams)


def bundles_of(offer: EntryOffer) -> tuple[tuple[str, str], ...]:
    """The bundles that differ for an entry, with their words; none where one is all there is."""
    by_fields: dict[tuple[frozenset[str], ...], tuple[str, str]] = {}
    for bundle, words in BUNDLES.items():
        key = tuple(bundle_fields(stream, bundle) for stream in offer.streams)
        by_fields[key] = bundle, words  # of two that are the same, the one that says more
    return tuple(by_fields.values()) if len(by_fields) > 1 else ()
