"""A grant as text: the index of its streams, and one stream ready to build calls from.

Source: docs/contract/mcp-adapter.md 10.1, 6.1, 7.1. Names are never dropped from the index; of a
stream, `none` and `not stated` differ, and what there is no room for has its call.
"""

import re
from collections.abc import Sequence

from pdpp_kernel.aggregations import FIGURE_WORDS
from pdpp_mcp_server import contract
from pdpp_mcp_server.faces import text
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_count,
    as_list,
    as_object,
    as_text,
    is_list,
)
from pdpp_mcp_server.safe_text import clean_json, label, one_line
from pdpp_mcp_server.schema_document import (
    CatalogRow,
    ConnectionLabel,
    aggregations_in,
    all_connections,
    catalog_rows,
    field_schemas,
    legend_for,
    unavailable_in,
)

USE_LINE = (
    "use: schema with one stream for fields, filters, sort, count, expand, search modes and"
    " aggregations"
)
OF_A_PACKAGE = "; query_records and aggregate of a stream need its connection_id"
UNSTATED = "not stated"
DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
LEAST_ROW_CHARS = 700
"""What a row needs to be described at all."""


def index_text(catalog: Json, closing: Sequence[str]) -> str:
    """Every granted stream name; what else there is room for."""
    few = len({row.name for row in catalog_rows(catalog)}) <= 24
    aim = contract.SCHEMA_TEXT_AIM if few else contract.SCHEMA_TEXT_LIMIT
    bare = ""
    figures = _figure_lines(catalog)
    for detail, shown in ((3, figures), (2, figures), (1, figures), (1, []), (0, [])):
        bare = text.joined(
            [_index_head(catalog)],
            _connection_lines(catalog, detail),
            _group_lines(catalog, sets=detail > 0),
            shown,
            text.unavailable_lines(unavailable_in(catalog)),
            text.warning_lines(text.server_warnings(catalog)),
            [_use_line(catalog)],
            closing,
        )
        if len(bare) <= aim:
            return bare
    return bare


def _use_line(catalog: Json) -> str:
    package = as_object(catalog.get("bearer")).get("token_kind") == "mcp_package"
    return USE_LINE + (OF_A_PACKAGE if package and len(all_connections(catalog)) > 1 else "")


def _index_head(catalog: Json) -> str:
    rows = catalog_rows(catalog)
    facts = (
        f"connectors={len({row.connector_key for row in rows})}",
        f"streams={len({(row.connector_key, row.name) for row in rows})}",
        f"connections={len(all_connections(catalog))}",
        *_today(catalog),
    )
    return f"schema: {'; '.join(facts)}"


def _connection_lines(catalog: Json, detail: int) -> list[str]:
    if detail < 2:
        return []
    found = list(all_connections(catalog).values())
    lines = [
        _connection_line(connection, key, labelled=detail > 2)
        for connection, key in found[: contract.SCHEMA_CONNECTION_LINES]
    ]
    rest = len(found) - len(lines)
    return [*lines, f"connections: more={rest}"] if rest > 0 else lines


def _connection_line(connection: ConnectionLabel, key: str | None, *, labelled: bool) -> str:
    facts = [text.fact("connector_key", label(key))] if key else []
    if labelled and connection.display_name:
        facts.append(text.fact("label", label(connection.display_name)))
    return f"connection {label(connection.connection_id)}: {'; '.join(facts)}".rstrip(": ")


def _group_lines(catalog: Json, *, sets: bool) -> list[str]:
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for row in catalog_rows(catalog):
        ids = tuple(c.connection_id for c in row.connections)[: contract.SCHEMA_CONNECTION_LINES]
        names = grouped.setdefault((row.connector_key or "source", ids if sets else ()), [])
        if row.name not in names:
            names.append(row.name)
    return [
        f"streams {label(key)}{_set(ids)}: {'; '.join(one_line(name) for name in names)}"
        for (key, ids), names in grouped.items()
    ]


def _set(ids: tuple[str, ...]) -> str:
    return f" [{' '.join(label(item) for item in ids)}]" if ids else ""


def stream_text(
    stream: str,
    rows: list[CatalogRow],
    catalog: Json,
    closing: Sequence[str],
    reserved_chars: int = 0,
) -> str:
    """One stream, every row of it: its source, and what it can do while there is room.

    Of more fields than fit, and of further rows, the way to them stands in their place.
    """
    connections = {c.connection_id for row in rows for c in row.connections}
    flags = [value for row in rows for value in _flags(row.row).values()]
    legend = "; ".join(f"{name}={meaning}" for name, meaning in legend_for(flags).items())
    counts = (f"sources={len(rows)}", f"connections={len(connections)}", *_today(catalog))
    head = [f"schema {label(stream)}: {'; '.join(counts)}"]
    head += [f"legend: {legend}"] if rows else []
    tail = [
        *text.unavailable_lines(unavailable_in(catalog)),
        *text.warning_lines(text.server_warnings(catalog)),
        *closing,
    ]
    return text.joined(
        head, _rows(stream, rows, reserved_chars + text.length(head) + text.length(tail)), tail
    )


