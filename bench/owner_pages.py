"""The owner's pages and lists on a server that was used for years.

Usage: python -m bench.owner_pages [GRANTS] [APPS] [SECONDS]

Fills a store with 20,000 records of 100 connections, GRANTS grants (10,000; every tenth in a
package of two; one with a history of years), APPS registered apps (100,000) and as many disclosures
as fit in SECONDS (120) of filling, then asks a real server for each page, its second page, its
first record and the lists of the command line. Beside the clock, which a busy machine stretches,
stands the processor time of a page; the bound is for the smaller of both.
"""

from __future__ import annotations

import hashlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

import httpx2
import orjson
from rich.console import Console

from bench.archive import COMMON_TERM, Collection, records
from bench.filling import connect, fill, ingest_lines
from bench.site import Running, Site
from personal_server.app.stores import Stores, open_stores
from personal_server.domain.disclosure import SERVED, DisclosureEntry
from personal_server.domain.values import DAY_NANOSECONDS
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.settings import Settings
from personal_server.storage.authorization import (
    AuditRow,
    AuthorizationRow,
    ClientRow,
    FamilyRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
    TokenRow,
)

BOUND_MS, BOUND_KB = 300, 100
RECORDS, CONNECTIONS, TIMES, BATCH = 20_000, 100, 7, 5_000
RENEWALS = 20_000
_PLACE = re.compile(r"^/~[^/]+")
PAGES = (
    "/owner/",
    "/owner/access",
    "/owner/access/ended",
    "/owner/access/{grant}",
    "/owner/clients",
    "/owner/clients/others",
    "/owner/sources",
    "/owner/sources/{mail}",
    "/owner/disclosures",
    "/owner/sign-ins",
    "/owner/canaries",
    "/owner/records",
    "/owner/records/{mail}/messages",
    "/owner/records/{mail}/messages?as=text",
    "/owner/search?q=" + COMMON_TERM,
    "/owner/access/{held}/records",
    "/owner/access/{held}/records/{bank}/transactions",
    "/owner/access/{held}/search?q=" + COMMON_TERM,
)
_ROW = re.compile(r'<th scope="row"><a href="([^"]+)"')


def accounts(stores: Stores, count: int) -> None:
    """More mailboxes, with a few messages each, until there are so many accounts."""
    declared = stores.catalogs().declarations.values()
    declaration = next(each for each in declared if each.connector_key == "bench_mail")
    few = Collection("A mailbox", "bench_mail", "messages", 1.0)
    for number in range(len(stores.catalogs().connections), count):
        lines = [orjson.dumps(each) for each in records(few, 5, number)]
        connection_id = connect(stores, declaration, f"Mailbox {number}")
        ingest_lines(stores, connection_id, declaration, "messages", lines)


def copies(stores: Stores, grants: int) -> Iterator[AuthorizationRow]:
    """A grant that was made here, again and again: a third has ended, some stand in packages."""
    with stores.authorization.read() as reader:
        made, client = reader.rows(GrantRow)[0], reader.rows(ClientRow)[0]
    now_ns = stores.clock()
    for number in range(grants):
        grant_id, at_ns = f"grt_bench{number}", made.issued_at_ns - number * 1_000_000_000
        app = f"local_app-{number % 500}"
        if number < 500:
            yield replace(client, client_id=app, client_ref=f"clr_{app}", name=f"App {number}")
        ended = "owner" if number % 3 == 0 else None
        revision = f"rv_{number - number % 2}" if number % 10 < 2 else f"rv_{number}"
        yield replace(
            made,
            grant_id=grant_id,
            client_id=app,
            issued_at_ns=at_ns,
            expires_at_ns=None,
            reason=ended,
            revoked_at_ns=ended and now_ns,
            revision=revision,
        )
        if number % 10 < 2:
            package_id = f"gpkg_bench{number - number % 2}"
            if number % 10 == 0:
                yield PackageRow(
                    package_id=package_id, client_id=app, created_at_ns=at_ns, revision=revision
                )
            yield PackageMemberRow(package_id=package_id, position=number % 10, grant_id=grant_id)
        yield token(grant_id, app, at_ns)
        yield family(grant_id, app, at_ns)
        for event in ("grant.created", "token.issued"):
            yield AuditRow(
                event=event, at_ns=at_ns, actor="owner", client_id=app, grant_id=grant_id
            )


