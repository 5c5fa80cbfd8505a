"""Searches: which sources take part, and what is looked for.

Rule: only granted searchable fields are ever looked at; a source that cannot take part is skipped
and said so.
Source: RS contract 11.1, 11.2.
"""

from __future__ import annotations

from personal_server.domain.authority import ReadableSource, ReadAuthority, TokenKind
from personal_server.domain.criteria import Condition, Term
from personal_server.domain.envelope import Warning, skipped
from personal_server.enforcement.conditions import conditions_on
from personal_server.enforcement.query import FilterText, SearchQuery
from personal_server.enforcement.terms import SearchPart
from personal_server.errors import (
    FieldNotGranted,
    GrantStreamNotAllowed,
    InvalidFilter,
    InvalidRequest,
    NotFound,
    PersonalServerError,
    UnknownField,
)

MAX_QUERY_CHARS = 1_024
MAX_TERMS = 32

Sources = tuple[ReadableSource, ...]


def searchable_fields(source: ReadableSource) -> tuple[str, ...]:
    """The granted lexical fields of a source."""
    return tuple(name for name in source.declared.lexical_fields if name in source.fields)


def checked_terms(text: str, terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms of a query.  Raises: InvalidRequest."""
    if not text.strip() or len(text) > MAX_QUERY_CHARS:
        raise InvalidRequest(f"'q' has 1 to {MAX_QUERY_CHARS} characters.", param="q")
    if not terms:
        raise InvalidRequest("'q' needs a letter or a digit.", param="q")
    if len(terms) > MAX_TERMS:
        raise InvalidRequest(f"'q' has at most {MAX_TERMS} terms.", param="q")
    return terms


def search_parts(
    authority: ReadAuthority, sources: Sources, query: SearchQuery
) -> tuple[tuple[SearchPart, ...], tuple[Warning, ...]]:
    """The sources that take part, by the conditions they share, and who is left out.

    Raises: GrantStreamNotAllowed, NotFound, InvalidRequest, and the error of the filters if no
        source can apply them.
    """
    for name in query.streams:
        _require_stream(authority, name)
    if query.filters and len(query.streams) != 1:
        raise InvalidRequest("'filter' needs exactly one stream in 'streams'.", param="filter")
    named = tuple(s for s in sources if not query.streams or s.stream in query.streams)
    taking_part = tuple(source for source in named if searchable_fields(source))
    warnings = [
        skipped(s.connection_id, s.stream, "mode_not_available")
        for s in named
        if query.streams and s not in taking_part
    ]
    if not query.filters:
        return ((SearchPart(taking_part, ()),) if taking_part else ()), tuple(warnings)
    return _filtered(taking_part, query.filters, warnings)


def _require_stream(authority: ReadAuthority, name: str) -> None:
    if name in authority.granted_streams or any(s.stream == name for s in authority.sources):
        return
    if authority.kind is TokenKind.OWNER:
        raise NotFound(f"No connection here has a stream '{name}'.", param="streams")
    raise GrantStreamNotAllowed(f"Stream '{name}' is not part of this grant.", param="streams")


def _filtered(
    sources: Sources, filters: tuple[FilterText, ...], warnings: list[Warning]
) -> tuple[tuple[SearchPart, ...], tuple[Warning, ...]]:
    parts: dict[tuple[Condition, ...], list[ReadableSource]] = {}
    errors: list[PersonalServerError] = []
    for source in sources:
        try:
            conditions = conditions_on((source,), filters)
        except (UnknownField, FieldNotGranted, InvalidFilter) as error:
            errors.append(error)
            warnings.append(skipped(source.connection_id, source.stream, error.code))
        else:
            parts.setdefault(conditions, []).append(source)
    if errors and not parts:
        raise errors[0]
    return tuple(SearchPart(tuple(s), c) for c, s in parts.items()), tuple(warnings)
