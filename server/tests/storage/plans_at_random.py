"""Random writes and random plans over the notebook of `worlds`."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

from msgspec.structs import replace

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Condition, Grouping, GroupOrder, Order, Term, WordQuery
from pdpp_kernel.operators import RANGES, Operator
from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.values import ValueKind, instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import (
    AggregatePlan,
    BesidePlan,
    BlobPlan,
    ChangesPlan,
    ChildrenPlan,
    FieldWindowPlan,
    KeysPlan,
    NeighboursPlan,
    RecordPlan,
    RecordsPlan,
    SearchPlan,
    TimelinePlan,
)
from personal_server.enforcement.rows import Position
from personal_server.enforcement.scopes import Scope, TimedScope
from personal_server.storage.ports.snapshots import ReadSnapshot
from server.tests.storage.worlds import (
    FILES,
    FILES_STREAM,
    NOTES,
    NOTES_STREAM,
    condition,
    declaration,
    order,
    scope,
)

CONNECTIONS = ("cin_a", "cin_b")
KEYS = ("n1", "n2", "n3", "ä", "10", "9", "z/.~", '["a"]')
TIMES = (
    "2026-01-01T00:00:00Z",
    "2026-01-01T01:00:00+01:00",
    "2026-03-29T00:59:59.999999999Z",
    "2026-03-29T01:00:00Z",
    "2026-10-25T00:30:00Z",
    "2026-10-25T01:30:00Z",
    "2026-10-25T03:30:00+02:00",
    "1969-12-31T23:59:59Z",
    "1899-05-01T12:00:00Z",
    "2500-07-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
)
DAYS = ("2026-01-01", "2026-03-29", "2026-12-31", "1969-12-31", "0001-01-01", "9999-12-31")
LONG = "rain " * 60
TEXTS = (
    "",
    "Heavy rain",
    "rain rain rain",
    "Wind and RAIN, heavy",
    "東京 rain",
    "ada@example.org",
    LONG + "a",
    LONG + "b",
    "Äh, näßte 😀",
    "rainy windy",
)
NUMBERS = (0, 1, 1.0, 2, 0.1, 0.2, 0.30000000000000004, -0.0, 1e300, -1e300, 12.3456, 12.34567, 1e8)
INTEGERS = (None, 0, 1, 2, 3.0, 7, -7, 2**62, 2**63 - 1, -(2**63) + 1)
MOODS = (None, "", "calm", "glad", LONG + "x", LONG + "y")
BLOB_BYTES = (b"first", b"second")
BLOBS = tuple(f"blob_sha256_{hashlib.sha256(each).hexdigest()}" for each in BLOB_BYTES)
ZONES = ("UTC", "Europe/Rome", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
OF_INSTANTS = (Granularity.MINUTE, Granularity.HOUR, Granularity.HOUR_OF_DAY)
WORDS = ("rain", "raining", "heavy", "winds", "windy", "東", "京", "naßte", "ah", "nothing", "a")


def note(random: Random) -> dict[str, Any]:
    made: dict[str, Any] = {"id": random.choice(KEYS), "at": random.choice(TIMES)}
    choices: dict[str, tuple[Any, ...]] = {
        "day": (*DAYS, None),
        "title": (*TEXTS, None),
        "body": TEXTS,
        "mood": MOODS,
        "place": TEXTS,
        "words": INTEGERS,
        "cost": NUMBERS,
        "pinned": (True, False),
        "labels": ([], [1, {"b": 1}], [{"b": 1.0}]),
        "blob_ref": tuple({"blob_id": blob, "size_bytes": 1} for blob in BLOBS),
    }
    for name, values in choices.items():
        if random.random() < 0.6:
            made[name] = random.choice(values)
    return made


def renewed_at_random(random: Random, version: str) -> SourceDeclaration:
    """The same fields, stored another way: other columns, other indexes."""
    left_out = random.choice(("words", "day", "cost", None))
    query: dict[str, Any] = NOTES["query"]
    ranges = {name: ops for name, ops in query["range_filters"].items() if name != left_out}
    groups = random.sample(query["aggregations"]["group_by"], 3)
    aggregations = {**query["aggregations"], "group_by": groups}
    changed = {**query, "range_filters": ranges, "aggregations": aggregations}
    properties = dict(NOTES["schema"]["properties"])
    if random.random() < 0.4:
        del properties["place"]
    if random.random() < 0.4:
        changed["search"] = {"lexical_fields": ["body", "title"]}
    schema = {**NOTES["schema"], "properties": properties}
    return declaration(version, [{**NOTES, "schema": schema, "query": changed}, FILES])


def file(random: Random) -> dict[str, Any]:
    made = {"id": random.choice(KEYS), "note_id": random.choice(KEYS)}
    return made | ({"name": random.choice(TEXTS)} if random.random() < 0.7 else {})


def scopes(random: Random) -> tuple[Scope, ...]:
    chosen = random.sample(CONNECTIONS, random.randint(1, 2))
    fields = tuple(
        name for name in NOTES_STREAM.properties if name in ("id", "at") or random.random() < 0.7
    )
    return tuple(
        scope(
            each,
            fields=fields,
            window=window(random),
            resources=resources(random),
            only=limits(random),
        )
        for each in chosen
    )


def window(random: Random) -> TimeConstraint | None:
    if random.random() < 0.5:
        return None
    since, until = sorted(instant_ns(each) or 0 for each in random.sample(TIMES, 2))
    if since == until:
        return TimeConstraint("at", since, None)
    edge = random.randint(0, 2)
    return TimeConstraint("at", None if edge == 0 else since, None if edge == 1 else until)


def resources(random: Random) -> frozenset[str] | None:
    if random.random() < 0.7:
        return None
    return frozenset(random.sample(KEYS, random.randint(1, 5)))


def limits(random: Random) -> tuple[Condition, ...]:
    """Of fields that every renewed declaration indexes, and of short values."""
    pools = {"mood": ("", "calm", "glad"), "body": tuple(each for each in TEXTS if len(each) < 200)}
    found: list[Condition] = []
    for field in random.sample(sorted(pools), random.choice((0, 0, 0, 1, 1, 2))):
        first, *further = random.sample(pools[field], random.randint(1, 2))
        operator = Operator.IN if further else Operator.EQ
        found.append(condition(field, operator, first, further=further, caseless=True))
    return tuple(found)


def conditions(random: Random) -> tuple[Condition, ...]:
    return tuple(one_condition(random) for _ in range(random.choice((0, 0, 1, 1, 2))))


def one_condition(random: Random) -> Condition:
    field, values = random.choice(
        [
            ("at", TIMES),
            ("day", DAYS),
            ("words", INTEGERS[1:]),
            ("cost", NUMBERS),
            ("mood", MOODS[1:]),
            ("place", TEXTS),
            ("body", TEXTS),
            ("pinned", (True, False)),
            ("id", KEYS),
        ]
    )
    ranged = field in ("at", "day", "words", "cost")
    textual = field in ("mood", "place", "body", "id")
    choices = [Operator.EQ, Operator.EQ, Operator.IN, Operator.NE, Operator.EXISTS]
    choices += sorted(RANGES) if ranged else []
    choices += [Operator.CONTAINS, Operator.STARTS_WITH] if textual else []
    operator = random.choice(choices)
    caseless = textual and random.random() < 0.3
    if operator is Operator.EXISTS:
        return condition(field, operator, random.random() < 0.5)
    value: Any = random.choice(values)
    if operator in (Operator.CONTAINS, Operator.STARTS_WITH):
        at = random.randrange(len(value) + 1) if operator is Operator.CONTAINS else 0
        value = value[at : at + random.randint(1, 200)].swapcase() or "a"
    if caseless and random.random() < 0.5:
        value = value.swapcase()
    more = random.choices(values, k=2) if operator is Operator.IN else ()
    return condition(field, operator, value, further=more, caseless=caseless)


def orders(random: Random) -> Order:
    field = random.choice((None, "at", "at", "day", "words", "cost"))
    return order(field, down=random.random() < 0.5)


def words(random: Random) -> WordQuery:
    wanted = tuple(_either(random) for _ in range(random.choice((1, 1, 2))))
    return WordQuery(wanted, (_either(random),) if random.random() < 0.2 else ())


def _either(random: Random) -> Term:
    others = (_term(random),) if random.random() < 0.2 else ()
    return dataclasses.replace(_term(random), others=others)


def _term(random: Random) -> Term:
    words = tuple(random.sample(WORDS, random.choice((1, 1, 2))))
    prefix = random.random() < 0.3
    return Term(words, prefix, inflected=len(words) == 1 and not prefix and random.random() < 0.5)


def groupings(random: Random) -> tuple[Grouping, ...]:
    """None, one or two: by value, step or connection, the last perhaps by time."""
    made = [_by_value(random) for _ in range(random.choice((0, 1, 1, 2)))]
    if made and random.random() < 0.5:
        made[-1] = _by_time(random)
    return tuple(made)


def _by_value(random: Random) -> Grouping:
    field = random.choice(("mood", "pinned", "words", "cost", "day", "at", "place", None))
    if field is None:
        return Grouping(None, ValueKind.STRING)
    if field in ("words", "cost") and random.random() < 0.5:
        width = Decimal(random.choice(("0", "0.3", "1", "5", "1000000")))
        return Grouping(field, _kind(field), bin_width=width)
    label, mark = (random.choice(("title", "place", None)) for _ in range(2))
    return Grouping(field, _kind(field), label_field=label, mark_field=mark)


def _by_time(random: Random) -> Grouping:
    field = random.choice(("at", "at", "day"))
    choices = [g for g in Granularity if field == "at" or g not in OF_INSTANTS]
    return Grouping(field, _kind(field), random.choice(choices), random.choice(ZONES))


def aggregate_plan(random: Random) -> AggregatePlan:
    metric = random.choice(list(Metric))
    fields = {
        Metric.SUM: ("words", "cost"),
        Metric.MIN: ("at", "cost", "words", "day"),
        Metric.MAX: ("at", "cost", "words", "day"),
        Metric.COUNT_DISTINCT: ("mood", "at", "cost"),
    }
    numbers = ("words", "cost")
    field = random.choice(fields.get(metric, numbers)) if metric is not Metric.COUNT else None
    return AggregatePlan(
        scopes(random),
        metric,
        field,
        None if field is None else _kind(field),
        conditions(random),
        made := groupings(random),
        random.randint(1, 6),
        random.choice((None, None, *GroupOrder)) if made else None,
        words(random) if random.random() < 0.3 else None,
    )


def _kind(field: str) -> Any:
    return NOTES_STREAM.properties[field].kind


Ask = Callable[[ReadSnapshot], object]


def question(random: Random, retained_from: int, horizon: int) -> Ask:
    """One random read."""
    kinds = (
        pages,
        pages,
        timeline,
        aggregate,
        aggregate,
        search,
        search,
        counted_terms,
        figures,
        single,
        children,
        neighbours,
        beside,
        cut,
    )
    if random.random() < 0.2:
        return feed(random, retained_from, horizon)
    return random.choice(kinds)(random)


def aggregate(random: Random) -> Ask:
    plan = aggregate_plan(random)
    return lambda snapshot: snapshot.aggregate(plan)


def search(random: Random) -> Ask:
    searched = scopes(random)
    asked = {(s.connection_id, s.stream.name): conditions(random) for s in searched}
    plan = SearchPlan(searched, _most_of(random, words(random)), asked)

    def read(snapshot: ReadSnapshot) -> object:
        found = snapshot.search(plan)
        return [sorted(found.candidates), found.document_frequencies, sorted(found.truncated)]

    return read


def _most_of(random: Random, sought: WordQuery) -> WordQuery:
    if random.random() < 0.6:
        return sought
    quoted = tuple(dataclasses.replace(term, quoted=random.random() < 0.2) for term in sought.terms)
    extra = tuple(_either(random) for _ in range(random.choice((0, 1, 3))))
    terms = tuple(dict.fromkeys((*quoted, *extra)))
    return replace(sought, terms=terms, least=random.randint(1, len(terms)))


def counted_terms(random: Random) -> Ask:
    terms = tuple(_either(random) for _ in range(random.choice((1, 3, 40))))
    limit = random.choice((1, 2, 1_000))
    words = WordQuery(tuple(dict.fromkeys(terms)))
    plan = SearchPlan(scopes(random), words, frequency_limit=limit)
    return lambda snapshot: snapshot.count_terms(plan)


def figures(random: Random) -> Ask:
    most = random.choice((None, 0, 1, 3, 1000))
    count = RecordsPlan(scopes(random), conditions=conditions(random), most=most)
    covered, field = scopes(random), random.choice(("at", "day", None))
    span = RecordsPlan(covered, conditions=conditions(random), span_field=field, most=most)
    summarized = scopes(random)[0]
    return lambda snapshot: [
        snapshot.count(count),
        snapshot.span(span),
        snapshot.summary(summarized),
    ]


def single(random: Random) -> Ask:
    record = RecordPlan(scopes(random), random.choice(KEYS))
    together = [KeysPlan(each, tuple(random.sample(KEYS, 3))) for each in scopes(random)]
    blob = BlobPlan(scopes(random), random.choice(BLOBS))
    return lambda snapshot: [
        snapshot.record(record),
        snapshot.records(together),
        snapshot.blob(blob),
    ]


def children(random: Random) -> Ask:
    plan = ChildrenPlan(
        scope(random.choice(CONNECTIONS), FILES_STREAM),
        random.choice((None, "note_id")),
        tuple(random.sample(KEYS, 3)),
        order(None),
        random.randint(1, 3),
    )
    return lambda snapshot: snapshot.children(plan)


def neighbours(random: Random) -> Ask:
    """Of the place of every note, among those of one mood."""
    covered = scope(random.choice(CONNECTIONS), NOTES_STREAM)
    by = order(random.choice(("at", "day", "words")))
    shared = condition("mood", Operator.EQ, random.choice(MOODS[1:]))
    first = RecordsPlan((covered,), by, 100)

    def read(snapshot: ReadSnapshot) -> object:
        places = [each.position for each in snapshot.page(first).rows]
        placed = [each for each in places if each.value is not None]
        plans = (NeighboursPlan(covered, shared, by, each) for each in placed)
        return [snapshot.neighbours(plan) for plan in plans]

    return read


def beside(random: Random) -> Ask:
    """Of some notes, among those of their mood."""
    covered = scope(random.choice(CONNECTIONS), NOTES_STREAM)
    by = order(random.choice(("at", "day", "words")))
    assert by.field is not None
    assert by.kind is not None
    shared = condition("mood", Operator.EQ, random.choice(MOODS[1:]))
    keys = tuple(random.sample(KEYS, 3))
    plan = BesidePlan(covered, (shared.field, shared.kind), (by.field, by.kind), keys)
    return lambda snapshot: sorted(snapshot.beside(plan).items())


def cut(random: Random) -> Ask:
    plan = FieldWindowPlan(
        scopes(random),
        random.choice(KEYS),
        random.choice(("body", "title", "words", "labels")),
        random.randint(1, 20),
        random.choice((0, 3, 500)),
        random.choice((None, None, "RAIN", "ä", "zzz")),
        random.randint(0, 9),
    )
    return lambda snapshot: snapshot.field_window(plan)


def pages(random: Random) -> Ask:
    """All pages of a list, one after the other."""
    first = RecordsPlan(scopes(random), orders(random), random.randint(1, 4), conditions(random))

    def read(snapshot: ReadSnapshot) -> object:
        found: list[object] = []
        after: Position | None = None
        while True:
            plan = RecordsPlan(first.scopes, first.order, first.limit, first.conditions, after)
            page = snapshot.page(plan)
            found.append(page)
            if not page.more:
                return found
            after = page.rows[-1].position

    return read


def timeline(random: Random) -> Ask:
    """All pages of a time line of notes by instants and by days, one after the other."""
    down = random.random() < 0.5
    timed: dict[str, TimedScope] = {}
    for each in scopes(random):
        name = random.choice(("at", "day"))
        values = TIMES if name == "at" else DAYS
        operators = random.sample([Operator.GTE, Operator.LT], random.randint(0, 2))
        bounds = tuple(condition(name, op, random.choice(values)) for op in operators)
        timed[each.connection_id] = TimedScope(each, order(name, down=down), bounds)
    limit = random.randint(1, 4)
    asked = words(random) if random.random() < 0.6 else None

    def read(snapshot: ReadSnapshot) -> object:
        found: list[object] = []
        after: Position | None = None
        while True:
            plan = TimelinePlan(tuple(timed.values()), down, limit, after, asked)
            page = snapshot.timeline(plan)
            found.append(page)
            if not page.more:
                return found
            after = page.rows[-1].position

    return read


def feed(random: Random, retained_from: int, horizon: int) -> Ask:
    reached = random.randint(retained_from, horizon)
    since = random.choice((None, random.randint(retained_from, reached)))
    changes = ChangesPlan(
        scopes(random),
        since,
        reached,
        random.choice((0, since or 0)),
        random.randint(1, 9),
        conditions(random) if random.random() < 0.4 else (),
    )
    return lambda snapshot: snapshot.changes(changes)
