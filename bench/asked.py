"""`python -m bench.asked FOLDER`: how often people's questions are answered, from public data.

FOLDER is a copy of `snap-research/locomo` (CC BY-NC, so whoever measures fetches it; nothing of it
is kept here): ten conversations of 5,882 turns, and 1,986 questions with the turns that answer
them.  All turns are imported as one table, and each question is asked as it is written, over the
whole archive and within the conversation that it is about.  Beside it, in the same run, is a plain
index: SQLite's FTS5 with Porter stems, asked for any word of the question but stop words, by its
own bm25.

With a copy of `facebookresearch/TimelineQA`, or its git directory (`--lives`), people are made up
by its generator and imported as tables, and its questions are asked through the tools: some of each
kind that are about one episode, checked against its own answers, and those over many, checked
against its own SQL.  Each takes three calls at most.

With a model (`--model`) all turns are embedded, and each question is asked by words and meaning
together, too.

Found at 10 means: a turn that answers is among the first ten hits; recall is the share of the turns
that answer among them.  Only the questions of every other conversation are asked: the others are
for the last run (`--final`).
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Any, cast

from rich.console import Console
from rich.table import Table

from bench.clients import HostedCaller, Refused, RestCaller
from bench.finding import wait_until_embedded
from bench.lifelog import life, timelineqa
from bench.lifelog_answers import Tools, hop_is_right, is_right, kind_of
from bench.site import Site, programs_of

HITS = 10
MOST_TRIES = 3
SEED = 12345
OF_EACH_KIND = 5
ATOMIC, MANY = "one episode", "many episodes"
LIFE_GOALS = {ATOMIC: 0.98, MANY: 0.9}
GOAL = 0.06
STREAM = "turns"
WHOLE, WITHIN = "whole archive", "within the conversation"
SCOPES = (WHOLE, WITHIN)
CATEGORIES = {1: "several turns", 2: "when", 3: "inferred", 4: "one turn", 5: "no such thing"}
COMMON = re.compile(
    r"an?|the|is|are|was|were|be|been|do|does|did|has|have|had|what|when|where|whom?|which|why|how|of"
    r"|in|on|at|to|for|with|and|or|by|from|as|that|this|its?|his|her|their|s?he|they"
)
FTS, BEFORE, NOW, HYBRID = "FTS5, Porter stems", "words before", "words", "hybrid"
HYBRID_GOAL = 0.15
ROUTES: Mapping[str, tuple[str, Sequence[tuple[str, str]]]] = {
    NOW: ("/v1/search", (("mode", "words"),)),
    HYBRID: ("/v1/search/hybrid", ()),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation; `key` tells it from all others."""

    key: str
    conversation: str
    speaker: str
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the keys of the turns that answer it."""

    text: str
    conversation: str
    category: int
    answers: frozenset[str]


Found = Mapping[str, Sequence[Sequence[str]]]
"""By scope the keys of the first hits of each question."""


def main() -> int:
    """Ask, print the table; 1 when a goal is missed."""
    options = _options()
    missed = list[str]()
    with tempfile.TemporaryDirectory(prefix="pdpp-lives-") as scratch:
        if options.lives is not None:
            missed += _asked_of_lives(options.lives, Path(scratch), options.count)
    if options.folder is not None:
        missed += _asked_of_chats(options)
    print(*(f"missed: {each}" for each in missed), sep="\n")
    return 1 if missed else 0


def _asked_of_lives(source: Path, scratch: Path, lives: int) -> list[str]:
    """Questions about the lives of imaginary people; the goals that are missed."""
    copy = timelineqa(source, scratch)
    scores = [_asked_of_life(copy, scratch, SEED + number) for number in range(lives)]
    missed = list[str]()
    for name, goal in LIFE_GOALS.items():
        rights = [right for score in scores for right in score[name]]
        kinds = {kind for kind, _ in rights}
        share = sum(right for _, right in rights) / len(rights)
        wrong = Counter(kind for kind, right in rights if not right)
        print(
            f"TimelineQA, {name}: {share:.1%} of {len(rights)} of {len(kinds)} kinds", dict(wrong)
        )
        if share < goal:
            missed.append(f"{name}: {share:.3f} is less than {goal}")
    return missed


def _asked_of_life(copy: Path, scratch: Path, seed: int) -> dict[str, list[tuple[str, bool]]]:
    """Of each question its kind, and whether the tools answer it."""
    lived = life(copy, scratch / f"life-{seed}", seed, "sparse")
    site = Site(scratch / f"site-{seed}")
    lived.write(site.folder / "lifelog")
    _import(site, site.folder / "lifelog")
    token, _ = site.grant("asked", "--source", "table-lifelog")
    draw = random.Random(seed)
    by_kind: dict[str | None, list[tuple[str, str]]] = {}
    for pair in draw.sample(lived.atomic, len(lived.atomic)):
        some = by_kind.setdefault(kind_of(pair[0]), [])
        if len(some) < OF_EACH_KIND:
            some.append(pair)
    with site.serving():
        caller = HostedCaller(site.origin, token)
        atomic = [
            (str(kind), is_right(Tools(caller), *pair))
            for kind, some in by_kind.items()
            for pair in some
        ]
        hops = [(hop.number, hop_is_right(Tools(caller), hop)) for hop in lived.hops]
    return {ATOMIC: atomic, MANY: hops}


def _import(site: Site, path: Path) -> None:
    _run(site, "import", str(path))


def _run(site: Site, *words: str) -> None:
    command = site.command("pdpp", *words)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words[0]} ended with {done.returncode}: {done.stderr}")


def _asked_of_chats(options: argparse.Namespace) -> list[str]:
    """Questions about public chats; the goals that are missed."""
    turns, asked = locomo(options.folder)
    names = sorted({turn.conversation for turn in turns})
    chosen = set(names[1::2] if options.final else names[::2])
    asked = [each for each in asked if each.conversation in chosen and each.answers]
    ways: dict[str, Found] = {FTS: _by_fts(turns, asked)}
    with tempfile.TemporaryDirectory(prefix="pdpp-asked-") as scratch:
        folder = Path(options.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if options.before is not None:
            before = Site(folder / "before", programs_of(options.before))
            ways[BEFORE] = _by_search(before, turns, asked, None)[NOW]
        ways |= _by_search(Site(folder / "now"), turns, asked, options.model)
    _show(ways, asked)
    goals = {NOW: GOAL} | ({HYBRID: HYBRID_GOAL} if HYBRID in ways else {})
    return [
        f"{way}, {scope}, {name}: {now:.3f} is not {goal} above {fts:.3f}"
        for way, goal in goals.items()
        for scope in SCOPES
        for name, now, fts in zip(
            ("found", "recall"),
            figures(ways[way][scope], asked),
            figures(ways[FTS][scope], asked),
            strict=True,
        )
        if now < fts + goal
    ]


def locomo(folder: Path) -> tuple[list[Turn], list[Asked]]:
    """All turns and questions of a copy, in either layout that it was published in."""
    turns: list[Turn] = []
    asked: list[Asked] = []
    for name, said, questions in _conversations(folder):
        turns += _turns(name, said)
        asked += [
            Asked(each["question"], name, each["category"], _answers(name, each))
            for each in questions
        ]
    if not turns:
        sys.exit(f"{folder} holds no copy of snap-research/locomo")
    return turns, asked


def _conversations(folder: Path) -> Iterator[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    whole, packed = folder / "data" / "locomo10.json", folder / "data" / "locomo10.zip"
    if whole.exists():
        for each in json.loads(whole.read_bytes()):
            yield each["sample_id"], each["conversation"], each["qa"]
    elif packed.exists():
        with zipfile.ZipFile(packed) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith(".json"):
                    said = json.loads(archive.read(name))
                    yield f"conv-{Path(name).stem}", said, said["qa"]


def _turns(name: str, said: Mapping[str, Any]) -> Iterator[Turn]:
    """A minute lies between two turns of a session, which alone has a time."""
    for number in range(1, len(said)):
        session = cast("list[dict[str, str]] | None", said.get(f"session_{number}"))
        begun = said.get(f"session_{number}_date_time")
        if session and begun:
            at = datetime.strptime(begun, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            for place, turn in enumerate(session):
                key = f"{name}:{turn['dia_id']}"
                said_at = at + timedelta(minutes=place)
                yield Turn(key, name, turn["speaker"], turn["text"], said_at)


def _answers(name: str, question: Mapping[str, Any]) -> frozenset[str]:
    named = (re.findall(r"D\d+:\d+", each) for each in question.get("evidence", ()))
    return frozenset(f"{name}:{turn}" for each in named for turn in each)


def figures(found: Sequence[Sequence[str]], asked: Sequence[Asked]) -> tuple[float, float]:
    """The share of questions that one of the hits answers, and the mean share of answers."""
    held = [each.answers.intersection(keys) for keys, each in zip(found, asked, strict=True)]
    shares = [len(keys) / len(each.answers) for keys, each in zip(held, asked, strict=True)]
    return sum(map(bool, held)) / len(held), sum(shares) / len(shares)


def _by_fts(turns: Sequence[Turn], asked: Sequence[Asked]) -> Found:
    """Who speaks and what is said, any word, by the index's own order."""
    index = sqlite3.connect(":memory:")
    index.execute(
        "CREATE VIRTUAL TABLE said USING fts5 (words, place UNINDEXED, tokenize='porter unicode61')"
    )
    rows = [(f"{turn.speaker} {turn.text}", turn.conversation) for turn in turns]
    index.executemany("INSERT INTO said VALUES (?, ?)", rows)
    found: dict[str, list[list[str]]] = {scope: [] for scope in SCOPES}
    for each in asked:
        words = [
            word for word in re.findall(r"\w+", each.text.lower()) if not COMMON.fullmatch(word)
        ]
        query = " OR ".join(f'"{word}"' for word in words)
        for scope, where in ((WHOLE, ""), (WITHIN, " AND place = ?2")):
            sql = f"SELECT rowid FROM said WHERE said MATCH ?1{where} ORDER BY bm25(said) LIMIT ?3"  # noqa: S608
            lines = index.execute(sql, (query, each.conversation, HITS))
            numbers = [int(line[0]) for line in lines]
            found[scope].append([turns[number - 1].key for number in numbers])
    return found


