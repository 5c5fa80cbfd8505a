"""Persons: what records mention, read for a scope, and the tables that its persons stand in.

Rule: of each scope that persons are made of only visible records and granted fields are asked, and
how long that takes follows from them alone; what they come to stands in tables of this snapshot, so
that every plan is answered there as anywhere.
Source: docs/contract/resource-server.md 22.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from pdpp_kernel.person_fields import (
    Identity,
    IdentityKind,
    PersonField,
)
from pdpp_kernel.persons import (
    Corrections,
    Mention,
    persons_of,
)
from personal_server.enforcement.scopes import Scope
from personal_server.storage.checksums import line_sum, record_sum
from personal_server.storage.sql.declared_layouts import layout_of
from personal_server.storage.sql.driver import Line, Session
from personal_server.storage.sql.fixed_tables import ConnectionRow, CorrectionRow, MentionRow
from personal_server.storage.sql.layout import Layout
from personal_server.storage.sql.record_ids import free_places
from personal_server.storage.sql.record_tables import create_tables
from personal_server.storage.sql.records.written_rows import NewLines, prepare_one
from personal_server.storage.sql.source_tables import (
    Reader,
    ScopedSource,
    SourceTables,
    all_sources,
)
from personal_server.storage.sql.statements import delete, exists, insert, select
from personal_server.storage.sql.store_part import StorePart

# The numbers of tables that are made for a snapshot; those of sources never come so far.
_FIRST_NUMBER = 1 << 52
# So many persons are written before the time is looked at.
_AT_ONCE = 200

_IDENTITY = (MentionRow.source, MentionRow.field, MentionRow.kind, MentionRow.value)
_IS_MENTIONED = f"{exists(MentionRow, *_IDENTITY)} LIMIT 1"
_CORRECTIONS = select(
    CorrectionRow,
    CorrectionRow.subject_id,
    columns=(
        CorrectionRow.kind,
        CorrectionRow.value,
        CorrectionRow.other_kind,
        CorrectionRow.other_value,
    ),
)
_FORGET_CORRECTIONS = delete(CorrectionRow, CorrectionRow.subject_id)
_MADE_AT = select(
    ConnectionRow,
    ConnectionRow.subject_id,
    ConnectionRow.connection_id,
    columns=(ConnectionRow.created_at,),
)
_ALIKE = "m.kind, m.value, m.name, count(*), min(m.key)"
_EACH = "m.kind, m.value, m.name, 1, m.key"


class PersonsPart(StorePart):
    """The owner's corrections."""

    def person_corrections(self) -> Corrections:
        """In no particular order."""
        with self._database.read() as session:
            return corrections(session, self.subject_id)

    def correct_persons(self, change: Callable[[Corrections], Corrections]) -> None:
        """Read, change and write while nobody else does."""
        with self._database.write() as session:
            _put(session, self.subject_id, change(corrections(session, self.subject_id)))


def corrections(session: Session, subject_id: str) -> Corrections:
    """What the owner said; where both identities are the same, that it is nobody else's."""
    pairs = [
        (Identity(IdentityKind(kind), value), Identity(IdentityKind(other), other_value))
        for kind, value, other, other_value in session.rows(_CORRECTIONS, (subject_id,))
    ]
    return Corrections(
        frozenset(pair for pair in pairs if pair[0] != pair[1]),
        frozenset(one for one, other in pairs if one == other),
    )


def forget_lost_corrections(session: Session, subject_id: str) -> None:
    """Forget corrections that name an identity which no record of the subject mentions any more."""
    corrections_stored = corrections(session, subject_id)
    if not corrections_stored.merged and not corrections_stored.parted:
        return
    fields = [
        (source.source, person_field.field)
        for source in all_sources(session, subject_id)
        for person_field in {*source.layout.persons, *(source.wanted or source.layout).persons}
    ]

    def is_held(identity: Identity) -> bool:
        return any(
            session.first(_IS_MENTIONED, (*mention_field, *identity)) for mention_field in fields
        )

    corrections_kept = Corrections(
        frozenset(pair for pair in corrections_stored.merged if all(map(is_held, pair))),
        frozenset(filter(is_held, corrections_stored.parted)),
    )
    if corrections_kept != corrections_stored:
        _put(session, subject_id, corrections_kept)


