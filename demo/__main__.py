"""`make demo`: a real mailbox and a real bank statement go in, an agent reads a slice of them."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import anyio

from bench.samples import Sample, mailbox, statement
from demo.agent import Agent, over_http, over_stdio
from demo.receiver import Receiver
from demo.story import Story
from tests.ports import free_port
from tests.postgresql import server
from tests.processes import started, stop

MAIL_FIELDS = ("id", "sent_at", "subject", "from_name", "from_address", "body")
LEFT_OUT = "to"
STARTING_SECONDS = (
    120  # a small machine that is busy with something else starts a server in a minute
)


def main() -> int:
    """Tell the whole story; the exit code says whether it went as it should."""
    story = Story()
    begin = monotonic()
    with tempfile.TemporaryDirectory(prefix="pdpp-demo-") as folder:
        home = Home(Path(folder), free_port(), story, database(sys.argv[1:]))
        story.chapter("1  Your records go in", "Two real exports that come with registry packages.")
        for sample, name in ((mailbox(), "Mailing lists"), (statement(), "Checking account")):
            take_in(home, sample, name)
        story.chapter(
            "2  You grant a slice",
            f"Mail of 2002 from September on without its recipients ({LEFT_OUT!r}), and payments "
            "without account numbers; for one agent, for 30 days.",
        )
        home.pdpp(
            "grant",
            "create",
            "--client",
            "Demo agent",
            "--from",
            selection(home),
            "--expires",
            "30d",
            "--cache-root",
            home.cache,
            "--yes",
        )
        with home.serving():
            anyio.run(converse, home, story)
            story.chapter(
                "5  A mail arrives, and an app is told",
                "It gets a signed hint without a word of the mail, and reads what is new itself.",
            )
            be_told(home, story)
            story.chapter(
                "6  A mailbox keeps itself current",
                "A Maildir, as mail servers and programs keep mail; the server watches it.",
            )
            follow_mailbox(home, story)
            story.chapter(
                "7  You see what was read, and can end it", "The log never says what it said."
            )
            home.pdpp("disclosures", "--limit", "6")
            end(home)
    story.ending(ENDING.format(seconds=monotonic() - begin))
    return 0


ENDING = """[bold]Done[/]: everything ran in {seconds:.0f} seconds.

Next, with your own data:
  [green]make install[/]                         puts [bold]pdpp[/] into .venv/bin
  [green]export PATH="$PWD/.venv/bin:$PATH"[/]   so that it is found from every folder
  [green]pdpp sources[/]                         what can be imported, and how to get each export
  [green]pdpp import FILE[/]                     safe to repeat, safe to interrupt
  [green]pdpp serve[/]                           opens your browser; a command per host"""


def database(arguments: Sequence[str]) -> list[str]:
    """The settings that name where records are kept: nothing for the file in the data directory."""
    return [f"PDPP_DATABASE_URL={server().url()}"] if list(arguments) == ["postgresql"] else []


class Home:
    """The owner's machine of the demo: a data directory, a cache, a port."""

    def __init__(self, folder: Path, port: int, story: Story, database: Sequence[str]) -> None:
        self.folder, self.story = folder, story
        self.origin = f"http://127.0.0.1:{port}"
        self.cache = folder / ".pdpp"
        self._bin = Path(sysconfig.get_path("scripts"))
        self._env = [
            "/usr/bin/env",
            f"PDPP_DATA_DIR={folder / 'data'}",
            f"PDPP_BIND=127.0.0.1:{port}",
            "PDPP_DEV_LOOPBACK_CALLBACKS=1",
            *database,
        ]

    @property
    def adapter(self) -> Path:
        """The stdio adapter as hosts start it."""
        return self._bin / "pdpp-mcp-server"

    def pdpp(self, *arguments: str | Path) -> str:
        """Run a command, show it and what it said; end the demo if it failed."""
        shown = [Path(a).name if isinstance(a, Path) else a for a in arguments]
        self.story.command(" ".join(["pdpp", *(f'"{a}"' if " " in a else a for a in shown)]))
        done = self._run(*arguments)
        self.story.output(done.stdout or done.stderr)
        if done.returncode:
            self.story.output(done.stderr)
            sys.exit(f"pdpp {arguments[0]} ended with {done.returncode}")
        return done.stdout

    def quietly(self, *arguments: str) -> str:
        """Run a command that is no part of the story."""
        return self._run(*arguments).stdout

    def _run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._env, str(self._bin / "pdpp"), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )

    @contextmanager
    def serving(self) -> Generator[None, None, None]:
        """The server, ready, until the block ends."""
        self.story.command("pdpp serve &")
        log = (self.folder / "serve.log").open("w+")
        process = started([*self._env, self._bin / "pdpp", "serve"], stdout=log, stderr=log)
        try:
            begin = monotonic()
            while not self._answers():
                if process.poll() is not None or monotonic() - begin > STARTING_SECONDS:
                    log.seek(0)
                    sys.exit(f"the server did not start:\n{log.read()}")
                sleep(0.05)
            self.story.remark(f"ready at {self.origin} after {monotonic() - begin:.1f} s")
            yield
        finally:
            stop(process)
            log.close()

    def _answers(self) -> bool:
        host, _, port = self.origin.removeprefix("http://").partition(":")
        connection = HTTPConnection(host, int(port), timeout=2)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


