"""A stream as the consent page offers it: what would be given of it, and a look at that.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from pdpp_kernel.declaration import Property
from pdpp_kernel.texts import Day, Text, counted, listed
from personal_server.consent.bundles import is_full_text
from personal_server.consent.choices import StreamChoice
from personal_server.consent.offers import EntryOffer, StreamOffer
from personal_server.consent.successors import SourceStream
from personal_server.console import consent_words
from personal_server.console.consent_words import mask
from personal_server.console.content_limits import LimitView, limit_views, limits_said
from personal_server.console.words import declared_name, field_words
from personal_server.domain.grant import StreamGrant
from personal_server.reading.preview import Evidence, HeldValue, StreamKey

SAMPLE_COLUMNS = 5
HeldValues = Mapping[str, Mapping[str, Sequence[HeldValue]]]


class RefusedBox(msgspec.Struct, frozen=True):
    """A box that cannot be meant as it was `typed`; the `first` of them gets the focus."""

    typed: str
    said: Text
    first: bool = False


NOTHING_REFUSED: Mapping[str, RefusedBox] = {}


class StreamView(msgspec.Struct, frozen=True):
    """One stream: what is given of it, and the controls that narrow it.

    Shapes: `prefix` is `{entry}.{stream}` of its form fields; `empty` is an optional stream
        without records that nobody ticked, `troubled` that one of its boxes was refused.
    """

    name: str
    prefix: str
    label: str
    detail: str | None
    required: bool
    wanted: bool
    given: bool
    fields: tuple[FieldView, ...]
    choose_fields: bool
    views: tuple[tuple[str, str], ...]
    window: Text
    asked_window: Text
    time_field: str | None
    since: str
    until: str
    resources: tuple[tuple[str, bool], ...]
    limits: tuple[LimitView, ...]
    limited: tuple[Text, ...]
    accounts: tuple[str, ...]
    count: Text
    stored: Text
    empty: bool
    span: Text | None
    synced: Text | None
    sample_columns: tuple[str, ...]
    samples: tuple[tuple[Text, ...], ...]
    changed: bool
    troubled: bool

    @property
    def granted_fields(self) -> tuple[FieldView, ...]:
        """The fields that are given."""
        return tuple(field for field in self.fields if field.chosen)

    @property
    def sensitive(self) -> Text | None:
        """The sensitive ones among them, in words."""
        words = [field.words for field in self.granted_fields if field.sensitive]
        return listed(words) if words else None

    @property
    def in_short(self) -> Text:
        """All fields that are given, in a line; those that always are come last."""
        return listed([each.words for each in sorted(self.granted_fields, key=lambda f: f.fixed)])


class FieldView(msgspec.Struct, frozen=True):
    """One field: `fixed` ones are always included; `is_text` is a long text, `is_file` a file."""

    name: str
    words: str
    fixed: bool
    chosen: bool
    sensitive: bool = False
    is_text: bool = False
    is_file: bool = False


class Shown(msgspec.Struct, frozen=True):
    """What is known of the records behind the offers.

    Shapes: `evidence` under the review as authority, `stored_counts` all there are; `changed` is
        to be marked; `values` by entry and stream what it could be limited to; `refused` by its
        form field what cannot be meant as it was typed.
    """

    evidence: Mapping[StreamKey, Evidence]
    stored_counts: Mapping[StreamKey, int]
    changed: frozenset[SourceStream]
    values: HeldValues
    refused: Mapping[str, RefusedBox]


def form_prefix(offer: EntryOffer, stream: StreamOffer) -> str:
    """How the form fields of a stream are told from those of others."""
    return f"{offer.index}.{quote(stream.name, safe='')}"


def stream_view(
    stream: StreamOffer,
    choice: StreamChoice,
    *,
    terms: StreamGrant | None,
    shown: Shown,
    names: Mapping[str, str],
    prefix: str,
    changed: bool,
) -> StreamView:
    """The view of one offered stream; `terms` is what would be granted, if anything."""
    declared = stream.stream
    stream_keys = [(connection, stream.name) for connection in names]
    evidences = [shown.evidence[key] for key in stream_keys if key in shown.evidence]
    columns = _columns(stream, terms)
    stored_count = sum(shown.stored_counts.get(key, 0) for key in stream_keys)
    return StreamView(
        name=stream.name,
        prefix=prefix,
        label=declared_name(declared.label),
        detail=declared.detail,
        required=stream.required,
        wanted=stream.required or choice.wanted,
        given=terms is not None,
        fields=_fields(stream, choice, terms),
        choose_fields=declared.selectable_fields,
        views=tuple(
            (view.id, declared_name(view.label))
            for view in declared.views
            if declared.selectable_fields
        ),
        window=consent_words.window(terms.time_constraint if terms else None, stream),
        asked_window=consent_words.asked_window(stream.time_range),
        time_field=declared.consent_time_field,
        since=choice.since,
        until=choice.until,
        resources=_resources(stream, choice),
        limits=limit_views(stream, choice, prefix, shown.values.get(prefix, {})),
        limited=limits_said(terms.only if terms else ()),
        accounts=tuple(names[c] for c in terms.instance_ids) if terms else (),
        count=consent_words.count(evidences),
        stored=counted(stored_count, "record"),
        empty=not (stored_count or stream.required or choice.wanted),
        span=consent_words.span(evidences),
        synced=_synced(evidences),
        sample_columns=tuple(field_words(name) for name in columns),
        samples=tuple(
            tuple(_masked(row, declared.properties[name]) for name in columns)
            for row in [sample for evidence in evidences for sample in evidence.samples][:3]
        ),
        changed=changed,
        troubled=any(box.partition(".")[2].partition("/")[0] == prefix for box in shown.refused),
    )


def _fields(
    stream: StreamOffer, choice: StreamChoice, terms: StreamGrant | None
) -> tuple[FieldView, ...]:
    floor = set(stream.stream.floor)
    if terms is not None:
        chosen = set(terms.fields)
    else:
        chosen = set(stream.fields if choice.fields is None else choice.fields) | floor
    return tuple(
        FieldView(
            name=name,
            words=field_words(name),
            fixed=name in floor,
            chosen=name in chosen,
            sensitive=stream.stream.properties[name].is_sensitive,
            is_text=is_full_text(stream, name),
            is_file=stream.stream.properties[name].is_blob,
        )
        for name in stream.fields
    )


def _resources(stream: StreamOffer, choice: StreamChoice) -> tuple[tuple[str, bool], ...]:
    keys_kept = stream.resources if choice.resources is None else choice.resources
    return tuple((key, key in (keys_kept or ())) for key in stream.resources or ())


def _columns(stream: StreamOffer, terms: StreamGrant | None) -> tuple[str, ...]:
    """The fields that samples show: title and time first, keys last."""
    if terms is None:
        return ()
    declared = stream.stream
    first = (declared.title_field, declared.event_time_field)
    columns = [name for name in first if name is not None and name in terms.fields]
    keys = set(declared.primary_key)
    other_names = [name for name in terms.fields if name not in keys]
    return tuple(dict.fromkeys([*columns, *other_names, *terms.fields]))[:SAMPLE_COLUMNS]


def _masked(row: Mapping[str, object], declared: Property) -> Text:
    return mask(row[declared.name], declared.kind) if declared.name in row else "–"


def _synced(evidences: list[Evidence]) -> Text | None:
    at = max((e.synced_at_ns for e in evidences if e.synced_at_ns is not None), default=None)
    return None if at is None else Day(at)
