"""`python -m bench.fed_calendar PYTHON radicale|xandikos [--edits N]`: calendars in a feed.

PYTHON is that of an environment of its own in which the server lies, as its newest release or any
other; `pdpp` runs as processes.  Random edits (new, change, delete, move, a calendar made anew)
come in bursts; in each burst runs are cut off by a wire and killed with signal 9.  Then `pdpp feed
check` has to find no difference, and a counter that knows nothing of feeds (what the server lists,
`pdpp export` on the other side) the same events.  It ends with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.fed_mailbox import BURST, Owner, Wire
from bench.site import Site
from tests.ports import free_port
from tests.processes import started, stop
from tests.radicale_server import PASSWORD, answers, configured

USER, FEED = "user", "calendars"
_MAKE = """<?xml version="1.0"?>
<c:mkcalendar xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">
<d:set><d:prop><d:displayname>{name}</d:displayname></d:prop></d:set></c:mkcalendar>"""


@dataclass
class CalendarOwner(Owner):
    """The owner at a terminal, with the feed of an account of calendars."""

    feed: str = FEED

    def follow(self, *options: str) -> None:
        """Add the account."""
        url = f"http://127.0.0.1:{self.wire.port}/"
        self.pdpp(
            "feed",
            "add-calendar",
            url,
            "--user",
            USER,
            "--name",
            FEED,
            *options,
            typed=f"{PASSWORD}\n",
        )


@dataclass
class CalendarServer:
    """One that runs, and what its owner's own program asks of it."""

    port: int
    base: str

    def send(self, method: str, path: str, body: str = "", depth: str = "0") -> bytes:
        """A request of its owner."""
        signed = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        kind = "text/calendar" if method == "PUT" else "application/xml"
        headers = {"Authorization": f"Basic {signed}", "Content-Type": kind, "Depth": depth}
        try:
            wire.request(method, self.base + path, body.encode(), headers)
            response = wire.getresponse()
            content = response.read()
        finally:
            wire.close()
        if response.status >= 300:
            sys.exit(f"{method} {path}: {response.status} {content[:300]!r}")
        return content


