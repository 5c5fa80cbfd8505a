"""`python -m bench.roads [--modules] [--moves]`: how much of the server three roads enter.

The roads are a list of three records over REST, the same list through the hosted adapter, and the
import of one mail.  Each is gone twice before it is traced, so that nothing counts which is loaded
or kept on a first call.

`--modules` names what was entered, `--moves` who called whom in another module.

How it counts, on all threads, and only in the four parts:
  calls      functions entered; a coroutine or generator that goes on is not entered again
  functions  distinct ones with a name: lambdas and comprehensions are calls, and no functions
  modules    distinct files of those; the bodies of modules and classes are not counted
  moves      calls whose nearest caller in the package lies in another module; a call from outside
             (the event loop, a new thread) is none
  lines      of the files of those modules: what a reader opens to follow the road
  read       the share of these lines that lies in functions entered
  rooms      first parts of module paths; moves between rooms are counted likewise
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import cache
from inspect import CO_OPTIMIZED
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import anyio
import httpx2

from bench.clients import PROTOCOL
from bench.importing import generated
from pages import parts
from pdpp_mcp_server.commands.main import run
from personal_server.app.server import open_server
from personal_server.settings import Settings

PACKAGES = {str(folder) + os.sep: name for name, folder in parts.PACKAGES.items()}
ENTERED = 0  # what a RESUME instruction carries at the start of a function
ORIGIN = "http://127.0.0.1:7662"
RECORDS = "/v1/streams/messages/records?limit=3"
QUERY = {"name": "query_records", "arguments": {"stream": "messages", "limit": 3}}
MAILS = 9
WRITTEN_SECONDS = 0.5  # disclosures of earlier calls are written within
BEGINNINGS = frozenset(
    {
        "web/application:Application.__call__",
        "pdpp_mcp_server/server:Adapter.call_tool",
        "pdpp_mcp_server/commands/main:run",
    }
)
"""Where a road begins; what the server does by itself meanwhile is no part of one."""


@dataclass
class Road:
    """What was entered on one road."""

    name: str
    calls: int = 0
    functions: set[CodeType] = field(default_factory=set[CodeType])
    modules: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    moves: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    @property
    def rooms(self) -> list[str]:
        """In order of first entry."""
        return list(dict.fromkeys(map(room, self.modules)))

    @property
    def figures(self) -> tuple[int, ...]:
        """In the order of `HEADINGS`."""
        modules, rooms = len(self.modules), len(self.rooms)
        lines = sum(map(_line_count, {code.co_filename for code in self.functions}))
        between_rooms = sum(
            times for (caller, callee), times in self.moves.items() if room(caller) != room(callee)
        )
        moves = self.moves.total()
        read = round(100 * self._lines_read() / lines) if lines else 0
        return (self.calls, len(self.functions), modules, lines, read, moves, rooms, between_rooms)

    def _lines_read(self) -> int:
        """Lines from the first to the last of every function entered; each is counted once."""
        read = {(code.co_filename, line) for code in self.functions for line in range(*_span(code))}
        return len(read)

    def enter(self, code: CodeType, caller: CodeType | None) -> None:
        """Count one call."""
        module = module_of(code)
        self.calls += 1
        if not code.co_name.startswith("<"):
            self.functions.add(code)
        self.modules.setdefault(module, Counter())[code.co_qualname] += 1
        if caller is not None and module_of(caller) != module:
            self.moves[name_of(caller), name_of(code)] += 1

    def entered(self) -> str:
        """Every module in order of first entry, with the calls of its functions."""
        return "\n".join(
            f"  {module}: " + ", ".join(f"{name} {times}" for name, times in calls.most_common())
            for module, calls in self.modules.items()
        )

    def moved(self) -> str:
        """Every pair of functions in two modules, the most often called first."""
        return "\n".join(
            f"  {times:4}  {caller} > {callee}"
            for (caller, callee), times in self.moves.most_common()
        )


HEADINGS = (
    "road",
    "calls",
    "functions",
    "modules",
    "lines",
    "read %",
    "moves",
    "rooms",
    "moves between rooms",
)


@cache
def _line_count(file_name: str) -> int:
    return len(Path(file_name).read_text(encoding="utf-8").splitlines())


def _span(code: CodeType) -> tuple[int, int]:
    """The first line of a function, and the one behind its last."""
    lines = [line for _, _, line in code.co_lines() if line is not None]
    return code.co_firstlineno, max([code.co_firstlineno, *lines]) + 1


def module_of(code: CodeType) -> str:
    """The path of a module below the package, without its ending."""
    return parts.short_name(Path(code.co_filename)).removesuffix(".py")


def name_of(code: CodeType) -> str:
    """A function with the module that it stands in."""
    return f"{module_of(code)}:{code.co_qualname}"


def room(module: str) -> str:
    """The part of the package that a module belongs to."""
    return module.partition(os.sep)[0]


class Tracer:
    """Hears every call of every thread begun after it, and counts while a road is gone."""

    def __init__(self) -> None:
        self._road: Road | None = None
        threading.setprofile(self._hear)
        sys.setprofile(self._hear)

    def close(self) -> None:
        """Hear no more."""
        sys.setprofile(None)
        threading.setprofile(None)

    @contextlib.contextmanager
    def gone(self, road: Road) -> Generator[None, None, None]:
        """Count what happens meanwhile."""
        self._road = road
        try:
            yield
        finally:
            self._road = None

    def _hear(self, frame: FrameType, event: str, argument: object) -> None:
        del argument
        road = self._road
        if road is not None and event == "call" and ours(frame) and begins(frame):
            above = list(_above(frame))
            if name_of((above or [frame.f_code])[-1]) in BEGINNINGS:
                road.enter(frame.f_code, above[0] if above else None)


def ours(frame: FrameType) -> bool:
    """Whether a frame runs a function of the package."""
    code = frame.f_code
    return code.co_filename.startswith(tuple(PACKAGES)) and bool(code.co_flags & CO_OPTIMIZED)


def begins(frame: FrameType) -> bool:
    """Whether a frame is entered for the first time; not where a coroutine goes on."""
    return frame.f_lasti < 0 or frame.f_code.co_code[frame.f_lasti + 1] & 3 == ENTERED


def _above(frame: FrameType) -> Generator[CodeType]:
    """Functions of ours that a call came through, the nearest first."""
    above = frame.f_back
    while above is not None:
        if ours(above):
            yield above.f_code
        above = above.f_back


def main() -> None:
    """Go the roads and print what they entered."""
    options = _options()
    roads = measured()
    print(table(roads))
    for road in roads:
        if options.modules:
            print(f"\n{road.name}", road.entered(), sep="\n")
        if options.moves:
            print(f"\n{road.name}: moves", road.moved(), sep="\n")


def measured() -> list[Road]:
    """Every road, gone on an archive of a few mails."""
    tracer = Tracer()
    try:
        with tempfile.TemporaryDirectory(prefix="pdpp-roads-") as folder:
            return _measured(tracer, Path(folder))
    finally:
        tracer.close()


def _measured(tracer: Tracer, folder: Path) -> list[Road]:
    mails = list(islice(generated(MAILS), MAILS))
    importing = Road("pdpp import one.mbox")
    for name in ("first", "second"):
        _import(folder / name, mails[:1])
    with tracer.gone(importing):
        _import(folder / "data", mails[:1])
    _import(folder / "data", mails)
    token = _granted(folder / "cache")
    with open_server(Settings(data_dir=folder / "data")) as server:
        return [*anyio.run(_read, server.app, token, tracer), importing]


def _import(data: Path, mails: Sequence[bytes]) -> None:
    """Import a mailbox; commands that follow work on the same directory."""
    os.environ["PDPP_DATA_DIR"] = str(data)  # noqa: TID251 (commands run in this process)
    path = data.parent / "one.mbox"
    path.write_bytes(b"".join(mails))
    _pdpp("import", path)


def _granted(cache: Path) -> str:
    """The access token of a new grant of all mail."""
    named = ("--client", "bench roads", "--source", "mail", "--cache-root", cache)
    _pdpp("grant", "create", *named, "--yes")
    (kept,) = (cache / "clients").glob("*.json")
    return json.loads(kept.read_text(encoding="utf-8"))["credential"]["access_token"]


def _pdpp(*arguments: str | Path) -> None:
    """Run a command in this process, silently unless it fails."""
    words = [str(argument) for argument in arguments]
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        try:
            run(lambda: words)
        except SystemExit as ended:
            if not ended.code:
                return
    sys.exit(f"pdpp {' '.join(words)} failed: {told.getvalue()}")


async def _read(app: Any, token: str, tracer: Tracer) -> list[Road]:
    headers = {"Authorization": f"Bearer {token}", "MCP-Protocol-Version": PROTOCOL}
    headers["Accept"] = "application/json, text/event-stream"
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": QUERY}
    transport = httpx2.ASGITransport(app=app, client=("127.0.0.1", 1))
    names = (f"GET {RECORDS}", "POST /mcp query_records")
    roads: list[Road] = []
    async with _living(app), httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        client.headers.update(headers)
        calls: list[Callable[[], Any]] = [
            lambda: client.get(RECORDS),
            lambda: client.post("/mcp", json=message),
        ]
        for name, call in zip(names, calls, strict=True):
            for _ in range(2):
                _require_success(await call())
            await anyio.sleep(WRITTEN_SECONDS)
            roads.append(Road(name))
            with tracer.gone(roads[-1]):
                answer = await call()
            _require_success(answer)
    return roads


def _require_success(answer: httpx2.Response) -> None:
    if answer.status_code != 200 or '"isError":true' in answer.text:
        sys.exit(f"{answer.request.url} was answered with {answer.status_code}: {answer.text}")


@contextlib.asynccontextmanager
async def _living(app: Any) -> AsyncGenerator[None, None]:
    """The lifespan of an ASGI application."""
    ended, begun = anyio.Event(), anyio.Event()
    messages = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, str]:
        kind = next(messages)
        if kind == "lifespan.shutdown":
            await ended.wait()
        return {"type": kind}

    async def send(message: dict[str, Any]) -> None:
        del message
        begun.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app, {"type": "lifespan"}, receive, send)
        await begun.wait()
        yield
        ended.set()


def table(roads: Sequence[Road]) -> str:
    """One line for each road, aligned."""
    rows = [HEADINGS, *((road.name, *map(str, road.figures)) for road in roads)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])])
        for name, *cells in rows
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.roads", description=__doc__)
    parser.add_argument("--modules", action="store_true", help="list what was entered, in order")
    parser.add_argument("--moves", action="store_true", help="list who called whom elsewhere")
    return parser.parse_args()


if __name__ == "__main__":
    main()
