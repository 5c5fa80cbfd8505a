"""`python -m bench.finding`: how often search finds what people ask for.

The questions of `bench.questions` are asked through `GET /v1/search` of a server with 4,150 public
mails and 83 pages of notes, by a client with a package of grants for both: words as they were
(`--before CHECKOUT`, another checkout of this program), words now, and by meaning and both where
the server has vectors.  A sample is asked through the MCP tool too, which has to name the same
records.  Found within n means: a record that answers the question is among the first n hits.

Only half of the questions are asked: the others are for the last run (`--final`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.__main__ import DOCS, replace_section
from bench.clients import HostedCaller, Refused, RestCaller
from bench.plot import plot_shares
from bench.questions import KINDS, Question, questions
from bench.samples import mailbox, notes
from bench.site import Site, programs_of

HITS = 10
SAMPLE_EVERY = 12
EMBEDDING_SECONDS = 10_800
# A token is asked anew long before it ends.
TOKEN_SECONDS = 600
HEADING = "## Search quality"
IMAGE = "finding.svg"
REGISTRY = "https://registry.pdpp.dev/connectors"
STREAMS = {"mail": ("messages", "attachments"), "notes": ("notes",)}
BEFORE, WORDS, MEANING, HYBRID = "words before", "words", "meaning", "hybrid"
# Each way to ask: its route, and what it adds to the query.
WAYS: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    WORDS: ("/v1/search", (("mode", "words"),)),
    MEANING: ("/v1/search/semantic", ()),
    HYBRID: ("/v1/search/hybrid", ()),
}
AT_ONE, AT_TEN, RANK = "at 1", "at 10", "MRR"
FIGURES = (AT_ONE, AT_TEN, RANK)


@dataclass(frozen=True, slots=True)
class Answer:
    """Which records one way named for a question, best first, and what it said of that."""

    question: Question
    named: tuple[str, ...]
    said: Mapping[str, Any]

    @property
    def place(self) -> int | None:
        """Where the first record that answers stands, from 1."""
        places = (at for at, key in enumerate(self.named, 1) if key in self.question.answers)
        return next(places, None)

    @property
    def is_right(self) -> bool:
        """Whether it names a record that answers, or says that there is none."""
        return self.place is not None if self.question.answers else self.says_nothing_matches

    @property
    def says_nothing_matches(self) -> bool:
        """Whether it says that no record holds all that was asked, be there near ones or none."""
        relaxed = self.said.get("relaxed")
        return "empty" in self.said if relaxed is None else relaxed["exact_count"] == 0


@dataclass(frozen=True, slots=True)
class Goal:
    """What one kind has to reach by one way; `above` names the way that it is compared with."""

    kind: str
    way: str
    figure: str
    least: float
    above: str | None = None


GOALS = (
    Goal("exact, quoted", WORDS, AT_ONE, 0.95),
    Goal("inflected", WORDS, AT_TEN, 0.9),
    Goal("mistyped", WORDS, AT_TEN, 0.85),
    Goal("paraphrased", HYBRID, AT_TEN, 0.1, above=WORDS),
    *(Goal("absent", way, AT_ONE, 1.0) for way in (WORDS, HYBRID)),
)
NONE_WORSE = tuple(
    Goal(kind, way, figure, 0.0, above)
    for kind in ("exact", *KINDS[1:5])
    for way, above in ((WORDS, BEFORE), (HYBRID, WORDS))
    for figure in FIGURES
)


class Findings:
    """The answers of every way, and their figures by kind."""

    def __init__(self, answers: Mapping[str, Sequence[Answer]]) -> None:
        self.answers = answers

    @property
    def ways(self) -> list[str]:
        """The ways that were asked."""
        return list(self.answers)

    def of_kind(self, way: str, kind: str) -> list[Answer]:
        """The answers to the questions of a kind."""
        return [each for each in self.answers[way] if _is_of(each.question, kind)]

    def figure(self, way: str, kind: str, figure: str) -> float:
        """A share of the questions of a kind, or the mean of the reciprocal ranks."""
        answers = self.of_kind(way, kind)
        if kind == "absent":
            return sum(each.says_nothing_matches for each in answers) / len(answers)
        places = [each.place for each in answers]
        if figure == RANK:
            return sum(1 / place for place in places if place) / len(places)
        most = 1 if figure == AT_ONE else HITS
        return sum(place is not None and place <= most for place in places) / len(places)

    def reached(self, goal: Goal) -> bool | None:
        """Whether a goal is reached; None where its way or the other was not asked."""
        if goal.way not in self.answers or (goal.above and goal.above not in self.answers):
            return None
        least = goal.least
        if goal.above:
            least += self.figure(goal.above, goal.kind, goal.figure)
        return self.figure(goal.way, goal.kind, goal.figure) >= least - 1e-9

    def rows(self) -> Iterator[tuple[str, int, list[str]]]:
        """Each kind, how many questions it has, and its figures by way."""
        for kind in SHOWN:
            yield (
                kind,
                len(self.of_kind(self.ways[0], kind)),
                [self._cell(w, kind) for w in self.ways],
            )

    def _cell(self, way: str, kind: str) -> str:
        if kind == "absent":
            return f"{self.figure(way, kind, AT_ONE):.2f} told so"
        return " / ".join(f"{self.figure(way, kind, each):.2f}" for each in FIGURES)


SHOWN = ("exact", "exact, quoted", *KINDS[1:])


def main() -> int:
    """Ask, print the table; 1 when a goal is missed."""
    options = _options()
    console = Console(highlight=False)
    asked = [each for each in questions() if options.final or not each.held_out]
    answers: dict[str, list[Answer]] = {}
    with tempfile.TemporaryDirectory(prefix="pdpp-finding-") as scratch:
        folder = Path(options.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if options.before is not None:
            there = Site(folder / "before", programs_of(options.before))
            with _client(there) as (rest, _):
                answers[BEFORE] = [_by_words_before(rest, each) for each in asked]
        with _client(Site(folder / "now"), options.model) as (rest, hosted):
            for way in WAYS:
                found = _asked(rest, way, asked)
                if found is None:
                    console.print(f"{way}: not offered by this server")
                else:
                    answers[way] = found
            differing = _differing(rest, hosted, asked)
    findings = Findings(answers)
    _show(findings, console)
    console.print(f"asked through the tool: {len(differing)} differ", *differing, sep="\n")
    if options.misses:
        _show_misses(findings, console)
    if options.write:
        write(findings, final=options.final)
    missed = [goal for goal in (*GOALS, *NONE_WORSE) if findings.reached(goal) is False]
    for goal in missed:
        console.print(f"[bold red]missed:[/] {_words(goal)}")
    return 1 if missed or differing else 0


@contextmanager
def _client(
    site: Site, model: Path | None = None
) -> Generator[tuple[RestCaller, HostedCaller], None, None]:
    """A client of a server with the archive, which is imported unless the folder has it."""
    if not site.data_dir.exists():
        for sample in (mailbox(), notes()):
            _run(site.command("pdpp", "import", str(sample.path)))
    if model is not None:
        _run(site.command("pdpp", "semantic", "install", "--from", str(model)))
    with site.serving():
        if model is not None:
            wait_until_embedded(lambda: RestCaller(site.origin, _token(site)))
        # An access token may have ended while the server embedded.
        token = _token(site)
        yield RestCaller(site.origin, token), HostedCaller(site.origin, token)


def wait_until_embedded(caller: Callable[[], RestCaller]) -> None:
    """The server embeds in the background: some minutes for such an archive, an hour under load.

    A caller is asked for anew before its token ends.
    """
    until = monotonic() + EMBEDDING_SECONDS
    while monotonic() < until:
        if _is_embedded(caller(), min(until, monotonic() + TOKEN_SECONDS)):
            return
    sys.exit(f"after {EMBEDDING_SECONDS} s there were records without vectors")


def _is_embedded(rest: RestCaller, until: float) -> bool:
    """Whether every record has a vector before that time."""
    while monotonic() < until:
        with suppress(Refused):  # nothing is embedded yet
            recall = rest.get("/v1/search/semantic", [("q", "anything")])["meta"]["recall"]
            if not recall["unembedded_record_count"]:
                return True
        sleep(1)
    return False


def _token(site: Site) -> str:
    """A package: one grant for the mail and one for the notes."""
    details = [
        {
            "type": "https://pdpp.dev/data-access",
            "source": {"id": f"{REGISTRY}/{source}"},
            "purpose_code": "https://pdpp.dev/purpose/agent_context",
            "access_mode": "continuous",
            "streams": [{"name": name} for name in streams],
        }
        for source, streams in STREAMS.items()
    ]
    request = site.folder / "request.json"
    request.write_text(json.dumps(details), encoding="utf-8")
    name = f"finding-{datetime.now(UTC):%H%M%S%f}"
    return site.grant(name, "--from", str(request))[0]


def _asked(rest: RestCaller, way: str, asked: Sequence[Question]) -> list[Answer] | None:
    """The answers by one way; None where the server does not have it."""
    path, more = WAYS[way]
    try:
        rest.get(path, [("q", "anything"), *more])
    except Refused:
        if way != WORDS:
            return None
        more = ()  # a server with words only takes no mode
    return [_answer(each, rest.get(path, _query(each, more))) for each in asked]


def _by_words_before(rest: RestCaller, question: Question) -> Answer:
    return _answer(question, rest.get("/v1/search", _query(question, ())))


def _query(question: Question, more: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [("q", question.ask), ("limit", str(HITS)), *more]


def _answer(question: Question, body: Mapping[str, Any]) -> Answer:
    named = tuple(f"{hit['stream']}/{hit['record_key']}" for hit in body["data"])
    return Answer(question, named, body["meta"])


def _differing(rest: RestCaller, hosted: HostedCaller, asked: Sequence[Question]) -> list[str]:
    """Which of a sample the tool answers by other records than the route that it stands on.

    Its page may end earlier, and shares its places out among the accounts anew.
    """
    differing: list[str] = []
    for question in asked[::SAMPLE_EVERY]:
        arguments = {"query": question.ask, "limit": HITS}
        shown = hosted.call("search", arguments)["structuredContent"]["results"]
        body = rest.get("/v1/search", _query(question, ()))
        keys = [f"{hit['stream']}:{hit['record_key']}" for hit in body["data"]]
        told = [hit["id"].partition("/")[2] for hit in shown]
        if not set(told) <= set(keys) or told[:1] != keys[:1]:
            differing.append(question.ask)
    return differing


def _is_of(question: Question, kind: str) -> bool:
    if kind == "exact, quoted":
        return question.kind == "exact" and question.ask.startswith('"')
    return question.kind == kind


def _words(goal: Goal) -> str:
    than = f" above {goal.above}" if goal.above else ""
    return f"{goal.kind}, {goal.way}, {goal.figure}: at least {goal.least:.2f}{than}"


def _show(findings: Findings, console: Console) -> None:
    table = Table(title=f"found {' / '.join(FIGURES)}, the rank within {HITS}")
    table.add_column("kind")
    for column in ("asked", *findings.ways):
        table.add_column(column, justify="right")
    for kind, count, cells in findings.rows():
        table.add_row(kind, str(count), *cells)
    console.print(table)


def _show_misses(findings: Findings, console: Console) -> None:
    for way in findings.ways:
        for answer in findings.answers[way]:
            if not answer.is_right:
                asked = answer.question
                named = ", ".join(answer.named[:2]) or "nothing"
                wanted = ", ".join(asked.answers[:2]) or "that it says so"
                line = f"{way} | {asked.kind} | {asked.ask} | wanted {wanted} | got {named}"
                console.print(line, soft_wrap=True, markup=False)
    if {WORDS, HYBRID} <= findings.answers.keys():
        for words, hybrid in zip(findings.answers[WORDS], findings.answers[HYBRID], strict=True):
            places = [each.place or HITS + 1 for each in (words, hybrid)]
            if places[1] > places[0]:
                asked = words.question
                line = f"lower by hybrid | {asked.kind} | {asked.ask} | {places[0]} → {places[1]}"
                console.print(line, soft_wrap=True, markup=False)


def write(findings: Findings, *, final: bool) -> None:
    """Keep table and plot in docs/performance.md."""
    lines = [
        f"{HEADING}, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"`python -m bench.finding`: 4,150 public mails of {mailbox().title} and 83 pages about a"
        f" command line of {notes().title}, asked what `bench/questions.jsonl` keeps"
        f"{'' if final else ' (half of it)'}, written from the texts before any index was asked."
        f" In each cell the share of questions of which a record that answers is the first hit,"
        f" that of those where one is among {HITS}, and the mean reciprocal rank within these; of"
        " what is not there, the share that is told so. Meaning is that of all-MiniLM-L6-v2 in 8"
        " bits, which knows English: the questions in other languages show what names in them do.",
        "",
        f"| kind | asked | {' | '.join(findings.ways)} |",
        f"|---|---:|{'---:|' * len(findings.ways)}",
        *(f"| {kind} | {count} | {' | '.join(c)} |" for kind, count, c in findings.rows()),
        "",
        "| goal | reached |",
        "|---|---|",
        *(f"| {_words(goal)} | {_told(findings.reached(goal))} |" for goal in GOALS),
        "| no kind worse by words than before, none by hybrid than by words, in any figure |"
        f" {_told(_all_reached(findings))} |",
        "",
        f"![found within {HITS} by kind and way]({IMAGE})",
    ]
    kinds = [kind for kind in SHOWN if kind != "absent"]
    shares = {way: [findings.figure(way, kind, AT_TEN) for kind in kinds] for way in findings.ways}
    plot_shares(kinds, shares, f"found within {HITS}", DOCS / IMAGE)
    replace_section(HEADING, "\n".join(lines))


def _all_reached(findings: Findings) -> bool | None:
    reached = [findings.reached(goal) for goal in NONE_WORSE]
    return None if None in reached else all(reached)


def _told(reached: bool | None) -> str:
    return "not measured" if reached is None else "yes" if reached else "no"


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[-2:]} ended with {done.returncode}: {done.stderr}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.finding", description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout: words before")
    parser.add_argument("--model", type=Path, help="a folder with a model: meaning and hybrid")
    parser.add_argument("--keep", type=Path, help="where the archives stay for the next run")
    parser.add_argument("--misses", action="store_true", help="say what was not found")
    parser.add_argument("--final", action="store_true", help="ask the held-out half too")
    parser.add_argument("--write", action="store_true", help="keep the table in the docs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
