"""People: who appears in the owner's records, where persons are on; one page a person.

Rule: the pages take the roads of a list as the owner; what a person wrote is looked for by the
fields that records declare as their author.
Source: docs/contract/authorization-server.md 13.5, docs/contract/resource-server.md 22.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from pdpp_kernel.errors import DamagedRecord, NotFound
from pdpp_kernel.operators import Operator
from pdpp_kernel.person_fields import PersonField, PersonForm
from pdpp_kernel.persons import CONNECTOR_KEY, STREAM
from pdpp_kernel.texts import Text, day_of_text
from personal_server.console.pages import Templates
from personal_server.console.record_values import columns_of, plain_records, table_row
from personal_server.console.record_view import MOST_LINK_BYTES, RecordsView
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.viewpoints import OWN, account_name, records_path
from personal_server.console.words import cut, declared_name, field_words
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.filter_texts import MAX_FILTER_VALUES, FilterText
from personal_server.enforcement.queries import (
    FieldSelection,
    RecordQuery,
    RecordsQuery,
    Selectors,
)
from personal_server.enforcement.timeline import time_field
from personal_server.reading.owner import OwnerReads
from personal_server.reading.records import read_records
from personal_server.reading.single_records import read_record
from personal_server.storage.ports.snapshots import ReadSnapshot

PEOPLE_SHOWN, WRITTEN_SHOWN, IDENTITIES_SHOWN = 50, 5, 3
PAGE_SECONDS = 10.0
NAME_CHARS, TITLE_CHARS = 80, 120
ROOT = "/owner/people"


class PersonLine(msgspec.Struct, frozen=True):
    """A person in the list."""

    name: str
    identities: str
    mentions: int
    link: str


class WrittenRecord(msgspec.Struct, frozen=True):
    """Something that a person wrote."""

    title: Text
    day: Text
    link: str


class PersonPlace(msgspec.Struct, frozen=True):
    """A kind of records of an account in which a person appears.

    Shapes: `written` are the newest that the person wrote, `count` how many there are of those,
        `all_links` lead to the rest, each with the address that it is about or for all of them;
        `fields` are the fields that name the person otherwise, `link` one such record.
    """

    account: str
    kind: str
    count: int = 0
    written: tuple[WrittenRecord, ...] = ()
    all_links: tuple[tuple[str, str], ...] = ()
    fields: tuple[str, ...] = ()
    link: str = ""


class PeoplePages(msgspec.Struct, frozen=True):
    """`/owner/people`, and a person below it."""

    reads: OwnerReads
    pages: Templates

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return (
            PageRoute("GET", ROOT, self.show_people, frozenset({"cursor"})),
            PageRoute("GET", f"{ROOT}/{{person}}", self.show_person),
        )

    def show_people(self, visit: PageRequest) -> Response:
        """Those first that records mention most.  Raises: InvalidCursor, QueryTimeout."""
        lines, following, is_on = list[PersonLine](), None, False
        with self.reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = _persons(authority)
            if source is not None:
                is_on = True
                query = RecordsQuery(
                    STREAM,
                    Selectors(source.connection_id),
                    limit=PEOPLE_SHOWN,
                    sort="-mention_count",
                    cursor=visit.query.get("cursor"),
                )
                answer = read_records(self.reads.ports, snapshot, authority, query)
                lines = [_line(each["id"], each["data"]) for each in plain_records(answer.data)]
                following = answer.next_cursor
        values = {
            "people": lines,
            "next": following,
            "persons": is_on,
            "begins": not visit.query.get("cursor"),
        }
        return self.pages.show(visit, "people.html", values)

    def show_person(self, visit: PageRequest) -> Response:
        """What a person wrote, when last, in which accounts.  Raises: NotFound, QueryTimeout."""
        key = visit.path["person"]
        with self.reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = _persons(authority)
            if source is None:
                raise NotFound("Persons are off on this server.")
            query = RecordQuery(STREAM, key, Selectors(source.connection_id))
            answer = read_record(snapshot, authority, query)
            (record,) = plain_records([answer.data])
            person: dict[str, Any] = record["data"]
            places = list(self._places(snapshot, authority, person))
        last = [each.written[0] for each in places if each.written]
        values = {
            "name": _name(person),
            "names": [cut(name, NAME_CHARS) for name in person.get("other_names") or ()],
            "identities": [cut(text, NAME_CHARS) for text in _identities(person)],
            "mentions": person.get("mention_count") or 0,
            "places": places,
            "newest": last,
            "persons": True,
        }
        return self.pages.show(visit, "person.html", values)

    def _places(
        self, snapshot: ReadSnapshot, authority: ReadAuthority, person: Mapping[str, Any]
    ) -> Iterator[PersonPlace]:
        """Where the person appears, by the links of the record of the person."""
        sources = {source.order: source for source in authority.sources}
        found: dict[tuple[str, str], list[Mapping[str, str]]] = {}
        for link in cast("Sequence[Mapping[str, str]]", person.get("links") or ()):
            found.setdefault((link["connection_id"], link["stream"]), []).append(link)
        for order, links in found.items():
            if (source := sources.get(order)) is None:
                continue
            authors = [f for f in source.declared.person_fields if _tells_author(source, f)]
            asked = {link.get("field") for link in links}
            author = next((f for f in authors if f.field in asked), None)
            others = [n for n in sorted(filter(None, asked)) if author is None or n != author.field]
            place = PersonPlace(
                cut(account_name(source), NAME_CHARS),
                cut(declared_name(source.declared.label), NAME_CHARS),
                fields=tuple(field_words(name) for name in others),
                link=records_path(OWN, *order, links[0]["id"]),
            )
            link = next(
                (each for each in links if author and each.get("field") == author.field), None
            )
            if author is None or link is None:
                yield place
                continue
            yield self._written(snapshot, authority, source, author, link["id"], person, place)

    def _written(
        self,
        snapshot: ReadSnapshot,
        authority: ReadAuthority,
        source: ReadableSource,
        author: PersonField,
        key: str,
        person: Mapping[str, Any],
        place: PersonPlace,
    ) -> PersonPlace:
        """The same place with the newest of what the person wrote there."""
        dated, names = time_field(source), columns_of(source)
        values = (
            list(dict.fromkeys(map(str, person.get("addresses") or ())))
            if author.form is PersonForm.ADDRESS
            else _value(snapshot, authority, source, author.field, key)
        )
        total, rows = 0, list[tuple[str, WrittenRecord]]()
        conditions = [
            _one_of(author.field, values[begin : begin + MAX_FILTER_VALUES])
            for begin in range(0, len(values), MAX_FILTER_VALUES)
        ]
        for condition in conditions:
            query = RecordsQuery(
                source.stream,
                Selectors(source.connection_id),
                limit=WRITTEN_SHOWN,
                sort=None if dated is None else f"-{dated.name}",
                filters=(condition,),
                cut=FieldSelection(
                    tuple(dict.fromkeys((*names, *([] if dated is None else [dated.name]))))
                ),
                count=True,
            )
            answer = read_records(self.reads.ports, snapshot, authority, query)
            total += 0 if answer.count is None else answer.count.value
            for each in plain_records(answer.data):
                at = "" if dated is None else str(each["data"].get(dated.name) or "")
                row = table_row(OWN, source, each["id"], each["data"], names)
                title = cut(str(row.name), TITLE_CHARS) if type(row.name) is str else row.name
                rows.append((at, WrittenRecord(title, day_of_text(at) if at else "", row.link)))
        rows.sort(key=lambda pair: pair[0], reverse=True)
        return PersonPlace(
            place.account,
            place.kind,
            total,
            tuple(row for _, row in rows[:WRITTEN_SHOWN]),
            _links(source, author.field, conditions, values) if total > WRITTEN_SHOWN else (),
            place.fields,
            place.link,
        )


def _links(
    source: ReadableSource, field: str, conditions: Sequence[FilterText], values: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """One link to all that a person wrote; one for each address where it would be too long."""
    if len(conditions) == 1:
        link = RecordsView(*source.order, filters=tuple(conditions)).link
        if len(link) <= MOST_LINK_BYTES:
            return (("", link),)
    views = ((v, RecordsView(*source.order, filters=(_one_of(field, (v,)),))) for v in values)
    return tuple((cut(value, NAME_CHARS), view.link) for value, view in views)


def _one_of(field: str, values: Sequence[str]) -> FilterText:
    """That a field has one of some values, of which there is one."""
    first, *further = values
    return FilterText(field, Operator.IN.value if further else None, first, tuple(further))


def _persons(authority: ReadAuthority) -> ReadableSource | None:
    found = (s for s in authority.sources if s.connector_key == CONNECTOR_KEY)
    return next((source for source in found if source.stream == STREAM), None)


def _tells_author(source: ReadableSource, field: PersonField) -> bool:
    """Whether it says who wrote the record."""
    authors = source.declared.fields_with_role("author")
    return field.field in authors or field.named_by in authors


def _value(
    snapshot: ReadSnapshot, authority: ReadAuthority, source: ReadableSource, name: str, key: str
) -> list[str]:
    """What the field of a record says, as it is stored."""
    query = RecordQuery(source.stream, key, Selectors(source.connection_id))
    with suppress(NotFound, DamagedRecord):
        (record,) = plain_records([read_record(snapshot, authority, query).data])
        value: object = record["data"].get(name)
        return [value] if isinstance(value, str) else []
    return []


def _line(key: str, data: Mapping[str, Any]) -> PersonLine:
    identities = [text for text in _identities(data)[:IDENTITIES_SHOWN] if text != _name(data)]
    link = f"{ROOT}/{quote(key, safe='')}"
    mentions = data.get("mention_count") or 0
    return PersonLine(_name(data), cut(", ".join(identities), TITLE_CHARS), mentions, link)


def _name(data: Mapping[str, Any]) -> str:
    identities = _identities(data)
    return cut(str(data.get("name") or (identities[0] if identities else "?")), NAME_CHARS)


def _identities(data: Mapping[str, Any]) -> list[str]:
    kinds = ("addresses", "numbers", "handles")
    return [str(each) for kind in kinds for each in data.get(kind) or ()]
