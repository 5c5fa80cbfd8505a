"""python -m server.tests.delivery kill [TIMES] | ingest [RECORDS [SUBSCRIPTIONS]]

`kill` ends a process that writes, queues, sends and notes by kill -9 at random points, and checks
that every change is announced and no bookmark goes backwards.  `ingest` measures what telling many
costs those who bring records: processor time beside the same without, and memory.
"""

from __future__ import annotations

import json
import os
import random
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from personal_server.app.server import DELIVERING_SECONDS
from personal_server.delivery import deliveries
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.deliveries import Deliveries
from personal_server.delivery.subscription_scopes import EVERYTHING
from personal_server.enforcement.queries import ChangesQuery, Selectors
from personal_server.reading.changes import follow
from personal_server.storage.authorization_rows import EventRow
from personal_server.storage.ports.snapshots import ChangeSignal
from server.tests.delivery.notes import A, furnish, grant_of, write
from server.tests.delivery.post_office import ACTING, NoSignal, PostOffice, post_office

QUICK_SECONDS = 0.2


class ManyCallers(ThreadingHTTPServer):
    """Takes as many calls at once as are on their way."""

    request_queue_size = 512
    daemon_threads = True


class Receivers:
    """A receiver on a port of this machine, that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        keeps = self.told

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if len(body) < length:
                    return  # its sender was killed
                event = json.loads(body)
                keeps.append(event)
                answer = json.dumps({"challenge": event["data"].get("challenge")}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self.server = ManyCallers(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server.server_port}/"


class Written:
    """A signal of what this process writes."""

    def __init__(self) -> None:
        self.count = 0
        self._told = threading.Condition()

    def tell(self) -> None:
        """Wake whoever waits."""
        with self._told:
            self.count += 1
            self._told.notify_all()

    def wait(self, last_seen: int, timeout_seconds: float) -> int:
        """As the port has it."""
        with self._told:
            self._told.wait_for(lambda: self.count > last_seen, timeout_seconds)
            return self.count


def real(office: PostOffice, signal: ChangeSignal | None = None) -> Deliveries:
    """Deliveries by the real clock and network, to this machine."""
    callbacks = Callbacks(to_loopback=True)
    office.clock = time.time_ns  # type: ignore[method-assign]
    return Deliveries(office.events, callbacks, signal or NoSignal(), time.time_ns)


# What is killed -------------------------------------------------------------------------------
def victim(folder: Path) -> None:
    """Write a note and do what is due, for ever; a number on standard output for each note."""
    deliveries.GATHERED_SECONDS = QUICK_SECONDS
    with post_office("sqlite", folder, random_bytes=secrets.token_bytes) as office:
        working = real(office)

        def writing() -> None:
            while True:
                office.now_ns = time.time_ns()
                key = f"n{office.now_ns}"
                write(office, key)
                try:
                    print(key, flush=True)
                except BrokenPipeError:
                    os._exit(0)  # whoever kills it is gone
                time.sleep(0.03)

        threading.Thread(target=writing, daemon=True).start()

        async def work() -> None:
            while True:
                await working.work()
                await anyio.sleep(0.01)

        anyio.run(work)


def kill(times: int, seed: int = 1) -> None:
    """Kill it so often; every note that was written has to be announced."""
    chance, receivers = random.Random(seed), Receivers()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with post_office("sqlite", folder, random_bytes=secrets.token_bytes) as office:
            office.now_ns = time.time_ns()
            furnish(office)
            holder = office.grant(grant_of("grt_app"))
            office.callbacks = Callbacks(to_loopback=True)
            object.__setattr__(office.subscriptions, "callbacks", office.callbacks)
            office.subscriptions.create(
                office.authority(holder), receivers.url, EVERYTHING, None, ACTING, office.now_ns
            )
            anyio.run(real(office).work)
        written: set[str] = set()
        for _ in range(times):
            process = subprocess.Popen(
                [sys.executable, "-m", "server.tests.delivery", "victim", name],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert process.stdout is not None
            written.add(process.stdout.readline().strip())
            time.sleep(chance.uniform(0.0, 1.0))
            process.send_signal(signal.SIGKILL)
            written |= {line for line in process.stdout.read().split("\n") if line}
        with post_office("sqlite", folder, random_bytes=secrets.token_bytes) as office:
            settle(office)
            check(office, receivers.told, written, holder)
    print(f"killed {times} times: {len(written)} changes, {len(receivers.told)} events")


def settle(office: PostOffice) -> None:
    """Let a last process tell what is left."""
    deliveries.GATHERED_SECONDS = QUICK_SECONDS
    working, until = real(office), time.monotonic() + 60

    async def work() -> None:
        quiet = 0
        while quiet < 10 and time.monotonic() < until:
            await working.work()
            await anyio.sleep(QUICK_SECONDS)
            quiet = 0 if office.queued() else quiet + 1

    anyio.run(work)


def check(office: PostOffice, told: list[dict[str, Any]], written: set[str], holder: Any) -> None:
    """From the bookmarks of all events together everything is read, and none goes backwards."""
    changed = [event for event in told if event["type"] == "pdpp.records.changed"]
    places: dict[str, int] = {}
    found: set[str] = set()
    last = -1
    with office.store.snapshot() as snapshot:
        reads = office.authority(holder)
        for event in changed:
            bookmark = event["data"]["changes_since"]
            query = ChangesQuery("notes", Selectors(A), limit=100, changes_since=bookmark)
            keys: list[str] = []
            page = follow(office.ports, snapshot, reads, query)
            while True:
                keys += [json.loads(bytes(item))["id"] for item in page.data]  # type: ignore[attr-defined]
                if page.next_cursor is None:
                    break
                page = follow(
                    office.ports,
                    snapshot,
                    reads,
                    ChangesQuery("notes", Selectors(A), limit=100, cursor=page.next_cursor),
                )
            found |= set(keys)
            # the further a bookmark stands, the fewer items there are behind it
            places.setdefault(event["id"], len(keys))
            assert last < 0 or len(keys) <= last, "a bookmark went backwards"
            last = len(keys)
    missing = written - found
    assert not missing, f"{len(missing)} changes were never announced"


# What it costs --------------------------------------------------------------------------------
def ingest(records: int, subscriptions: int) -> None:
    """Records in batches of 500, without and with so many who are told, in turn."""
    bare, told = measured(records, 0), measured(records, subscriptions)
    ratio = told["used"] / bare["used"]
    for name, each in (("without", bare), (f"with {subscriptions} subscriptions", told)):
        print(
            f"{records} records {name}: {each['seconds']:.1f} s, {each['used']:.1f} s of a"
            f" processor, {each['events']:.0f} events kept, at most {each['mib']:.0f} MiB"
        )
    print(f"processor time {(ratio - 1) * 100:+.1f} %")


def measured(records: int, subscriptions: int) -> dict[str, float]:
    """In a process of its own: what one left behind is not the other's."""
    words = [
        sys.executable,
        "-m",
        "server.tests.delivery",
        "measure",
        str(records),
        str(subscriptions),
    ]
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)


