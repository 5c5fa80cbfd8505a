"""A stretch of one text of a record, cut where the database has it."""

from __future__ import annotations

import hashlib

import orjson

from personal_server.enforcement.plans import FieldWindowPlan
from personal_server.enforcement.rows import FieldWindow, WindowOutcome
from personal_server.storage.folding import fold
from personal_server.storage.sql.compiler import Statement, with_key
from personal_server.storage.sql.source_tables import Reader


def field_window(reader: Reader, plan: FieldWindowPlan) -> tuple[FieldWindow, ...]:
    """The database cuts the window; the whole value stays there."""
    windows: list[FieldWindow] = []
    for scoped in reader.places(plan.scopes):
        where, source = scoped.visible() & with_key(plan.key), scoped.source
        texts = (
            f"SELECT h.data FROM {scoped.compiler.lines()}"  # noqa: S608
            f" JOIN h{source.tables} h ON h.id = r.id{where.sql}"
        )
        cut = Statement(*reader.session.dialect.window(texts, where.params, plan))
        statements = [(source, scoped.compiler.rows(where)), (source, cut)]
        answers = reader.lines_of_each(statements)
        # a damaged record is noted, and not looked into
        if reader.whole_by_id(source, next(answers)):
            windows += [_window(source.connection_id, plan, *line) for line in next(answers)]
    return tuple(windows)


def _window(
    connection_id: str,
    plan: FieldWindowPlan,
    kind: str | None,
    match: int | None,
    begun: int,
    total: int,
    text: str,
    digest: str,
) -> FieldWindow:
    if kind == "json":
        kind, match, begun, total, text, digest = _cut(orjson.loads(text).get(plan.field), plan)
    if kind in (None, "null"):
        return FieldWindow(connection_id, WindowOutcome.NO_VALUE)
    if kind != "text":
        return FieldWindow(connection_id, WindowOutcome.NOT_TEXT)
    if match is not None and match < 0:
        return FieldWindow(connection_id, WindowOutcome.NO_MATCH)
    end = None if match is None else match + len(plan.match or "")
    return FieldWindow(connection_id, WindowOutcome.FOUND, text, begun, total, digest, match, end)


def _cut(value: object, plan: FieldWindowPlan) -> tuple[str, int | None, int, int, str, str]:
    """A line of `Dialect.window`, where the database cannot cut the text."""
    if not isinstance(value, str):
        return "null" if value is None else "other", None, 0, 0, "", ""
    match = None if plan.match is None else fold(value).find(fold(plan.match))
    offset = plan.offset_chars if match is None else max(0, match - plan.before_chars)
    begun = min(len(value), offset)
    text = value[begun : begun + plan.limit_chars]
    return "text", match, begun, len(value), text, hashlib.sha256(value.encode()).hexdigest()