def _by_search(
    site: Site, turns: Sequence[Turn], asked: Sequence[Asked], model: Path | None
) -> dict[str, Found]:
    """The same through `GET /v1/search` of a server with the turns, and with a model by both."""
    if not site.data_dir.exists():
        table = site.folder / f"{STREAM}.csv"
        _write_table(table, turns)
        _import(site, table)
    if model is not None:
        _run(site, "semantic", "install", "--from", str(model))
    with site.serving():
        if model is not None:
            wait_until_embedded(lambda: _caller(site))
        return {
            way: {
                scope: [_hits(rest, each, scope, way) for each in asked]
                for rest in [_caller(site)]
                for scope in SCOPES
            }
            for way in (ROUTES if model is not None else (NOW,))
        }


def _caller(site: Site) -> RestCaller:
    name = f"asked-{datetime.now(UTC):%H%M%S%f}"
    return RestCaller(site.origin, site.grant(name, "--source", f"table-{STREAM}")[0])


def _write_table(path: Path, turns: Sequence[Turn]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "conversation", "time", "speaker", "text"))
        for turn in turns:
            rows.writerow(
                (turn.key, turn.conversation, f"{turn.said_at:%FT%TZ}", turn.speaker, turn.text)
            )


def _hits(rest: RestCaller, asked: Asked, scope: str, way: str) -> list[str]:
    path, more = ROUTES[way]
    query = [("q", asked.text), ("limit", str(HITS)), ("streams", STREAM), *more]
    if scope == WITHIN:
        query.append(("filter[conversation]", asked.conversation))
    for _ in range(MOST_TRIES - 1):  # a machine that has other work to do answers some too late
        with suppress(Refused):
            return [hit["record_key"] for hit in rest.get(path, query)["data"]]
        sleep(1)
    return [hit["record_key"] for hit in rest.get(path, query)["data"]]


