"""The owner's pages and lists on a server that was used for years.

Fills a store with 20,000 records of 100 connections, 10,000 grants (every tenth in a package of
two; one with a history of years), 100,000 registered apps and 3,000,000 lines in the log of
disclosures over a year, those of the last month with what was asked, then asks a real server for
each page, its second page, its first record and the lists of the command line.  Beside the clock,
which a busy machine stretches, stands the processor time of a page; the bound is for the smaller of
both.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import httpx2
import orjson
from msgspec.structs import replace
from rich.console import Console

from bench.archive import COLLECTIONS, COMMON_TERM, Collection, records
from bench.filling import connect, fill, ingest_lines
from bench.site import STORES, Running, Site, database
from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.app.stores import Stores, open_stores
from personal_server.domain.disclosure import SERVED, AskedDetail, DisclosureEntry
from personal_server.granting.audit import Acting
from personal_server.granting.grant_changes import GrantChanges
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.settings import Settings
from personal_server.storage.authorization_rows import (
    AuditRow,
    AuthorizationRow,
    ClientRow,
    FamilyRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
    RequestRow,
    TokenRow,
)
from personal_server.storage.ports.disclosure_stores import DisclosureQuery

BOUND_MS, BOUND_KB = 300, 100
RECORDS, CONNECTIONS, TIMES, BATCH = 20_000, 100, 7, 5_000
MAILS = int(RECORDS * COLLECTIONS[0].share)
YEAR_NS, DETAILED_NS, KEYS_A_READ = 365 * DAY_NANOSECONDS, 30 * DAY_NANOSECONDS, 25
RENEWALS = 20_000
ASKED: list[dict[str, object]] = [
    {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": "https://bench.example/connectors/bench_mail"},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [{"name": "messages"}],
    }
]
_PLACE = re.compile(r"^/~[^/]+")
PAGES = (
    "/owner/",
    "/owner/access",
    "/owner/access/ended",
    "/owner/access/{grant}",
    "/owner/clients",
    "/owner/clients/others",
    "/owner/days",
    "/owner/people",
    "/owner/sources/{mail}",
    "/owner/uploads",
    "/owner/uploads/exports",
    "/owner/disclosures",
    "/owner/disclosures?client=local_app-1&stream=messages",
    "/owner/disclosures/{line}",
    "/owner/sign-ins",
    "/owner/canaries",
    "/owner/records",
    "/owner/records/{mail}/messages",
    "/owner/records/{mail}/messages/m00000010",
    "/owner/records/{mail}/messages?as=table",
    "/owner/records/{mail}/messages?as=text",
    "/owner/search?q=" + COMMON_TERM,
    "/owner/access/{held}/records",
    "/owner/access/{held}/records/{bank}/transactions",
    "/owner/access/{held}/search?q=" + COMMON_TERM,
    "/consent/{asked}",
    "/owner/requests/{asked}/records",
    "/consent/{picker}",
    "/consent/{change}",
    "/device",
)
_ROW = re.compile(r'(?:<th scope="row">|<span class="what">)<a href="([^"]+)"')


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
            yield dataclasses.replace(
                client, client_id=app, client_ref=f"clr_{app}", name=f"App {number}"
            )
        ended = "owner" if number % 3 == 0 else None
        revision = f"rv_{number - number % 2}" if number % 10 < 2 else f"rv_{number}"
        yield dataclasses.replace(
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


def disclose(stores: Stores, grants: int, count: int, mail: str) -> None:
    """So many lines, spread over the year before now."""
    now_ns = stores.clock()
    numbers = iter(range(1, count + 1))
    while batch := list(islice(numbers, BATCH)):
        times_ns = (now_ns - (count - number) * (YEAR_NS // count) for number in batch)
        lines = (read(n, at_ns, grants, mail) for n, at_ns in zip(batch, times_ns, strict=True))
        young = now_ns - DETAILED_NS
        stores.disclosures.append_disclosures(
            [
                asked(n, line) if line.at_ns > young else line
                for n, line in zip(batch, lines, strict=True)
            ]
        )


def asked(number: int, line: DisclosureEntry) -> DisclosureEntry:
    """The line with what was asked, and the keys that were handed out."""
    first = number * KEYS_A_READ % (MAILS - KEYS_A_READ)
    keys = tuple(f"m{first + n:08d}" for n in range(KEYS_A_READ))
    path = f"/v1/streams/messages/records?limit={KEYS_A_READ}"
    return replace(line, detail=AskedDetail(number.to_bytes(32, "big"), path, keys))


def read(number: int, at_ns: int, grants: int, mail: str) -> DisclosureEntry:
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
        connector_key="bench_mail",
        connection_id=mail,
        stream="messages",
        fields=("id", "subject", "sent_at"),
        record_count=KEYS_A_READ,
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
            kilobytes = len(each.text.encode()) / 1_000
            kept = min(each.median_ms, each.processor_ms) < BOUND_MS and kilobytes < BOUND_KB
            good = good and kept
            mark = "" if kept else "   PAST THE BOUND"
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


def fill_years(site: Site, options: argparse.Namespace) -> None:
    """Everything that the pages are asked about."""
    filled = fill(site.data_dir, RECORDS, Console(quiet=True), site.database_url)
    site.grant("first", "--source", "bench_bank", "--stream", "transactions")
    with open_stores(settings_of(site), serving=False) as stores:
        accounts(stores, CONNECTIONS)
        insert(stores, copies(stores, options.grants))
        insert(stores, history(stores, "grt_bench1"))
        insert(stores, apps(options.apps, stores.clock()))
        disclose(stores, options.grants, options.lines, filled.mail[0])


def settings_of(site: Site) -> Settings:
    """As the commands of a site have them."""
    return Settings(data_dir=site.data_dir, database_url=site.database_url)


def places_of(stores: Stores, origin: str) -> dict[str, str]:
    """What stands in the paths of pages; requests are made anew."""
    accounts = {each.display_name: each.connection_id for each in stores.catalogs().connections}
    with stores.authorization.read() as reader:
        (held,) = [row.grant_id for row in reader.rows(GrantRow) if "bench" not in row.grant_id]
    ((line, _),) = stores.disclosures.disclosures(DisclosureQuery(1))
    changes = GrantChanges(stores.authorization, stores.clock, stores.random_bytes)
    return {
        "grant": "grt_bench1",
        "held": held,
        "mail": accounts["Home mail"],
        "bank": accounts["Bank"],
        "line": str(line),
        "change": changes.begin(held, Acting("owner", "req_bench", None)),
        "asked": request(stores, origin, ASKED),
        "picker": request(stores, origin, None),
    }


def request(stores: Stores, origin: str, details: list[dict[str, object]] | None) -> str:
    """An app that asks for a source, or lets the owner choose; the handle."""
    now_ns = stores.clock()
    row = RequestRow(
        request_id=f"ar_bench{now_ns}",
        flow="device",
        client_id="local_app-1",
        origin=origin,
        resource=f"{origin}/mcp",
        scope="pdpp:read offline_access",
        details=details,
        picker=details is None,
        created_at_ns=now_ns,
        expires_at_ns=now_ns + DAY_NANOSECONDS,
    )
    with stores.authorization.write() as writer:
        writer.insert(row)
    return row.request_id


def main() -> int:
    """Fill, serve, ask; 1 when a page is past a bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, size in (("grants", 10_000), ("apps", 100_000), ("lines", 3_000_000)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--store", choices=STORES)
    parser.add_argument(
        "--kept", type=Path, help="fill this folder, or ask what it was filled with"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pdpp-bench-") as made, database(options.store) as url:
        folder = options.kept or Path(made)
        is_filled = (folder / "data").exists()
        site = Site(folder, database_url=url)
        begin = time.perf_counter()
        if not is_filled:
            fill_years(site, options)
        size = f"{options.grants:,} grants, {options.apps:,} apps, {options.lines:,} disclosures"
        print(f"{size}: {site.size_bytes / 1e6:,.0f} MB in {time.perf_counter() - begin:.0f} s\n")
        return 0 if look(site) else 1


def look(site: Site) -> bool:
    """Every page and list; whether the pages keep the bounds."""
    with site.serving() as running:
        with open_stores(settings_of(site), serving=False) as stores:
            places = places_of(stores, site.origin)
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
    sys.exit(main())