def measure(records: int, subscriptions: int) -> dict[str, float]:
    """What so many records cost."""
    with (
        receiving() as url,
        tempfile.TemporaryDirectory() as name,
        post_office("sqlite", Path(name)) as office,
    ):
        office.now_ns = time.time_ns()
        furnish(office)
        object.__setattr__(office.subscriptions, "callbacks", Callbacks(to_loopback=True))
        for number in range(subscriptions):
            holder = office.grant(grant_of(f"grt_{number}"))
            office.subscriptions.create(
                office.authority(holder), url, EVERYTHING, None, ACTING, office.now_ns
            )
        signal = Written()
        working = real(office, signal)
        anyio.run(working.work)
        took: list[float] = []
        before = time.process_time()

        def bring() -> None:
            begin = time.perf_counter()
            for start in range(0, records, 500):
                office.now_ns = time.time_ns()
                write(office, *(f"n{n}" for n in range(start, start + 500)))
                signal.tell()
            took.append(time.perf_counter() - begin)

        async def both() -> None:
            async with anyio.create_task_group() as group:

                async def work() -> None:
                    while True:
                        await working.work()
                        await anyio.sleep(DELIVERING_SECONDS)

                group.start_soon(work)
                await anyio.to_thread.run_sync(bring)
                group.cancel_scope.cancel()

        anyio.run(both)
        mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        used = time.process_time() - before
        with office.authorization.read() as reader:
            events = reader.count(EventRow, EventRow.type.equals("pdpp.records.changed"))
        return {"seconds": took[0], "used": used, "events": float(events), "mib": mib}


@contextmanager
def receiving() -> Generator[str, None, None]:
    """A receiver in a process of its own, so that what it costs is not counted; where it is."""
    words = [sys.executable, "-m", "server.tests.delivery", "receiver"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def main(words: list[str]) -> None:
    """Run one of them."""
    match words:
        case ["receiver"]:
            print(Receivers().url, flush=True)
            threading.Event().wait()
        case ["victim", folder]:
            victim(Path(folder))
        case ["measure", records, subscriptions]:
            print(json.dumps(measure(int(records), int(subscriptions))))
        case ["kill", *more]:
            kill(int(more[0]) if more else 60)
        case ["ingest", *more]:
            ingest(int((more or ["100000"])[0]), int((more[1:] or ["100"])[0]))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