def _show(ways: Mapping[str, Found], asked: Sequence[Asked]) -> None:
    table = Table(title=f"found / recall at {HITS}, {len(asked)} questions")
    table.add_column("")
    for scope in SCOPES:
        table.add_column(scope, justify="right")
        for name in CATEGORIES.values():
            table.add_column(name, justify="right")
    for way, found in ways.items():
        cells: list[str] = []
        for scope in SCOPES:
            cells.append("{:.3f} / {:.3f}".format(*figures(found[scope], asked)))
            for category in CATEGORIES:
                of = [n for n, each in enumerate(asked) if each.category == category]
                some = [found[scope][n] for n in of], [asked[n] for n in of]
                cells.append(f"{figures(*some)[0]:.2f}")
        table.add_row(way, *cells)
    Console(highlight=False, width=180).print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.asked", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="a copy of snap-research/locomo")
    parser.add_argument("--lives", type=Path, help="a copy of facebookresearch/TimelineQA")
    parser.add_argument("--count", type=int, default=3, help="how many lives are asked about")
    parser.add_argument("--before", type=Path, help="another checkout: words before")
    parser.add_argument("--model", type=Path, help="a folder with a model: hybrid")
    parser.add_argument("--keep", type=Path, help="where the archives stay for the next run")
    parser.add_argument("--final", action="store_true", help="ask the half that is held out")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