def take_in(home: Home, sample: Sample, name: str) -> None:
    """Import one export, and say where it comes from."""
    home.pdpp("import", sample.path, "--connection", name)
    home.story.remark(f"from {sample.title}")


def selection(home: Home) -> Path:
    """The selection of the grant, as a file of `authorization_details`."""
    details = [
        _entry("mail", "messages", list(MAIL_FIELDS), {"since": "2002-09-01"}),
        _entry(
            "bank",
            "transactions",
            [
                "id",
                "account_id",
                "posted_on",
                "payee",
                "memo",
                "amount",
                "amount_minor",
                "currency",
                "direction",
            ],
            None,
        ),
    ]
    path = home.folder / "selection.json"
    path.write_text(json.dumps(details), encoding="utf-8")
    return path


def _entry(
    connector: str, stream: str, fields: list[str], time_range: dict[str, str] | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"name": stream, "fields": fields}
    return {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": f"https://registry.pdpp.dev/connectors/{connector}"},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [row | ({"time_range": time_range} if time_range else {})],
        "events": True,
    }


async def converse(home: Home, story: Story) -> None:
    """Let the agent work through both doors."""
    story.chapter(
        "3  An agent asks, over stdio", "The official MCP client, through pdpp-mcp-server."
    )
    async with over_stdio(home.adapter, home.cache, story) as agent:
        story.remark(f"tools: {', '.join(await agent.tools())}")
        await read_mail(agent, story)
    story.chapter("4  The same agent, over HTTP", f"The same grant at {home.origin}/mcp.")
    async with over_http(f"{home.origin}/mcp", cached_token(home), story) as agent:
        await read_bank(agent, story)


ARRIVING = """From anna@example.com Tue Oct  1 09:00:00 2002
From: Anna <anna@example.com>
To: you@example.com
Date: Tue, 1 Oct 2002 09:00:00 +0000
Message-ID: <demo-1@example.com>
Subject: Dinner on Friday?

Shall we say eight?
"""


DELIVERED = """From: Bob <bob@example.com>
To: you@example.com
Date: Thu, 3 Oct 2002 18:30:00 +0000
Message-ID: <demo-2@example.com>
Subject: Re: Dinner on Friday?

Eight is fine. I have asked for the table on the balcony.
"""


def mail_connection(home: Home) -> str:
    """The account that mail was imported to."""
    found = json.loads(home.quietly("receipts", "--json"))["receipts"]
    connections = [each["connection"] for each in found]
    return next(each["connection_id"] for each in connections if each["name"] == "Mailing lists")


def be_told(home: Home, story: Story) -> None:
    """One event, from an import to an answer."""
    token, port, told = cached_token(home), free_port(), queue.Queue[Any]()
    connection_id = mail_connection(home)
    receiver = Receiver(home.origin, token, port, told.put, connection_id)
    threading.Thread(target=receiver.server.serve_forever, daemon=True).start()
    story.remark(f"subscribed: {receiver.made['subscription_id']} at http://127.0.0.1:{port}/")
    until = monotonic() + STARTING_SECONDS
    while receiver.status() != "active":
        if monotonic() > until:
            sys.exit("the receiver was not asked to answer its challenge")
        sleep(0.1)
    story.remark("its challenge is answered")
    path = home.folder / "arriving.mbox"
    path.write_text(ARRIVING, encoding="utf-8")
    begin = monotonic()
    home.pdpp("import", path, "--connection", "Mailing lists")
    item = told.get(timeout=STARTING_SECONDS)
    story.remark(f"told after {monotonic() - begin:.1f} s; what is new: {item['data']['subject']}")
    receiver.server.shutdown()
    home.pdpp("subscription", "list")


