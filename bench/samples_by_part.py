"""Stacks that py-spy sampled, folded into the parts of the program that worked.

A sample belongs to the part of the innermost frame whose module belongs to one, so that what a part
has the standard library do for it is its own.  Code in C has no frame: it counts where it is called
from, but for JSON, which the line that is executed tells.  The modules of a part are named as this
checkout and as older ones have them.

What waits uses no processor, though py-spy finds it running while it waits for its turn on a busy
machine; so does what has just woken a thread or a caller.  These samples count for nothing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

OTHER, UNSEEN = "other", "in no sample"
JSON = "JSON"
LOOP = "event loop, threads"
# Of several that fit, the longest decides.
MODULES: dict[str, Sequence[str]] = {
    "frame of HTTP": ("uvicorn/", "h11/", "starlette/", "sse_starlette/", "personal_server/web/"),
    LOOP: ("asyncio/", "anyio/", "selectors.py", "threading.py", "concurrent/", "queue.py"),
    "SDK of MCP, pydantic": ("mcp/", "mcp_types/", "pydantic/", "pydantic_core/", "jsonschema"),
    "adapter: fitting and faces": (
        "pdpp_mcp_server/faces/",
        "pdpp_mcp_server/tools/pages.py",
        "pdpp_mcp_server/safe_text.py",
        "personal_server/mcp_adapter/faces/",
        "personal_server/mcp_adapter/tools/pages.py",
        "personal_server/mcp_adapter/safe_text.py",
    ),
    "adapter: its client of /v1": (
        "pdpp_mcp_server/rs_client/",
        "personal_server/rs_client/",
        "personal_server/app/in_process.py",
        "httpx",
        "httpcore",
    ),
    "adapter: other": (
        "pdpp_mcp_server/",
        "personal_server/mcp_adapter/",
        "personal_server/hosted_mcp/",
    ),
    "routes of /v1": ("personal_server/resource_server/", "personal_server/app/"),
    "enforcement, grants": (
        "personal_server/enforcement/",
        "personal_server/granting/",
        "personal_server/consent/",
        "personal_server/domain/",
        "pdpp_kernel/",
    ),
    "reading": ("personal_server/reading/", "personal_server/semantics/"),
    "words, stems, languages": (
        *(
            f"personal_server/domain/{module}.py"
            for module in (
                *("search_words", "word_forms", "spelling", "spaced_text", "unspaced_words"),
                *("stop_words", "text_language"),
            )
        ),
        "personal_server/domain/language_",
        "snowballstemmer/",
    ),
    "storage: rows, statements": ("personal_server/storage/",),
    "SQLite": ("personal_server/storage/sqlite/", "apsw/"),
    JSON: ("json/", "pdpp_mcp_server/rs_client/json_values.py", "personal_server/web/rendering.py"),
    "ingest": ("personal_server/collecting/",),
    "telemetry, log": (
        "opentelemetry/",
        "prometheus_client/",
        "logging/",
        "pdpp_mcp_server/metrics.py",
        "personal_server/mcp_adapter/metrics.py",
        *(f"personal_server/web/{module}.py" for module in ("traffic", "logs", "log_file")),
        "personal_server/reading/disclosure_",
    ),
}
PARTS = (*MODULES, OTHER, UNSEEN)
_PART_OF = {prefix: part for part, prefixes in MODULES.items() for prefix in prefixes}
_BY_LENGTH = sorted(_PART_OF, key=len, reverse=True)
WAITING = frozenset(
    {
        ("select", "selectors.py"),
        ("wait", "threading.py"),
        ("notify", "threading.py"),
        ("_wait_for_tstate_lock", "threading.py"),
        ("_worker", "concurrent/futures/thread.py"),
        ("get", "queue.py"),
        ("_write_to_self", "asyncio/selector_events.py"),
        ("write", "asyncio/selector_events.py"),
    }
)
_FRAME = re.compile(r"(?P<function>.*) \((?P<path>[^()]*?)(?::(?P<line>\d+))?\)")
_OF_JSON = re.compile(r"\b(?:orjson|msgspec\.json|json)\.(?:loads|dumps|encode|decode)\(")


@dataclass(frozen=True, slots=True)
class Frame:
    """One function that is under way: `path` as py-spy shortens it, below a folder of packages."""

    function: str
    path: str
    line: int

    @property
    def waits(self) -> bool:
        """Whether it is one that waits, or that wakes another."""
        return (self.function.rpartition(".")[2], self.path) in WAITING

    @property
    def part(self) -> str | None:
        """The part that its module belongs to; none for a module that serves every part."""
        return _part_of(self.path)


@dataclass(slots=True)
class Folded:
    """What each part did.  Units: `spent_ms` is processor time, in all of the sampled time.

    `samples` are those of what worked, `waiting` the others; `unread` those that py-spy could not
    take.
    """

    spent_ms: defaultdict[str, float] = field(
        default_factory=lambda: defaultdict[str, float](float)
    )
    samples: int = 0
    waiting: int = 0
    unread: int = 0

    def share(self, part: str) -> float:
        """What of the processor time the part took, from 0 to 1; 0 where nothing was spent."""
        whole = sum(self.spent_ms.values())
        return self.spent_ms[part] / whole if whole else 0.0

    def add(
        self,
        lines: Iterable[str],
        source: Sequence[Path],
        threads_ms: Mapping[str, float],
        whole_ms: float,
    ) -> None:
        """Fold a raw file of `py-spy record --threads`: `thread;frame;… count`, outermost first.

        `source` are the folders of packages that hold the program's own code.  `threads_ms` is what
        each thread spent, by its number, and `whole_ms` what the process did: a sample counts for
        so much of its thread's time as it is of the thread's samples, since a thread that waits for
        its turn is sampled as well.
        """
        seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for line in lines:
            stack, _, count = line.rstrip().rpartition(" ")
            thread, *named = stack.split(";")
            frames = [frame for text in named if (frame := frame_of(text))]
            if frames and frames[-1].waits:
                self.waiting += int(count)
            elif frames:
                seen[_number_of(thread)][_part(frames, source)] += int(count)
        told = 0.0
        for thread, parts in seen.items():
            self.samples += parts.total()
            for part, count in parts.items():
                spent = threads_ms.get(thread, 0.0) * count / parts.total()
                self.spent_ms[part] += spent
                told += spent
        self.spent_ms[UNSEEN] += max(0.0, whole_ms - told)


def frame_of(text: str) -> Frame | None:
    """A frame as py-spy writes it: `function (path:line)`; none for what is no Python."""
    found = _FRAME.fullmatch(text)
    return (
        None if found is None else Frame(found["function"], found["path"], int(found["line"] or 0))
    )


def _number_of(thread: str) -> str:
    """Of `thread (13170): disclosures`."""
    found = re.match(r"thread \((\w+)\)", thread)
    return "" if found is None else found[1]


def _part(frames: Sequence[Frame], source: Sequence[Path]) -> str:
    if frames and _OF_JSON.search(_text_of(frames[-1], tuple(source))):
        return JSON
    return next((part for frame in reversed(frames) if (part := frame.part)), OTHER)


@cache
def _part_of(path: str) -> str | None:
    prefix = next((each for each in _BY_LENGTH if path.startswith(each)), None)
    return None if prefix is None else _PART_OF[prefix]


@cache
def _text_of(frame: Frame, source: tuple[Path, ...]) -> str:
    """The line of source that is executed; empty for a module of others."""
    for folder in source:
        if (file := folder / frame.path).is_file():
            lines = file.read_text(encoding="utf-8").splitlines()
            return lines[frame.line - 1] if 0 < frame.line <= len(lines) else ""
    return ""
