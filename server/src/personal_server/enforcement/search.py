"""Searches: which sources take part, and what is looked for.

Rule: only granted searchable fields are ever looked at; a source that cannot take part is skipped
and said so.
Source: docs/contract/resource-server.md 11.1, 11.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pdpp_kernel.criteria import Condition, HitOrder, WordQuery
from pdpp_kernel.errors import (
    FieldNotGranted,
    InvalidFilter,
    InvalidRequest,
    NotFound,
    PersonalServerError,
    UnknownField,
)
from pdpp_kernel.texts import message
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource, ReadAuthority, TokenKind
from personal_server.domain.search_words import parse_words
from personal_server.domain.skipped_sources import MODE_NOT_AVAILABLE, skipped
from personal_server.enforcement.asked_times import conditions_in
from personal_server.enforcement.conditions import conditions_on
from personal_server.enforcement.queries import ALWAYS, SearchQuery
from personal_server.enforcement.source_selection import stream_not_granted
from personal_server.enforcement.timeless_sources import without_time
from personal_server.enforcement.timeline import time_field

MAX_QUERY_CHARS = 1_024
MAX_TERMS = 32
STREAM_NOT_SELECTED = "stream_not_selected"

Sources = tuple[ReadableSource, ...]
Part = tuple[ReadableSource, tuple[Condition, ...]]
"""A source that is searched, and under which conditions."""


def searchable_fields(source: ReadableSource) -> tuple[str, ...]:
    """The granted lexical fields of a source."""
    return tuple(name for name in source.declared.lexical_fields if name in source.fields)


def checked_words(text: str) -> WordQuery:
    """What a query means.  Raises: InvalidRequest."""
    if not text.strip() or len(text) > MAX_QUERY_CHARS:
        raise InvalidRequest(
            message("'q' has 1 to %(most)s characters.", most=str(MAX_QUERY_CHARS)), param="q"
        )
    words = parse_words(text)
    if not words.terms:
        raise InvalidRequest("'q' must contain a letter or a digit.", param="q")
    if sum(len(term.alternatives) for term in (*words.terms, *words.excluded)) > MAX_TERMS:
        raise InvalidRequest(
            message("'q' can have at most %(most)s terms.", most=MAX_TERMS), param="q"
        )
    return words


def search_parts(
    authority: ReadAuthority,
    sources: Sources,
    query: SearchQuery,
    fields_of: Callable[[ReadableSource], tuple[str, ...]] = searchable_fields,
) -> tuple[tuple[Part, ...], tuple[Warning, ...]]:
    """The sources that take part, with their conditions, and who is left out.

    Those take part that have fields to be searched (`fields_of`).

    Raises: GrantStreamNotAllowed, NotFound, InvalidRequest, and the error of the filters if no
        source can apply them.
    """
    named = named_sources(authority, sources, query.streams)
    if query.filters and len(query.streams) != 1:
        raise InvalidRequest(
            "A search with 'filter' must name exactly one stream in 'streams'.", param="filter"
        )
    taking_part = tuple(source for source in named if fields_of(source))
    warnings = absent_streams(sources, query.streams)
    warnings += [
        skipped(s, MODE_NOT_AVAILABLE) for s in named if query.streams and s not in taking_part
    ]
    if not taking_part:
        _filtered(named, query, [])  # a filter is no less wrong where nothing is searched
    if query.times != ALWAYS or query.sort is not HitOrder.RELEVANCE:
        timeless = [source for source in taking_part if time_field(source) is None]
        warnings += without_time(timeless, taking_part, query.streams)
        taking_part = tuple(source for source in taking_part if source not in timeless)
    if not taking_part:
        return (), tuple(warnings)
    return _filtered(taking_part, query, warnings)


def named_sources(authority: ReadAuthority, sources: Sources, streams: tuple[str, ...]) -> Sources:
    """The sources of these streams; all without any.  Raises: GrantStreamNotAllowed, NotFound."""
    for name in streams:
        _require_stream(authority, name)
    return tuple(source for source in sources if not streams or source.stream in streams)


def absent_streams(selected: Sources, streams: Iterable[str]) -> list[Warning]:
    """What is said of each named stream that none of the selected sources has.

    Without it an empty answer reads as if nothing matched.
    """
    present = {source.stream for source in selected}
    accounts = {source.connection_id for source in selected}
    return [
        Warning(
            "source_skipped_not_applicable",
            f"The selected account has no stream '{name}' in this access."
            if len(accounts) == 1
            else f"None of the selected accounts has the stream '{name}'.",
            connection_id=next(iter(accounts)) if len(accounts) == 1 else None,
            detail={"stream": name, "reason": STREAM_NOT_SELECTED},
        )
        for name in streams
        if present and name not in present  # where nothing can be read, that is said otherwise
    ]


def skipped_on_line(
    selected: Sources, timeless: Iterable[ReadableSource], streams: tuple[str, ...]
) -> list[Warning]:
    """What a time line says of the streams that it was asked for and does not show."""
    return absent_streams(selected, streams) + without_time(timeless, selected, streams)


def _require_stream(authority: ReadAuthority, name: str) -> None:
    if name in authority.granted_streams or any(s.stream == name for s in authority.sources):
        return
    if authority.kind is TokenKind.OWNER:
        raise NotFound(
            message("No connection here has the stream '%(stream)s'.", stream=name), param="streams"
        )
    raise stream_not_granted(authority, name, "streams")


def _filtered(
    sources: Sources, query: SearchQuery, warnings: list[Warning]
) -> tuple[tuple[Part, ...], tuple[Warning, ...]]:
    parts: list[Part] = []
    errors: list[PersonalServerError] = []
    for source in sources:
        try:
            conditions = conditions_on((source,), query.filters, query.time_zone)
            conditions += _times(source, query)
        except (UnknownField, FieldNotGranted, InvalidFilter) as error:
            errors.append(error)
            warnings.append(skipped(source, error.code))
        else:
            parts.append((source, conditions))
    if errors and not parts:
        raise errors[0]
    return tuple(parts), tuple(warnings)


def _times(source: ReadableSource, query: SearchQuery) -> tuple[Condition, ...]:
    field = time_field(source)
    return () if field is None else conditions_in(query.times, field, (source,))