def _rows(stream: str, rows: list[CatalogRow], taken_chars: int) -> list[str]:
    room = contract.SCHEMA_TEXT_LIMIT - taken_chars
    sources = _fitting([_source_line(row, n) for n, row in enumerate(rows, 1)], room)
    room -= text.length(sources) + LEAST_ROW_CHARS // 2
    described = max(1, min(len(sources), room // LEAST_ROW_CHARS))
    several = len(rows) > 1
    lines: list[str] = []
    for index, source in enumerate(sources):
        lines.append(source)
        if index < described:
            more = _more(stream, rows[index], several=several)
            lines += _row_lines(rows[index], room // described, more)
    if described < len(rows):
        lines.append(f"sources: shown={len(sources)}; described={described}; total={len(rows)}")
        lines.append("use: schema with the connection_id of a source for all of it")
    return lines


def _fitting(sources: list[str], room_chars: int) -> list[str]:
    """The sources named while one can still be described."""
    kept = len(sources)
    while kept > 1 and text.length(sources[:kept]) > room_chars - 2 * LEAST_ROW_CHARS:
        kept -= 1
    return sources[:kept]


def _more(stream: str, row: CatalogRow, *, several: bool) -> str:
    """The call that shows all of a row."""
    scope = {"connection_id": row.connections[0].connection_id} if row.connections else {}
    full = {} if several and scope else {"detail": "full"}
    return f"schema {clean_json({'stream': stream, **scope, **full})}"


def _row_lines(row: CatalogRow, room_chars: int, more: str) -> list[str]:
    names = room_chars // 8
    views = _listed([_view(view) for view in as_list(row.row.get("views"))], names, ",")
    facts = [
        f"projection: fields=any granted field; views={views if 'views' in row.row else UNSTATED}",
        *_sort_lines(row.row, names),
        f"count: {_stated(row.row.get('count'), names)}",
        f"expand: {_relations(row.row, names)}",
        f"search: {_searched(as_object(row.row.get('search')), names)}",
        f"aggregations: {_aggregations(row.row, names)}",
        "changes_since: yes",
        *(f"readable: {facts}" for facts in _seen(row.row)),
        *_constraints(row.row),
    ]
    left = room_chars - text.length(facts) - len("fields: ; more_fields=9999 by ")
    return [_fields_line(_flags(row.row), left, more), *facts]


def _source_line(row: CatalogRow, number: int) -> str:
    facts = [text.fact("connector_key", label(row.connector_key))] if row.connector_key else []
    facts.append(text.fact("stream", label(row.name)))
    shown = row.connections[: contract.SCHEMA_CONNECTION_LINES]
    names = " | ".join(_named(connection) for connection in shown) or UNSTATED
    rest = len(row.connections) - len(shown)
    facts.append(f"connection_id={names}" + (f" | +{rest} more" if rest > 0 else ""))
    return f"source {number}: {'; '.join(facts)}"


def _named(connection: ConnectionLabel) -> str:
    name = connection.display_name
    return label(connection.connection_id) + (f' "{label(name)}"' if name else "")


def _flags(row: Json) -> dict[str, str]:
    capabilities = as_object(row.get("field_capabilities"))
    return {name: str(value) for name, value in capabilities.items()}


def _fields_line(flags: dict[str, str], room_chars: int, more: str) -> str:
    if not flags:
        return f"fields: {UNSTATED}"
    shown: list[str] = []
    used = 0
    for name, value in flags.items():
        item = f"{one_line(name)}[{one_line(value, 200)}]"
        used += len(item) + 2
        if used > room_chars and shown:
            break
        shown.append(item)
    rest = len(flags) - len(shown)
    return f"fields: {'; '.join(shown)}" + (f"; more_fields={rest} by {more}" if rest else "")


def _view(view: object) -> str:
    return label(as_text(as_object(view).get("id")) or as_text(view) or "unnamed")


def _sort_lines(row: Json, room_chars: int) -> list[str]:
    sort = as_object(row.get("sort"))
    if "sort" not in row:
        return [f"sort: {UNSTATED}"]
    default = as_text(sort.get("default"))
    line = f"sort: {_stated(sort.get('fields'), room_chars)}"
    return [line + (f"; default={label(default)}" if default else "")]


def _searched(search: Json, room_chars: int) -> str:
    """The modes, and of which fields not everything can be found by meaning yet."""
    percent = as_count(search.get("embedded_percent"))
    modes = _stated(search.get("modes"), room_chars)
    if percent is None:
        return modes
    return f"{modes}; semantic: {percent} % of {_stated(search.get('semantic_fields'), room_chars)}"


def _stated(value: object, room_chars: int) -> str:
    if not is_list(value):
        return UNSTATED
    return _listed([label(str(item)) for item in value], room_chars, ", ")


def _listed(words: list[str], room_chars: int, glue: str = "; ") -> str:
    """The words while there is room, the number of the others; `none` when there are none."""
    shown: list[str] = []
    for word in words:
        room_chars -= len(word) + len(glue)
        if room_chars < 0 and shown:
            break
        shown.append(word)
    rest = len(words) - len(shown)
    return glue.join(shown) + (f"{glue}+{rest} more" if rest else "") if words else "none"


def _relations(row: Json, room_chars: int) -> str:
    if "expand_capabilities" not in row:
        return UNSTATED
    return _listed([_relation(item) for item in as_list(row["expand_capabilities"])], room_chars)


def _relation(item: object) -> str:
    facts = as_object(item)
    name = label(as_text(facts.get("name")) or as_text(item) or "unnamed")
    if facts.get("usable") is False:
        return f"{name}(unusable:{label(as_text(facts.get('reason')) or 'unknown')})"
    words = [as_text(facts.get("cardinality"))]
    for word, member in (("default", "default_limit"), ("max", "max_limit")):
        number = as_count(facts.get(member))
        words.append(f"{word} {number}" if number is not None else None)
    return f"{name}({', '.join(label(word) for word in words if word)})"


def _aggregations(row: Json, room_chars: int) -> str:
    by_kind: dict[str, list[str]] = {}
    for name, value in _flags(row).items():
        for kind in aggregations_in(value):
            by_kind.setdefault(kind, []).append(label(name))
    metrics = as_object(row.get("aggregate")).get("metrics")
    parts = ["count"] if "count" in as_list(metrics) else []
    share = 2 * room_chars // max(1, len(by_kind))
    parts += [
        f"{kind}={_listed(by_kind[kind], share, ',')}" for kind in FIGURE_WORDS if kind in by_kind
    ]
    return "; ".join(parts) or ("none" if "aggregate" in row else UNSTATED)


def _today(catalog: Json) -> list[str]:
    """The owner's day and time zone, when the server says them."""
    today = as_object(catalog.get("today"))
    facts = [("today", _day(today.get("date"))), ("time_zone", as_text(today.get("time_zone")))]
    return [text.fact(name, label(value)) for name, value in facts if value]


def _figure_lines(catalog: Json) -> list[str]:
    """What of each row is readable and its limits, unless there are too many rows for it."""
    rows = catalog_rows(catalog)
    if len(rows) > contract.SCHEMA_ROWS_WITH_FIGURES:
        return []
    facts = [
        (row, [*_seen(row.row), *(f"limited to: {part}" for part in _bounds(row.row))])
        for row in rows
    ]
    return [
        f"readable {label(row.connector_key or 'source')} {label(row.name)}: {'; '.join(parts)}"
        for row, parts in facts
        if parts
    ]


def _seen(row: Json) -> list[str]:
    """How many records, from when to when, when collected, and how many fields are not granted.

    Of a stored time only its day is said.
    """
    seen = as_object(row.get("visible"))
    parts: list[str] = []
    records = as_count(seen.get("records"))
    if records is not None:
        more = "+" if seen.get("more") is True else ""
        parts.append(f"{records:,}{more} record{'' if records == 1 and not more else 's'}")
    first, last = _day(seen.get("earliest")), _day(seen.get("latest"))
    if first and last:
        parts.append(f"{label(as_text(seen.get('time_field')) or 'time')} {first} to {last}")
    collected = as_text(seen.get("collected_at"))
    parts += [f"collected {label(collected)}"] if collected else []
    hidden = as_count(row.get("fields_left_out"))
    parts += [f"{hidden} field{'' if hidden == 1 else 's'} not granted"] if hidden else []
    return ["; ".join(parts)] if parts else []


def _day(value: object) -> str | None:
    found = DAY.match(as_text(value) or "")
    return found[0] if found else None


def _constraints(row: Json) -> list[str]:
    parts = _bounds(row)
    return [f"constraints: {'; '.join(parts)}"] if parts else []


def _bounds(row: Json) -> list[str]:
    constraints = as_object(row.get("constraints"))
    limit = as_object(constraints.get("time_constraint"))
    parts: list[str] = []
    if limit:
        words = [label(str(limit.get("field", "time")))]
        words += [
            f"{word} {label(limit[word])}"
            for word in ("since", "until")
            if as_text(limit.get(word))
        ]
        parts.append(" ".join(words))
    count = as_count(constraints.get("resource_count"))
    if count is not None:
        parts.append(f"{count} chosen records")
    for each in as_list(constraints.get("only")):
        limit = as_object(each)
        parts.append(f"{limit.get('value_count')} values of {label(str(limit.get('field')))}")
    if constraints.get("further_limits") is True:
        parts.append("records that the owner picked by what is not shown here")
    return parts


def field_schema_lines(rows: list[CatalogRow], room_chars: int) -> list[str]:
    """The JSON Schema of each field, as many as fit."""
    lines: list[str] = []
    total = 0
    for row in rows:
        properties = field_schemas(row.row)
        total += len(properties)
        for name, schema in properties.items():
            line = f"schema {one_line(name)}: {clean_json(schema)}"
            if len(line) + 1 <= room_chars:
                lines.append(line)
                room_chars -= len(line) + 1
    omitted = total - len(lines)
    return [*lines, f"omitted={omitted}"] if omitted else lines