def follow_mailbox(home: Home, story: Story) -> None:
    """A Maildir is watched, a mail is delivered into it as a mail server does, the agent reads it.

    Sources: https://cr.yp.to/proto/maildir.html (written in `tmp`, renamed into `new`).
    """
    box = home.folder / "Maildir"
    for part in ("cur", "new", "tmp"):
        (box / part).mkdir(parents=True)
    home.pdpp("feed", "add", box, "--connection", "Mailing lists")
    until = monotonic() + STARTING_SECONDS
    while not json.loads(home.quietly("feed", "list", "--json"))[0]["last_success"]:
        if monotonic() > until:
            sys.exit("the server did not look at the mailbox")
        sleep(0.2)
    (box / "tmp" / "1.demo").write_text(DELIVERED, encoding="utf-8")
    (box / "tmp" / "1.demo").rename(box / "new" / "1.demo")
    begin = monotonic()
    story.remark("Bob's mail was delivered. The server looks every minute; this looks now:")
    home.pdpp("feed", "run", "Maildir")
    anyio.run(read_delivered, home, story)
    story.remark(f"read by the agent {monotonic() - begin:.1f} s after its delivery")
    home.pdpp("feed", "check", "Maildir")


async def read_delivered(home: Home, story: Story) -> None:
    """Ask as the agent whether Bob wrote."""
    async with over_http(f"{home.origin}/mcp", cached_token(home), story) as agent:
        hits = await agent.ask("Did Bob write back?", "search", {"query": "from:Bob balcony"})
        if not hits.structured["results"]:
            sys.exit("the agent did not see the mail")


def end(home: Home) -> None:
    """End what was granted, and ask as the agent what is left of it."""
    (held,) = json.loads(home.quietly("grant", "list", "--json"))
    home.pdpp("grant", "revoke", held["id"])
    home.pdpp("status", "--cache-root", home.cache)
    home.story.remark("With the next request the agent reads nothing more.")


def cached_token(home: Home) -> str:
    """The access token that `pdpp grant create` cached."""
    [credential] = (home.cache / "clients").glob("*.json")
    return json.loads(credential.read_text(encoding="utf-8"))["credential"]["access_token"]


async def read_mail(agent: Agent, story: Story) -> None:
    """Discover, search, fetch, read on; then ask for what was left out."""
    schema = await agent.ask("What may I read?", "schema", {})
    connections = {
        row["connector_key"]: connection["connection_id"]
        for row in schema.structured["data"]["connectors"]
        for connection in row.get("granted_connections") or row["streams"][0]["granted_connections"]
    }
    hits = await agent.ask(
        "Who wrote about a new kernel release?", "search", {"query": "kernel release", "limit": 3}
    )
    first = hits.structured["results"][0]["id"]
    await agent.ask("Show me the first one.", "fetch", {"id": first})
    window = {"id": first, "field_path": "body", "limit_chars": 400}
    part = await agent.ask("Only a part of its text, please.", "read_record_field", window)
    if following := part.structured["window"].get("next_cursor"):
        window = {"id": first, "field_path": "body", "cursor": following}
        await agent.ask("And on.", "read_record_field", window)
    mail = {"stream": "messages", "connection_id": connections["mail"]}
    await agent.ask(
        "And who received these mails?",
        "query_records",
        {**mail, "fields": [LEFT_OUT]},
        refused=True,
    )
    story.remark("The owner left the recipients out, so they do not exist for this agent.")
    await agent.ask(
        "How many mails are older than September 2002?",
        "query_records",
        {**mail, "filter": {"sent_at": {"lt": "2002-09-01"}}, "count": "exact"},
    )
    story.remark("They are in the store; outside the slice there is nothing.")


async def read_bank(agent: Agent, story: Story) -> None:
    """Count, sum by month, list."""
    schema = await agent.ask("What do payments look like?", "schema", {"stream": "transactions"})
    [connector] = schema.structured["data"]["connectors"]
    [connection] = (
        connector.get("granted_connections") or connector["streams"][0]["granted_connections"]
    )
    bank = {"stream": "transactions", "connection_id": connection["connection_id"]}
    await agent.ask(
        "What went in and out, by month?",
        "aggregate",
        {
            **bank,
            "metric": "sum",
            "field": "amount",
            "group_by_time": "posted_on",
            "granularity": "month",
        },
    )
    await agent.ask("The three latest, please.", "query_records", {**bank, "limit": 3})
    story.remark("Each face of a result is complete on its own, bounded, and names the next step.")


if __name__ == "__main__":
    sys.exit(main())