def token(grant_id: str, app: str, at_ns: int, number: int = 0) -> TokenRow:
    """An access token of a grant."""
    return TokenRow(
        token_hash=hashlib.sha256(f"{grant_id} {number}".encode()).digest(),
        kind="client",
        client_id=app,
        grant_id=grant_id,
        origin="o",
        resource="r",
        scope="pdpp:read",
        issued_at_ns=at_ns + number,
        expires_at_ns=at_ns + DAY_NANOSECONDS,
        last_used_at_ns=at_ns,
    )


def family(grant_id: str, app: str, at_ns: int) -> FamilyRow:
    """What its tokens follow from."""
    return FamilyRow(
        family_id=f"fam_{grant_id}",
        kind="client",
        client_id=app,
        grant_id=grant_id,
        origin="o",
        resource="r",
        scope="pdpp:read",
        generation=4,
        last_used_at_ns=at_ns,
        idle_end_ns=at_ns + 90 * DAY_NANOSECONDS,
    )


def history(stores: Stores, grant_id: str) -> Iterator[AuthorizationRow]:
    """A grant that was renewed every hour for two years."""
    now_ns = stores.clock()
    for number in range(RENEWALS):
        yield AuditRow(
            event="refresh.rotated", at_ns=now_ns + number, actor="client", grant_id=grant_id
        )
        if number < 30 * 24:
            yield token(grant_id, "local_app-1", now_ns, number + 1)


def apps(count: int, now_ns: int) -> Iterator[ClientRow]:
    """Apps that asked and got nothing."""
    for number in range(count):
        yield ClientRow(
            client_id=f"https://app-{number}.example/client.json",
            client_ref=f"clr_bench{number}",
            registration="client_id_metadata_document",
            name=f"An app that asked, number {number}",
            redirect_uris=(f"https://app-{number}.example/callback",),
            registered_at_ns=now_ns - number * 1_000,
        )


def insert(stores: Stores, rows: Iterator[AuthorizationRow]) -> None:
    """Rows into the store, many in a transaction."""
    while batch := list(islice(rows, BATCH)):
        with stores.authorization.write() as writer:
            for row in batch:
                writer.insert(row)


def disclose(stores: Stores, grants: int, seconds: float) -> int:
    """Disclosures of half a year, until the time is over; how many."""
    now_ns, written, begin = stores.clock(), 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        first = now_ns - 180 * DAY_NANOSECONDS + written * 5_000_000_000
        batch = [read(written + n, min(first + n, now_ns), grants) for n in range(BATCH)]
        stores.disclosures.append_disclosures(batch)
        written += BATCH
    return written


