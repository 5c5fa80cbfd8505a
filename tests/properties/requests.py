"""Random requests: mostly sensible ones, each kind of slip now and then."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from urllib.parse import quote

from tests.properties.worlds import (
    CONNECTIONS,
    DAYS,
    INSTANTS,
    MOODS,
    STREAM_NOTES,
    STREAM_VISITS,
    WORDS,
    key_of,
)

FIELDS = (
    *STREAM_NOTES["schema"]["properties"],
    "name",
    "size",
    "note_id",
    "price",
    "place",
    "number",
    "nowhere",
)
_OPERATORS: dict[str, tuple[str | None, ...]] = {
    name: (None, None, *operators, "lt")
    for stream in (STREAM_NOTES, STREAM_VISITS)
    for name, operators in stream["query"]["range_filters"].items()
}
_WHOLE = ("0", "1", "2", "3", "-5", "1e9", "9007199254740993", "2.0")
_BROKEN = ("0", "0.1", "0.2", "2.5", "-3.25", "1e-9", "1000000000000000")
_FILTER_VALUES: dict[str, tuple[str, ...]] = {
    "at": (*INSTANTS, *DAYS),
    "seen_at": (*INSTANTS, *DAYS),
    "day": DAYS,
    "mood": (*(mood for mood in MOODS if mood), "CALM", "ärger", "Z" * 300),
    "words": _WHOLE,
    "size": _WHOLE,
    "cost": _BROKEN,
    "price": _BROKEN,
    "pinned": ("true", "false"),
    "number": _WHOLE,
    "place": ("p0", "p1"),
}
NOTE_FIELDS = tuple(STREAM_NOTES["schema"]["properties"])


_GROUPED = (
    *("mood", "pinned", "words", "cost", "title", "place", "number"),
    *("book_id", "book_id", "size", "note_id", "price", "tags", "tags"),
)
_PERCENTILES = ("median", "median", "p10", "p25", "p75", "p90", "p95", "p99")
_GRANULARITIES = (
    *("minute", "hour", "day", "week", "month", "quarter", "year"),
    *("hour_of_day", "weekday"),
)
_AGGREGATED = {
    "sum": ("words", "cost", "size", "number"),
    "min": ("words", "cost", "at", "day"),
    "max": ("words", "cost", "at", "day", "seen_at"),
    "count_distinct": ("mood", "words", "at", "pinned", "seen_at", "day", "place"),
}


@dataclass(frozen=True)
class Ask:
    """A request as decoded parameters; `key` is the record key where there is one."""

    kind: str
    stream: str
    key: str | None = None
    scalars: dict[str, str] = field(default_factory=dict[str, str])
    filters: tuple[tuple[str, str | None, str], ...] = ()
    fields: tuple[str, ...] = ()
    expand: tuple[str, ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    streams: tuple[str, ...] = ()

    @property
    def segment(self) -> str:
        """The record key in a path."""
        return quote(self.key or "", safe="")

    @property
    def path(self) -> str:
        place = f"/v1/streams/{self.stream}"
        match self.kind:
            case "list" | "changes":
                return f"{place}/records"
            case "record":
                return f"{place}/records/{quote(self.key or '', safe='')}"
            case "window":
                return f"{place}/records/{quote(self.key or '', safe='')}/field-window"
            case "aggregate":
                return f"{place}/aggregate"
            case "search":
                return "/v1/search"
            case "timeline":
                return "/v1/timeline"
            case "streams":
                return "/v1/streams"
            case _:
                return "/v1/schema"

    @property
    def target(self) -> str:
        pieces = [f"{name}={quote(value, safe='')}" for name, value in self.scalars.items()]
        for name, operator, value in self.filters:
            place = f"filter[{name}]" + (f"[{operator}]" if operator else "")
            pieces.append(f"{quote(place, safe='')}={quote(value, safe='')}")
        for name in ("fields", "expand", "streams"):
            values = getattr(self, name)
            if values:
                pieces.append(f"{name}={quote(','.join(values), safe=',')}")
        pieces += [f"expand_limit[{name}]={limit}" for name, limit in self.limits]
        return f"{self.path}?{'&'.join(pieces)}" if pieces else self.path


@dataclass(frozen=True)
class Place:
    """A readable source, as a request would aim at it."""

    connection_id: str
    stream: str
    fields: tuple[str, ...]


def make_ask(rng: random.Random, places: list[Place]) -> Ask:
    """A request that mostly aims at something readable."""
    weights = [{"notes": 4, "visits": 2}.get(place.stream, 1) for place in places]
    aim = rng.choices(places, weights)[0] if places and rng.random() < 0.85 else None
    fields = aim.fields if aim is not None and rng.random() < 0.8 else FIELDS
    return Asker(rng, fields).ask(aim)


@dataclass(frozen=True)
class Asker:
    """Draws requests about fields."""

    rng: random.Random
    fields: tuple[str, ...]

    def ask(self, aim: Place | None) -> Ask:
        rng = self.rng
        kind = rng.choices(
            ("list", "record", "window", "aggregate", "search", "timeline", "streams", "schema"),
            (36, 11, 9, 18, 12, 9, 2, 4),
        )[0]
        stream = rng.choices(("notes", "files", "visits", "absent"), (70, 12, 15, 3))[0]
        scalars: dict[str, str] = {}
        if aim is not None:
            stream = aim.stream
        if aim is not None and rng.random() < 0.6:
            scalars["connection_id"] = aim.connection_id
        elif rng.random() < 0.2:
            scalars["connection_id"] = rng.choice((*CONNECTIONS, "cin_gone", "cin_nobody"))
        if rng.random() < 0.05:
            scalars["connector_id"] = rng.choice(
                ("alpha", "beta", "https://connectors.example/beta", "gamma")
            )
        match kind:
            case "list":
                return self._list(stream, scalars)
            case "record":
                key = key_of(stream, rng.randint(1, 10))
                chosen = self._fields() if rng.random() < 0.3 else ()
                expand = self._expand() if rng.random() < 0.3 else ()
                return Ask(kind, stream, key, scalars, fields=chosen, expand=expand)
            case "window":
                return self._window(stream, scalars)
            case "aggregate":
                return self._aggregate(stream, scalars)
            case "search":
                return self._search(scalars)
            case "timeline":
                return self._timeline(scalars)
            case "schema" if rng.random() < 0.8:
                return Ask(kind, stream, scalars=scalars | {"view": "compact"})
            case _:
                return Ask(kind, stream, scalars=scalars)

    def _list(self, stream: str, scalars: dict[str, str]) -> Ask:
        rng = self.rng
        if rng.random() < 0.6:
            scalars["limit"] = str(rng.choice((1, 2, 3, 5, 100)))
        self._end_early(scalars)
        if rng.random() < 0.35:
            name = self._field("at", "words", "cost", "seen_at", "day")
            scalars["sort"] = rng.choice((name, f"-{name}"))
        if rng.random() < 0.3:
            scalars["order"] = rng.choice(("asc", "desc"))
        if rng.random() < 0.3:
            scalars["count"] = rng.choice(("none", "estimated", "exact"))
        if rng.random() < 0.2:
            scalars["window"] = "exact"
        chosen: tuple[str, ...] = ()
        if rng.random() < 0.25:
            chosen = self._fields()
        elif rng.random() < 0.1:
            scalars["view"] = rng.choice(("short", "numbers", "nothing"))
        expand = self._expand() if rng.random() < 0.2 else ()
        limits: tuple[tuple[str, int], ...] = ()
        if rng.random() < 0.1:
            limits = ((rng.choice(("files", "shelf", "book")), rng.choice((0, 1, 3, 4, 5))),)
        filters = self._filters() if rng.random() < 0.5 else ()
        if rng.random() < 0.15:
            self._range(scalars)
        return Ask("list", stream, None, scalars, filters, chosen, expand, limits)

    def _end_early(self, scalars: dict[str, str]) -> None:
        """Sometimes ask for pages of some size."""
        if self.rng.random() < 0.3:
            scalars["page_chars"] = str(self.rng.choice((1, 200, 500, 1_500, 10**6)))
            if self.rng.random() < 0.5:
                scalars["member_chars"] = str(self.rng.choice((1, 20, 300)))

    def _fields(self) -> tuple[str, ...]:
        rng = self.rng
        pool = FIELDS if rng.random() < 0.1 else self.fields
        return tuple(dict.fromkeys(rng.choice(pool) for _ in range(rng.randint(1, 3))))

    def _expand(self) -> tuple[str, ...]:
        rng = self.rng
        return tuple(
            dict.fromkeys(rng.choices(("files", "book", "shelf", "nothing"), (6, 5, 5, 1), k=2))
        )

    def _filters(self) -> tuple[tuple[str, str | None, str], ...]:
        rng = self.rng
        found: dict[tuple[str, str | None], str] = {}
        for _ in range(rng.randint(1, 3)):
            name = rng.choice(FIELDS if rng.random() < 0.1 else self.fields)
            if name in ("labels", "blob_ref") and rng.random() < 0.8:
                name = "id"
            operator = rng.choice(_OPERATORS.get(name, (None,)))
            if rng.random() < 0.4:
                operator = rng.choice(("in", "ne", "contains", "starts_with", "exists"))
            found[name, operator] = self._filter_value(name, operator)
        filters = [(name, operator, value) for (name, operator), value in found.items()]
        # a list is sent value by value
        filters += [
            (name, operator, value)
            for name, operator, first in filters
            if operator == "in" and (value := self._filter_value(name)) != first
        ]
        return tuple(filters)

    def _filter_value(self, name: str, operator: str | None = None) -> str:
        rng = self.rng
        if operator == "exists" and rng.random() < 0.9:
            return rng.choice(("true", "false"))
        if operator in ("contains", "starts_with") and rng.random() < 0.9:
            return rng.choice(("c", "AL", "n", "B1", "z" * 250, "r", "\U0001f642", "e-M", "mk"))
        if rng.random() < 0.08:
            return rng.choice(("", "x", "true", "1.5", "2026-13-01", "01", "1e2", "NaN"))
        return rng.choice(_FILTER_VALUES.get(name, ("n1", "n2", "b1", "rain")))

    def _window(self, stream: str, scalars: dict[str, str]) -> Ask:
        rng = self.rng
        key = key_of(stream, rng.randint(1, 10))
        scalars["field"] = self._field("body", "body", "title", "name", "words", "labels")
        if rng.random() < 0.5:
            scalars["q"] = rng.choice((*WORDS, "RAIN", "mk", "nothing here"))
            if rng.random() < 0.4:
                scalars["before_chars"] = str(rng.choice((0, 1, 5, 8192)))
            if rng.random() < 0.4:
                scalars["after_chars"] = str(rng.choice((0, 1, 5)))
        elif rng.random() < 0.6:
            scalars["offset_chars"] = str(rng.choice((0, 1, 7, 40, 10**6)))
        if rng.random() < 0.5:
            scalars["limit_chars"] = str(rng.choice((1, 3, 10, 4096)))
        return Ask("window", stream, key, scalars)

    def _aggregate(self, stream: str, scalars: dict[str, str]) -> Ask:
        rng = self.rng
        scalars["metric"] = rng.choice((*_AGGREGATED, "count", "count", "avg", *_PERCENTILES))
        if scalars["metric"] != "count" or rng.random() < 0.05:
            scalars["field"] = self._field(*_AGGREGATED.get(scalars["metric"], ("words", "cost")))
        choice = rng.random()
        if choice < 0.45:
            scalars["group_by"] = self._grouped()
            if rng.random() < 0.25:
                scalars["bin"] = rng.choice(("0", "0", "1", "0.25", "1000"))
                scalars["group_by"] = self._field("words", "cost", "number")
            if rng.random() < 0.3:
                scalars["then_by"] = self._grouped()
        if 0.3 < choice < 0.75:
            self._by_time(scalars)
        if rng.random() < (0.3 if choice < 0.75 else 0.02):
            scalars["sort"] = rng.choice(("key", "-key", "value", "-value"))
        if rng.random() < 0.2:
            scalars["across"] = "connections"
            if rng.random() < 0.9:
                scalars.pop("connection_id", None)
        if rng.random() < 0.25:
            scalars["q"] = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 2)))
        if rng.random() < 0.5:
            scalars["limit"] = str(rng.choice((1, 2, 3, 100)))
        filters = self._filters() if rng.random() < 0.3 else ()
        return Ask("aggregate", stream, None, scalars, filters)

    def _grouped(self) -> str:
        """A field to group by, or the connection."""
        if self.rng.random() < 0.15:
            return "connection_id"
        return self._field(*_GROUPED)

    def _by_time(self, scalars: dict[str, str]) -> None:
        rng = self.rng
        scalars["group_by_time"] = self._field("at", "day", "seen_at")
        scalars["granularity"] = rng.choice(_GRANULARITIES)
        if rng.random() < 0.6:
            scalars["time_zone"] = rng.choice(
                ("UTC", "Europe/Rome", "America/New_York", "Asia/Kolkata", "Mars/Base")
            )

    def _search(self, scalars: dict[str, str]) -> Ask:
        rng = self.rng
        scalars["q"] = self._text()
        if rng.random() < 0.15:
            scalars["exact"] = rng.choice(("true", "false"))
        if rng.random() < 0.5:
            scalars["limit"] = str(rng.choice((1, 2, 3, 100)))
        self._end_early(scalars)
        if rng.random() < 0.3:
            self._range(scalars)
        if rng.random() < 0.3:
            scalars["sort"] = rng.choice(("newest", "oldest"))
        streams: tuple[str, ...] = ()
        filters: tuple[tuple[str, str | None, str], ...] = ()
        if rng.random() < 0.4:
            names = rng.choices(("notes", "files", "books", "absent"), (8, 3, 2, 1), k=2)
            streams = tuple(dict.fromkeys(names))
        if rng.random() < 0.25:
            streams, filters = ("notes",), self._filters()
        return Ask("search", "notes", None, scalars, filters, streams=streams)

    def _text(self) -> str:
        rng = self.rng
        words = [rng.choice(WORDS) for _ in range(rng.randint(1, 2))]
        text = " ".join(words)
        choice = rng.random()
        if choice < 0.15:
            text = f'"{text}"'
        elif choice < 0.3:
            text = f"{words[0][:3]}*"
        elif choice < 0.5:
            text = f"{words[0]}{rng.choice((' OR ', ' -'))}{rng.choice(WORDS)}"
        elif choice < 0.65:
            text = self._named_pieces(words)
        elif choice < 0.75:
            text = f"the {text} and"
        elif choice < 0.95:
            text = " ".join(self._question())
        return text

    def _named_pieces(self, words: list[str]) -> str:
        """Pieces with names before them: of searched fields, of others, of roles, of nothing."""
        rng = self.rng
        pieces: list[str] = []
        for word in words:
            name = rng.choice(("title", "body", "mood", "pinned", "words", "at", "name", "nowhere"))
            name = rng.choice(("from", "to", name, name))
            value = {"mood": "Calm", "pinned": "true", "words": "3"}.get(name, word)
            value = rng.choice(("calm", "WI*", value) if name == "from" else (value,))
            pieces.append(rng.choice((word, f"{name}:{value}", f'{name}:"{value}"')))
        if len(pieces) > 1:
            return f"{pieces[0]}{rng.choice((' ', ' ', ' OR ', ' -'))}{pieces[1]}"
        return pieces[0] if pieces[0][0] != '"' else words[0]

    def _question(self) -> list[str]:
        """More words than a record may hold, mistyped, or found nowhere."""
        rng = self.rng
        words = [rng.choice((*WORDS, "elsewhere")) for _ in range(rng.randint(1, 5))]
        place = rng.randrange(len(words))
        words[place] = _mistyped(rng, words[place] + rng.choice(("", "", "s")))
        return words

    def _timeline(self, scalars: dict[str, str]) -> Ask:
        rng = self.rng
        if rng.random() < 0.6:
            scalars["limit"] = str(rng.choice((1, 2, 3, 100)))
        if rng.random() < 0.3:
            scalars["order"] = rng.choice(("asc", "desc"))
        self._end_early(scalars)
        if rng.random() < 0.6:
            self._range(scalars)
        names = rng.choices(("notes", "visits", "files", "absent"), (8, 8, 2, 1), k=2)
        streams = tuple(dict.fromkeys(names)) if rng.random() < 0.4 else ()
        if rng.random() < 0.4:
            scalars.pop("connection_id", None)
        return Ask("timeline", "notes", None, scalars, streams=streams)

    def _range(self, scalars: dict[str, str]) -> None:
        """One bound of time or both, rarely one that is none."""
        for name in self.rng.sample(("since", "until"), self.rng.randint(1, 2)):
            slip = self.rng.random() < 0.04
            scalars[name] = self.rng.choice(("x", "2026") if slip else (*INSTANTS, *DAYS))

    def _field(self, *wanted: str) -> str:
        """One of these, mostly one that is granted."""
        usable = [name for name in wanted if name in self.fields]
        if usable and self.rng.random() < 0.9:
            return self.rng.choice(usable)
        return self.rng.choice((*wanted, "nowhere", "mood"))


def _mistyped(rng: random.Random, word: str) -> str:
    """A letter added, lost, changed, or two swapped; sometimes more than that."""
    at = rng.randrange(len(word))
    letter = rng.choice(("", "e", word[at] * 2, word[at : at + 2][::-1], "xx"))
    return (word[:at] + letter + word[at + max(1, len(letter) - 1) :]) or word
