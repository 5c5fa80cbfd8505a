"""What changed since the page was shown, and what a request adds to what its app holds.  Pure.

Rule: the owner's choices are compared by their artifacts, what changed underneath by the facts that
the page stood on; only active grants count as held.
Source: docs/contract/authorization-server.md 6.3, 7.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

import msgspec

from pdpp_kernel.texts import (
    Joined,
    Text,
    counted,
    day_of_text,
    listed,
    message,
    plural,
)
from personal_server.consent.gains import Gain
from personal_server.consent.successors import SourceStream
from personal_server.console.consent_words import account_names, source_name
from personal_server.console.words import field_words
from personal_server.granting.reviews import Review, facts_of


class Differences(msgspec.Struct, frozen=True):
    """In words, and as what is to be marked."""

    said: tuple[Text, ...] = ()
    changed: frozenset[SourceStream] = frozenset()


def differences_of(review: Review) -> Differences:
    """How a review differs from the page that its request showed last, as far as that is known."""
    row = review.request
    if row is None:
        return Differences()
    differences_said = [] if row.facts is None else fact_differences(row.facts, facts_of(review))
    if row.shown is None or review.artifact is None:
        return Differences(tuple(differences_said))
    differences_said += differences(row.shown, review.artifact)
    return Differences(tuple(differences_said), changed_streams(row.shown, review.artifact))


def fact_differences(before: str, after: str) -> list[Text]:
    """What changed underneath, between two canonical texts of facts."""
    old, new = json.loads(before), json.loads(after)
    texts: list[Text] = []
    if old.get("replaces") != new.get("replaces"):
        texts.append(
            message(
                "This access was changed elsewhere in the meantime. Your choices are still here."
            )
        )
    if old["client"] != new["client"]:
        texts.append(message("What this server knows about the app has changed."))
    sources = [{source["source"]: source for source in facts["sources"]} for facts in (old, new)]
    for source_id in sorted(sources[0].keys() | sources[1].keys()):
        texts += _source_differences(
            source_id, sources[0].get(source_id), sources[1].get(source_id)
        )
    return texts


def differences(before: Mapping[str, object], after: Mapping[str, object]) -> list[Text]:
    """What changed between two review artifacts, in words."""
    texts: list[Text] = []
    if before.get("access_mode") != after.get("access_mode"):
        once = after.get("access_mode") == "single_use"
        texts.append(
            message("Access is now one-time access.") if once else message("Access is now ongoing.")
        )
    if before.get("expires_at") != after.get("expires_at"):
        end = after.get("expires_at")
        texts.append(
            message("Access now has no end date.")
            if end is None
            else message("Access now ends on %(day)s.", day=day_of_text(str(end)))
        )
    if before.get("ends") != after.get("ends"):
        texts.append(message("The list of older accesses that will end has changed."))
    old, new = _streams(before), _streams(after)
    texts += [
        message("Added: %(what)s.", what=_place(stream))
        for stream in sorted(new.keys() - old.keys())
    ]
    texts += [
        message("Removed: %(what)s.", what=_place(stream))
        for stream in sorted(old.keys() - new.keys())
    ]
    for stream_key in sorted(old.keys() & new.keys()):
        texts += _stream_differences(stream_key, old[stream_key], new[stream_key])
    return texts


def changed_streams(
    before: Mapping[str, object], after: Mapping[str, object]
) -> frozenset[SourceStream]:
    """What differs between two review artifacts, to be marked."""
    old, new = _streams(before), _streams(after)
    return frozenset(
        stream_key for stream_key, stream in new.items() if old.get(stream_key) != stream
    )


def additions(review: Review) -> tuple[Text, ...]:
    """One sentence for each purpose and kind of records that no grant of the app reaches yet."""
    offers = {entry.offer.selection.source_id: entry.offer for entry in review.terms.entries}
    by_stream: dict[SourceStream, list[Text]] = {}
    names: dict[SourceStream, Text] = {}
    for gain in review.gains:
        offer = offers[gain.source_id]
        at = (gain.source_id, gain.stream or "")
        names[at] = _of(gain.stream, source_name(offer)) if gain.stream else source_name(offer)
        words = by_stream.setdefault(at, [])
        if gain.what != "stream":
            words.append(_gain_words(gain, account_names(offer)))
    return tuple(
        message("%(what)s: %(new)s", what=names[at], new=Joined(tuple(new))) if new else names[at]
        for at, new in by_stream.items()
    )


def _source_differences(
    source_id: str, old: Mapping[str, object] | None, new: Mapping[str, object] | None
) -> list[Text]:
    name = _short(source_id)
    if new is None:
        return [message("%(source)s: this source can no longer be shared.", source=name)]
    if old is None:
        return [message("%(source)s: this source can be shared now.", source=name)]
    texts: list[Text] = []
    if old["declaration"] != new["declaration"]:
        texts.append(
            message("%(source)s: the source has a new description of its records.", source=name)
        )
    accounts = [set(cast("list[str]", facts["connections"])) for facts in (old, new)]
    if removed := len(accounts[0] - accounts[1]):
        texts.append(
            plural(
                "%(source)s: %(num)s account can no longer be chosen.",
                "%(source)s: %(num)s accounts can no longer be chosen.",
                removed,
                source=name,
            )
        )
    if come := len(accounts[1] - accounts[0]):
        texts.append(
            plural(
                "%(source)s: you can choose %(num)s more account.",
                "%(source)s: you can choose %(num)s more accounts.",
                come,
                source=name,
            )
        )
    return texts


def _stream_differences(
    stream: SourceStream, old: Mapping[str, object], new: Mapping[str, object]
) -> list[Text]:
    texts: list[Text] = []
    stream_name = _place(stream)
    fields = [_names(stream, "fields") for stream in (old, new)]
    if more := fields[1] - fields[0]:
        texts.append(
            message("%(what)s now includes %(fields)s.", what=stream_name, fields=_fields(more))
        )
    if fewer := fields[0] - fields[1]:
        texts.append(
            message(
                "%(what)s no longer includes %(fields)s.", what=stream_name, fields=_fields(fewer)
            )
        )
    accounts = [_names(stream, "instance_ids") for stream in (old, new)]
    if accounts[0] != accounts[1]:
        now, before = counted(len(accounts[1]), "account"), len(accounts[0])
        texts.append(
            message(
                "%(what)s: now %(now)s, before %(before)s.",
                what=stream_name,
                now=now,
                before=before,
            )
        )
    if old.get("time_constraint") != new.get("time_constraint"):
        texts.append(message("%(what)s now has a different time range.", what=stream_name))
    if old.get("resources") != new.get("resources"):
        texts.append(message("%(what)s now has different specific records.", what=stream_name))
    if old.get("only") != new.get("only"):
        texts.append(message("%(what)s now has different limits on values.", what=stream_name))
    return texts


def _names(stream: Mapping[str, object], member: str) -> set[str]:
    return set(cast("list[str]", stream.get(member) or []))


def _fields(names: set[str]) -> Text:
    return listed(map(field_words, sorted(names)))


def _place(stream: SourceStream) -> Text:
    return _of(stream[1], _short(stream[0]))


def _of(stream: str, source: str) -> Text:
    return message("%(stream)s of %(source)s", stream=stream, source=source)


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


_GAINED: Mapping[str, Text] = {
    "purpose": message("a different purpose"),
    "older": message("older records"),
    "newer": message("newer records"),
    "records": message("records that were not included before"),
    "values": message("records with other values than before"),
}


def _gain_words(gain: Gain, accounts: Mapping[str, str]) -> Text:
    if gain.what == "fields":
        return message("the fields %(fields)s", fields=listed(map(field_words, gain.names)))
    if gain.what == "accounts":
        names = listed(accounts.get(account, account) for account in gain.names)
        return message("the account %(accounts)s", accounts=names)
    return _GAINED[gain.what]