def read(number: int, at_ns: int, grants: int) -> DisclosureEntry:
    """One read: most are of a few grants, some of the others."""
    holder = number % 3 if number % 100 else (number // 100) % grants
    return DisclosureEntry(
        disclosure_id=f"dis_{number}",
        subject_id="",
        at_ns=at_ns,
        request_id=f"req_{number}",
        outcome=SERVED,
        token_kind="client",  # noqa: S106 (a kind)
        client_id=f"local_app-{holder % 500}",
        grant_id=f"grt_bench{holder}",
        channel="mcp",
        tool="query_records",
        route="GET /v1/streams/{stream}/records",
        connector_key="mail",
        connection_id="cin_bench",
        stream="messages",
        fields=("id", "subject", "sent_at"),
        record_count=25,
        size_bytes=9_000,
    )


def sign_in(client: httpx2.Client, site: Site, link: str) -> None:
    """Make a client the owner's browser, at the place of its session."""
    page = client.get(f"/owner/enter?t={link}").text
    fields = dict(re.findall(r'name="([a-z_]+)" value="([^"]*)"', page))
    entered = client.post("/owner/enter", data=fields, headers={"Origin": site.origin})
    client.base_url = site.origin + _PLACE.findall(entered.headers["location"])[0]


def measure_pages(client: httpx2.Client, running: Running, places: Mapping[str, str]) -> bool:
    """A line for each page, its second page and its first record; whether all keep the bounds."""
    good = True
    for path in PAGES:
        page = ask(client, running, path.format(**places))
        further = re.search(r'href="([^"]+)">(?:Older|Further|More kinds)', page.text)
        row = _ROW.search(page.text) if path.endswith(("/messages", "/transactions")) else None
        others = ((" (page 2)", further), (" (a record)", row))
        found = [
            (path + which, ask(client, running, _PLACE.sub("", link[1].replace("&amp;", "&"))))
            for which, link in others
            if link is not None
        ]
        for name, each in ((path, page), *found):
            kept = (
                min(each.median_ms, each.processor_ms) < BOUND_MS
                and len(each.text) < BOUND_KB * 1_000
            )
            good = good and kept
            mark = "" if kept else "   PAST THE BOUND"
            kilobytes = len(each.text.encode()) / 1_000
            times = f"{each.median_ms:8.1f} ms {each.processor_ms:6.0f} ms of processor"
            print(f"{name:<62} {times} {kilobytes:8.1f} KB{mark}")
    return good


class Asked:
    """A page and how long it takes."""

    def __init__(self, text: str, times_ms: list[float], processor_ms: float) -> None:
        self.text, self.median_ms = text, statistics.median(times_ms)
        self.processor_ms = processor_ms


def ask(client: httpx2.Client, running: Running, path: str) -> Asked:
    """A page, several times."""
    times: list[float] = []
    before = running.processor_seconds
    text = ""
    for _ in range(TIMES):
        begin = time.perf_counter()
        answer = client.get(path)
        times.append((time.perf_counter() - begin) * 1_000)
        if answer.status_code != 200:
            sys.exit(f"{path} answered {answer.status_code}")
        text = answer.text
    processor_ms = (running.processor_seconds - before) * 1_000 / TIMES
    return Asked(text, times, processor_ms)


def measure_command(site: Site, *arguments: str) -> None:
    """How long a command takes, start included."""
    begin = time.perf_counter()
    done = subprocess.run(
        site.command("pdpp", *arguments), capture_output=True, text=True, check=True
    )
    seconds = time.perf_counter() - begin
    lines = done.stdout.count("\n")
    print(f"pdpp {' '.join(arguments):<31} {seconds:8.2f} s  {lines:8} lines")


def main() -> None:
    """Fill, serve, ask."""
    numbers = [int(each) for each in sys.argv[1:]]
    grants, registered, seconds = [*numbers, *(10_000, 100_000, 120)[len(numbers) :]]
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        filled = fill(site.data_dir, RECORDS, Console(quiet=True))
        site.grant("first", "--source", "bench_bank", "--stream", "transactions")
        with open_stores(Settings(data_dir=site.data_dir), serving=False) as stores:
            accounts(stores, CONNECTIONS)
            with stores.authorization.read() as reader:
                held = reader.rows(GrantRow)[0].grant_id
            places = {"grant": "grt_bench1", "held": held, "mail": filled.mail[0]}
            places["bank"] = next(
                each.connection_id
                for each in stores.catalogs().connections
                if each.connector_key == "bench_bank"
            )
            insert(stores, copies(stores, grants))
            insert(stores, history(stores, "grt_bench1"))
            insert(stores, apps(registered, stores.clock()))
            written = disclose(stores, grants, seconds)
        size = site.size_bytes / 1e6
        print(f"{grants:,} grants, {registered:,} apps, {written:,} disclosures: {size:,.0f} MB\n")
        good = look(site, places)
    sys.exit(0 if good else 1)


def look(site: Site, places: Mapping[str, str]) -> bool:
    """Every page and list; whether the pages keep the bounds."""
    with site.serving() as running:
        with open_stores(Settings(data_dir=site.data_dir), serving=False) as stores:
            owner = OwnerSignIn(stores.authorization, stores.clock, stores.random_bytes)
            link = owner.make_link()
        with httpx2.Client(base_url=site.origin, timeout=120) as client:
            sign_in(client, site, link)
            good = measure_pages(client, running, places)
        lists: tuple[tuple[str, ...], ...] = (
            ("grant", "list"),
            ("grant", "list", "--all", "--json"),
            ("disclosures",),
        )
        for arguments in lists:
            measure_command(site, *arguments)
    return good


if __name__ == "__main__":
    main()
