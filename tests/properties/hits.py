"""What the reference expects of searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.properties.meaning import Said, bm25, hits_in, moment, said, wanted_of
from tests.properties.reference import (
    Error,
    Json,
    Reader,
    Refused,
    Row,
    Source,
    filter_errors,
    filtered,
)
from tests.properties.requests import Ask
from tests.properties.timeline import bounds, is_within, named_sources, time_of
from tests.properties.worlds import DATED


@dataclass
class Found:
    """One expected hit."""

    row: Row
    score: float
    matched: set[str]


def expected_search(reader: Reader, ask: Ask) -> list[Found]:
    bounds(ask)
    sources = named_sources(reader, ask)
    if ask.filters and len(ask.streams) != 1:
        raise Refused((400, "invalid_request", "filter"))
    usable: list[Source] = []
    errors: list[Error] = []
    is_ranged = not ask.scalars.keys().isdisjoint({"since", "until"})
    searched = [s for s in sources if searchable(s)]
    if is_ranged and searched:
        searched = sources = [s for s in searched if time_of(s) is not None]
    for source in searched or sources:
        found = filter_errors(reader, [source], ask.filters)
        errors += found
        if not found:
            usable.append(source)
    if errors and not usable:
        raise Refused(*errors)
    return _ranked(reader, [s for s in usable if searchable(s)], ask)


def searchable(source: Source) -> list[str]:
    named = source.raw["query"].get("search", {}).get("lexical_fields", [])
    return [name for name in named if name in source.fields]


def _ranked(reader: Reader, sources: list[Source], ask: Ask) -> list[Found]:
    is_ranged = not ask.scalars.keys().isdisjoint({"since", "until"})
    wanted = wanted_of(ask.scalars["q"])
    terms = wanted.terms
    frequencies = [0] * len(terms)
    matching: list[tuple[Row, list[int], int, set[str]]] = []
    for source in sources:
        title = next(
            (n for n, p in source.properties.items() if p.get("x_pdpp_role") == "primary-title"),
            None,
        )
        kept = {row.key for row in filtered(reader, [source], ask.filters)}
        for row in reader.visible(source):
            words = {
                n: said(row.data[n]) for n in searchable(source) if row.data.get(n) is not None
            }
            counts = [sum(hits_in(w, term) for w in words.values()) for term in terms]
            for i, count in enumerate(counts):
                frequencies[i] += count > 0
            left_out = any(hits_in(w, t) for t in wanted.excluded for w in words.values())
            if not all(counts) or left_out or row.key not in kept:
                continue
            if is_ranged and not is_within(row, ask):
                continue
            doubled = words.get(title or "", Said([], []))
            weighted = [c + hits_in(doubled, t) for c, t in zip(counts, terms, strict=True)]
            fields = {n for n, w in words.items() if any(hits_in(w, t) for t in terms)}
            matching.append((row, weighted, sum(len(w.words) for w in words.values()), fields))
    found = [
        Found(row, bm25(weighted, length, frequencies), fields)
        for row, weighted, length, fields in matching
    ]
    return sorted(found, key=_hit_place)


def expected_context(reader: Reader, row: Row) -> Json | None:
    """11.4: the visible neighbours in the same conversation, and how they begin."""
    source, cursor = row.source, row.source.raw.get("cursor_field")
    shared = next(
        (n for n, p in source.properties.items() if p.get("x_pdpp_role") == "conversation"), None
    )
    if shared not in source.fields or cursor not in source.fields or row.data.get(shared) is None:
        return None
    alike = [each for each in reader.visible(source) if each.data.get(shared) == row.data[shared]]
    placed = sorted(
        (at, each.key, each) for each in alike if (at := moment(each.data.get(cursor))) is not None
    )
    keys = [key for _, key, _ in placed]
    if row.key not in keys:
        return None
    place = keys.index(row.key)
    beside = {"before": placed[place - 1 : place] if place else [], "after": placed[place + 1 :]}
    return {name: _beginning(found[0][2]) for name, found in beside.items() if found} or None


def _beginning(row: Row) -> Json:
    search = row.source.raw["query"]["search"]
    named = search.get("semantic_fields", []) + search["lexical_fields"]
    texts = [row.data[n] for n in named if n in row.source.fields and row.data.get(n) is not None]
    said = next((text for text in texts if text.strip()), None)
    return {"record_id": row.key} | ({} if said is None else {"text": said[:80]})


def holds_all(row: Row, text: str) -> bool:
    """Whether every term stands in a granted searchable field."""
    texts = [said(row.data[n]) for n in searchable(row.source) if row.data.get(n) is not None]
    wanted = wanted_of(text)
    left_out = any(hits_in(words, term) for words in texts for term in wanted.excluded)
    return not left_out and all(any(hits_in(w, term) for w in texts) for term in wanted.terms)


def _hit_place(hit: Found) -> tuple[Any, ...]:
    row = hit.row
    text = row.data.get(DATED.get(row.source.stream, ""))
    at = moment(text)
    when = row.emitted_s * 10**9 if at is None else at
    return (hit.score, -when, row.source.connection, row.source.stream, row.key)


def first_page(hits: list[Found], limit: int) -> list[Found]:
    best: dict[str, Found] = {}
    for hit in hits:
        best.setdefault(hit.row.source.connection, hit)
    if len(best) > limit:
        return hits[:limit]
    chosen = list(best.values())
    for hit in hits:
        if len(chosen) >= limit:
            break
        if not any(hit is each for each in chosen):
            chosen.append(hit)
    return [hit for hit in hits if any(hit is each for each in chosen)]
