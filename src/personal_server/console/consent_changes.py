"""What changed since the page was shown, and what a request adds to what its app holds.  Pure.

Rule: the owner's choices are compared by their artifacts, what changed underneath by the facts that
the page stood on; only active grants count as held.
Source: docs/contract/authorization-server.md 6.3, 7.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from personal_server.consent.successors import Gain, SourceStream
from personal_server.console.consent_words import account_names, source_name
from personal_server.console.words import counted, field_words, listed, number
from personal_server.granting.reviews import Review, facts_of


@dataclass(frozen=True, slots=True)
class Differences:
    """In words, and as what is to be marked."""

    said: tuple[str, ...] = ()
    changed: frozenset[SourceStream] = frozenset()


def differences_of(review: Review) -> Differences:
    """How a review differs from the page that its request showed last, as far as that is known."""
    row = review.request
    if row is None:
        return Differences()
    said = [] if row.facts is None else fact_differences(row.facts, facts_of(review))
    if row.shown is None or review.artifact is None:
        return Differences(tuple(said))
    said += differences(row.shown, review.artifact)
    return Differences(tuple(said), changed_streams(row.shown, review.artifact))


def fact_differences(before: str, after: str) -> list[str]:
    """What changed underneath, between two canonical texts of facts."""
    old, new = json.loads(before), json.loads(after)
    said: list[str] = []
    if old.get("replaces") != new.get("replaces"):
        said.append("This access was changed elsewhere meanwhile. Your choices are still here.")
    if old["client"] != new["client"]:
        said.append("What is known of the app changed.")
    sources = [{one["source"]: one for one in facts["sources"]} for facts in (old, new)]
    for source_id in sorted(sources[0].keys() | sources[1].keys()):
        said += _source_differences(source_id, sources[0].get(source_id), sources[1].get(source_id))
    return said


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """What changed between two review artifacts, in words."""
    said: list[str] = []
    if before.get("access_mode") != after.get("access_mode"):
        once = after.get("access_mode") == "single_use"
        said.append(f"Access is now {'for one use' if once else 'standing'}.")
    if before.get("expires_at") != after.get("expires_at"):
        end = after.get("expires_at")
        said.append(
            "Access now has no end." if end is None else f"Access now ends {str(end)[:10]}."
        )
    if before.get("ends") != after.get("ends"):
        said.append("What ends on approval changed.")
    old, new = _streams(before), _streams(after)
    said += [f"Added: {_place(place)}." for place in sorted(new.keys() - old.keys())]
    said += [f"Left out: {_place(place)}." for place in sorted(old.keys() - new.keys())]
    for place in sorted(old.keys() & new.keys()):
        said += _stream_differences(place, old[place], new[place])
    return said


def changed_streams(
    before: Mapping[str, object], after: Mapping[str, object]
) -> frozenset[SourceStream]:
    """What differs between two review artifacts, to be marked."""
    old, new = _streams(before), _streams(after)
    return frozenset(place for place, stream in new.items() if old.get(place) != stream)


def additions(review: Review) -> tuple[str, ...]:
    """One sentence for each purpose and kind of records that no grant of the app reaches yet."""
    offers = {entry.offer.selection.source_id: entry.offer for entry in review.terms.entries}
    said: dict[SourceStream, list[str]] = {}
    for gain in review.gains:
        offer = offers[gain.source_id]
        place = f"{gain.stream} of {source_name(offer)}" if gain.stream else source_name(offer)
        words = said.setdefault((gain.source_id, place), [])
        if gain.what != "stream":
            words.append(_gain_words(gain, account_names(offer)))
    return tuple(place + (f": {', '.join(new)}" if new else "") for (_, place), new in said.items())


def _source_differences(
    source_id: str, old: Mapping[str, object] | None, new: Mapping[str, object] | None
) -> list[str]:
    name = _short(source_id)
    if new is None:
        return [f"{name}: it can no longer be given."]
    if old is None:
        return [f"{name}: it can be given now."]
    said: list[str] = []
    if old["declaration"] != new["declaration"]:
        said.append(f"{name}: the source describes its records anew.")
    accounts = [set(cast("list[str]", facts["connections"])) for facts in (old, new)]
    if gone := len(accounts[0] - accounts[1]):
        said.append(f"{name}: {counted(gone, 'account')} can no longer be chosen.")
    if come := len(accounts[1] - accounts[0]):
        said.append(f"{name}: {counted(come, 'account')} more to choose from.")
    return said


def _stream_differences(
    place: SourceStream, old: Mapping[str, object], new: Mapping[str, object]
) -> list[str]:
    said: list[str] = []
    fields = [_names(stream, "fields") for stream in (old, new)]
    if fields[1] - fields[0]:
        said.append(f"{_place(place)}: now with {_fields(fields[1] - fields[0])}.")
    if fields[0] - fields[1]:
        said.append(f"{_place(place)}: now without {_fields(fields[0] - fields[1])}.")
    accounts = [_names(stream, "instance_ids") for stream in (old, new)]
    if accounts[0] != accounts[1]:
        now, before = counted(len(accounts[1]), "account"), number(len(accounts[0]))
        said.append(f"{_place(place)}: {now}, before {before}.")
    if old.get("time_constraint") != new.get("time_constraint"):
        said.append(f"{_place(place)}: another time window.")
    if old.get("resources") != new.get("resources"):
        said.append(f"{_place(place)}: other named records.")
    if old.get("only") != new.get("only"):
        said.append(f"{_place(place)}: limited to other values.")
    return said


def _names(stream: Mapping[str, object], member: str) -> set[str]:
    return set(cast("list[str]", stream.get(member) or []))


def _fields(names: set[str]) -> str:
    return listed(map(field_words, sorted(names)))


def _place(place: SourceStream) -> str:
    return f"{place[1]} of {_short(place[0])}"


def _short(source_id: str) -> str:
    return source_id.rstrip("/").rsplit("/", 1)[-1]


def _streams(artifact: Mapping[str, object]) -> dict[SourceStream, Mapping[str, object]]:
    sources = cast("list[dict[str, object]]", artifact.get("sources") or [])
    return {
        (_source_id(source), str(stream["name"])): stream
        for source in sources
        for stream in cast("list[dict[str, object]]", source["streams"])
    }


def _source_id(source: Mapping[str, object]) -> str:
    return str(cast("Mapping[str, object]", source["source"])["id"])


_GAINED = {
    "purpose": "another purpose",
    "older": "older records",
    "newer": "newer records",
    "records": "records that were not named before",
    "values": "records with other values than before",
}


def _gain_words(gain: Gain, accounts: Mapping[str, str]) -> str:
    if gain.what == "fields":
        return f"the fields {listed(map(field_words, gain.names))}"
    if gain.what == "accounts":
        return f"the account {listed(accounts.get(one, one) for one in gain.names)}"
    return _GAINED[gain.what]
