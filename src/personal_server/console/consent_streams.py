"""One stream on the consent page: what is given of it, and the controls that narrow it.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from personal_server.consent.choices import StreamChoice
from personal_server.consent.offers import StreamOffer
from personal_server.console import consent_words
from personal_server.console.masking import mask
from personal_server.console.words import counted, day_of, field_words, span_of
from personal_server.domain.declaration import Property
from personal_server.domain.grant import StreamGrant
from personal_server.reading.preview import Evidence, Place

SAMPLE_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class Shown:
    """What is known of the records behind the offers.

    Shapes: `evidence` under the review as authority, `kept` all there are; `changed` holds
        (source id, stream) pairs to be marked.
    """

    evidence: Mapping[Place, Evidence]
    kept: Mapping[Place, int]
    changed: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class FieldView:
    """One field: `fixed` ones are always included."""

    name: str
    words: str
    about: str | None
    fixed: bool
    chosen: bool


@dataclass(frozen=True, slots=True)
class StreamView:
    """One stream.  `prefix` is `{entry}.{stream}` of its form fields.

    `empty` is an optional stream without records that nobody ticked.
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
    window: str
    asked_window: str
    time_field: str | None
    since: str
    until: str
    resources: tuple[tuple[str, bool], ...]
    accounts: tuple[str, ...]
    count: str
    kept: str
    empty: bool
    span: str | None
    synced: str | None
    sample_columns: tuple[str, ...]
    samples: tuple[tuple[str, ...], ...]
    changed: bool

    @property
    def granted_fields(self) -> tuple[FieldView, ...]:
        """The fields that are given."""
        return tuple(field for field in self.fields if field.chosen)


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
    places = [(connection, stream.name) for connection in names]
    found = [shown.evidence[place] for place in places if place in shown.evidence]
    columns = _columns(stream, terms)
    kept = sum(shown.kept.get(place, 0) for place in places)
    return StreamView(
        name=stream.name,
        prefix=prefix,
        label=declared.label,
        detail=declared.detail,
        required=stream.required,
        wanted=stream.required or choice.wanted,
        given=terms is not None,
        fields=_fields(stream, choice, terms),
        choose_fields=declared.selectable_fields,
        views=tuple((view.id, view.label) for view in declared.views if declared.selectable_fields),
        window=consent_words.window(terms.time_constraint if terms else None, stream),
        asked_window=consent_words.asked_window(stream.time_range),
        time_field=declared.consent_time_field,
        since=choice.since,
        until=choice.until,
        resources=_resources(stream, choice),
        accounts=tuple(names[c] for c in terms.instance_ids) if terms else (),
        count=consent_words.count(found),
        kept=counted(kept, "record"),
        empty=not (kept or stream.required or choice.wanted),
        span=_span(found),
        synced=_synced(found),
        sample_columns=tuple(field_words(name) for name in columns),
        samples=tuple(
            tuple(_masked(row, declared.properties[name]) for name in columns)
            for row in [sample for evidence in found for sample in evidence.samples][:3]
        ),
        changed=changed,
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
            about=_about(stream.stream.properties[name]),
            fixed=name in floor,
            chosen=name in chosen,
        )
        for name in stream.fields
    )


def _about(declared: Property) -> str | None:
    about = declared.schema.get("description")
    return about if isinstance(about, str) else None


def _resources(stream: StreamOffer, choice: StreamChoice) -> tuple[tuple[str, bool], ...]:
    kept = stream.resources if choice.resources is None else choice.resources
    return tuple((key, key in (kept or ())) for key in stream.resources or ())


def _columns(stream: StreamOffer, terms: StreamGrant | None) -> tuple[str, ...]:
    """The fields that samples show: title and time first, keys last."""
    if terms is None:
        return ()
    declared = stream.stream
    first = (declared.title_field, declared.event_time_field)
    shown = [name for name in first if name is not None and name in terms.fields]
    keys = set(declared.primary_key)
    rest = [name for name in terms.fields if name not in keys]
    return tuple(dict.fromkeys([*shown, *rest, *terms.fields]))[:SAMPLE_COLUMNS]


def _masked(row: Mapping[str, object], declared: Property) -> str:
    return mask(row[declared.name], declared.kind) if declared.name in row else "–"


def _span(found: list[Evidence]) -> str | None:
    earliest = min((e.earliest for e in found if e.earliest), default=None)
    latest = max((e.latest for e in found if e.latest), default=None)
    return None if earliest is None or latest is None else span_of(earliest, latest)


def _synced(found: list[Evidence]) -> str | None:
    at = max((e.synced_at_ns for e in found if e.synced_at_ns is not None), default=None)
    return None if at is None else day_of(at)