@contextmanager
def calendar_server(python: str, program: str, folder: Path) -> Generator[CalendarServer]:
    """A server with one account."""
    port = free_port()
    folder.mkdir()
    if program == "radicale":
        words = [python, "-m", "radicale", "--config", str(configured(folder, port, USER))]
        base = f"/{USER}/"
    else:
        words = [python, "-m", "xandikos", "serve", "-d", str(folder / "dav"), "--defaults"]
        words += ["-l", "127.0.0.1", "-p", str(port), "--state-dir", str(folder / "state")]
        base = "/user/calendars/"
    process = started(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not answers(port):
            sys.exit(f"{program} does not answer")
        yield CalendarServer(port, base)
    finally:
        stop(process, signal.SIGTERM)


@dataclass
class Calendars:
    """The calendars as their owner changes them."""

    server: CalendarServer
    draw: random.Random
    events: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    written: int = 0
    changes: int = 0
    done: dict[str, int] = field(default_factory=dict[str, int])

    def make(self, name: str) -> None:
        """A calendar."""
        self.server.send("MKCALENDAR", f"{name}/", _MAKE.format(name=name.title()))
        self.events.setdefault(name, {})

    def edit(self) -> None:
        """Do one thing."""
        acts = [self.write] * 6 + [self.change] * 5 + [self.delete] * 3 + [self.move] * 3
        acts += [self.make_anew] if self.draw.random() < 0.2 else []
        act = self.draw.choice(acts)
        act()
        self.done[act.__name__] = self.done.get(act.__name__, 0) + 1

    def write(self) -> None:
        """A new event."""
        self.written += 1
        self._put(self.draw.choice(list(self.events)), f"event-{self.written}")

    def _put(self, name: str, uid: str) -> None:
        self.changes += 1
        day, hour = self.draw.randrange(1, 29), self.draw.randrange(8, 18)
        text = "\r\n".join(
            (
                "BEGIN:VCALENDAR",
                "VERSION:2.0",
                "PRODID:-//bench//EN",
                "BEGIN:VEVENT",
                f"UID:{uid}",
                "DTSTAMP:20230101T000000Z",
                f"DTSTART:202303{day:02}T{hour:02}0000Z",
                f"DTEND:202303{day:02}T{hour:02}3000Z",
                f"SUMMARY:{uid} as of {self.changes}",
                "END:VEVENT",
                "END:VCALENDAR",
                "",
            )
        )
        self.server.send("PUT", f"{name}/{uid}.ics", text)
        self.events[name][uid] = text

    def _one(self) -> tuple[str, str] | None:
        there = [(name, uid) for name, events in self.events.items() for uid in events]
        return self.draw.choice(there) if there else None

    def change(self) -> None:
        """An event is another from then on."""
        if one := self._one():
            self._put(*one)

    def delete(self) -> None:
        """An event less."""
        if one := self._one():
            self.delete_at(*one)

    def move(self) -> None:
        """To another calendar."""
        if one := self._one():
            name, uid = one
            other = self.draw.choice([each for each in self.events if each != name])
            self.delete_at(name, uid)
            self._put(other, uid)

    def delete_at(self, name: str, uid: str) -> None:
        """One that is named."""
        self.server.send("DELETE", f"{name}/{uid}.ics")
        del self.events[name][uid]

    def make_anew(self) -> None:
        """A calendar of the same name with other events."""
        name = self.draw.choice(list(self.events))
        kept = list(self.events[name])[::2]
        self.server.send("DELETE", f"{name}/")
        self.events[name] = {}
        self.make(name)
        for uid in kept:
            self._put(name, uid)

    def there(self) -> set[str]:
        """What the server lists, by its own titles."""
        found: set[str] = set()
        for name in self.events:
            listed = self.server.send("PROPFIND", f"{name}/", depth="1").decode()
            for path in set(re.findall(r"[\w%./-]+\.ics", listed)):
                text = self.server.send("GET", f"{name}/{path.rpartition('/')[2]}").decode()
                found.update(re.findall(r"SUMMARY:(.+?)\r?\n", text))
        return found


def main() -> int:
    """1 where anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("python")
    parser.add_argument("server", choices=("radicale", "xandikos"))
    parser.add_argument("--edits", type=int, default=1_000)
    options = parser.parse_args()
    draw, faults, cuts, kills = random.Random(35), 0, 0, 0
    with (
        tempfile.TemporaryDirectory(prefix="bench-dav-") as name,
        calendar_server(options.python, options.server, Path(name) / "server") as server,
    ):
        calendars = Calendars(server, draw)
        for each in ("work", "home", "trips"):
            calendars.make(each)
        for _ in range(100):
            calendars.write()
        owner = CalendarOwner(Site(Path(name) / "site"), Wire(server.port))
        owner.follow("--deletions", "follow")
        for begin in range(0, options.edits, BURST):
            for part in range(4):
                for _ in range(BURST // 4):
                    calendars.edit()
                if part % 2:
                    owner.wire.left = draw.randrange(300, 40_000)
                    cuts += owner.run()["code"] is not None
                    owner.wire.left = None
                else:
                    owner.killed(draw.uniform(0.8, 5.0))
                    kills += 1
            codes = [owner.run()["code"] for _ in range(3)]
            checked = owner.pdpp("feed", "check", FEED)
            there = calendars.there()
            here = {
                str(data.get("title") or data.get("summary"))
                for (stream, _), data in owner.records().items()
                if stream == "events"
            }
            wrong = len(checked["differences"]) + len(there ^ here)
            faults += wrong
            print(
                f"{begin + BURST} edits, {cuts} cuts, {kills} kills: {len(there)} events there,"
                f" {len(here)} here; check: {len(checked['differences'])} differences; wrong:"
                f" {wrong} (the last runs: {codes})",
                flush=True,
            )
            if wrong:
                print(checked["differences"][:5], sorted(there ^ here)[:6], flush=True)
    print(f"edits: {calendars.done}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