def _put(session: Session, subject_id: str, corrections: Corrections) -> None:
    session.run(_FORGET_CORRECTIONS, (subject_id,))
    pairs = [*corrections.merged, *((identity, identity) for identity in corrections.parted)]
    session.many(insert(CorrectionRow), [(subject_id, *one, *other) for one, other in pairs])


def make_persons(reader: Reader, scope: Scope, made_before: int) -> SourceTables:
    """The persons of a scope, in tables that last as long as the snapshot."""
    session, layout = reader.session, replace(layout_of(scope.stream), by_day=False, grouped=())
    number = _FIRST_NUMBER + made_before
    corrections_said = corrections(session, reader.subject_id)
    made_at = session.value(_MADE_AT, (reader.subject_id, scope.connection_id)) or 0
    mentions = [
        mention for made_of in scope.made_of or () for mention in _mentions(reader, made_of)
    ]
    session.check()
    persons = persons_of(mentions, corrections_said)
    with session.scratch():
        for statement in create_tables(layout, number, session.dialect, scratch=True):
            session.run(statement)
        _fill(session, layout, number, persons, made_at)
    # no source has a number below 1
    source_key = (-1 - made_before, scope.connection_id, scope.stream.name)
    return SourceTables(*source_key, number, len(persons), layout)


def _fill(
    session: Session, layout: Layout, number: int, persons: list[dict[str, object]], made_at: int
) -> None:
    lines = NewLines()
    ids = free_places(session, number, [(n, str(data["id"])) for n, data in enumerate(persons)])
    for record_id, data in zip(ids, persons, strict=True):
        if record_id % _AT_ONCE == 0:
            session.check()
        key = str(data["id"])
        record = prepare_one(key, data, made_at, layout)
        text = record.text or ""
        columns_after = (key, 0, made_at, made_at, *record.values, record.word_counts, None)
        own = line_sum(key, 0, made_at, None)
        lines.lines.append((record_id, *columns_after))
        lines.texts.append((record_id, record_sum(own, text.encode()), text))
        if record.words:
            lines.words.append((record_id, record.words))
    lines.add(session, number, layout)


def _mentions(reader: Reader, scope: Scope) -> Iterator[Mention]:
    for scoped in reader.places([scope]):
        for person_field in scope.stream.person_fields:
            if person_field.field in scope.fields:
                yield from _of_field(reader, scoped, person_field)


def _of_field(reader: Reader, scoped: ScopedSource, told_by: PersonField) -> Iterator[Mention]:
    scope = scoped.scope
    # the name that another field has is shown to whoever reads that field
    is_named = told_by.named_by is None or told_by.named_by in scope.fields
    for kind, value, name, count, key in _lines(reader, scoped, told_by):
        yield Mention(
            Identity(IdentityKind(kind), value),
            name if is_named else None,
            scope.connector_key,
            scope.connection_id,
            scope.stream.name,
            told_by.field,
            key,
            count,
            key if told_by.is_card else None,
        )


def _lines(reader: Reader, scoped: ScopedSource, told_by: PersonField) -> list[Line]:
    """(kind, value, name, count, key) of visible records."""
    columns, tail = (
        (_EACH, "") if told_by.is_card else (_ALIKE, " GROUP BY m.kind, m.value, m.name")
    )
    of_field = f"m.{MentionRow.source} = ? AND m.{MentionRow.field} = ?"
    params = (scoped.source.source, told_by.field)
    if scoped.is_whole:
        sql = f"SELECT {columns} FROM {MentionRow.table} m WHERE {of_field}{tail}"  # noqa: S608
        return reader.session.rows(sql, params)
    visible = scoped.compiler.select("r.k", scoped.visible())
    sql = (
        f"SELECT {columns} FROM ({visible.sql}) v"  # noqa: S608
        f" {reader.session.dialect.ordered_join} {MentionRow.table} m"
        f" ON {of_field} AND m.{MentionRow.key} = v.k{tail}"
    )
    return reader.session.rows(sql, (*visible.params, *params))
