"""The owner's days, people and lists that look like what they are, over a million records.

Fills a store with mails, events, measurements, positions, visits, pictures and payments of ten
years, by the declarations of the product, then asks a real server for each page: time, processor
time, size.  Days are asked for in UTC and in another zone.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2
import orjson

from bench.filling import connect, ingest_lines
from bench.owner_pages import BOUND_KB, BOUND_MS, ask, settings_of, sign_in
from bench.site import STORES, Running, Site, database
from pdpp_sources.apple_health.reader import DECLARATION as HEALTH
from pdpp_sources.bank.reader import DECLARATION as BANK
from pdpp_sources.calendar.reader import DECLARATION as CALENDAR
from pdpp_sources.google.reader import DECLARATION as GOOGLE
from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.app.stores import Stores, open_stores
from personal_server.collecting.declarations import declare
from personal_server.collecting.persons import turn_on
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.reading.persons import every_person

BEGIN, DAYS, BATCH = datetime(2016, 1, 1, tzinfo=UTC), 3_650, 2_000
SHARES = {
    "events": (CALENDAR, 0.1),
    "measurements": (HEALTH, 0.4),
    "location_points": (GOOGLE, 0.1),
    "location_visits": (GOOGLE, 0.1),
    "photos": (GOOGLE, 0.1),
    "transactions": (BANK, 0.1),
    "messages": (MAIL, 0.1),
}
"""Of each stream its declaration, and its share of all records."""
KINDS = (("heart_rate", "count/min"), ("step_count", "count"), ("body_mass", "kg"))
CITIES = ((45.46, 9.19), (41.9, 12.5), (52.5, 13.4), (35.68, 139.76), (-33.86, 151.2))
CATEGORIES = ("groceries", "rent", "travel", "books", None)
PAGES = (
    "events",
    "events?since=2020-03-01&until=2020-04-01",
    "events?as=days",
    "measurements",
    "measurements?by=week",
    "measurements?by=month",
    "measurements?filter[kind]=body_mass",
    "location_visits",
    "location_visits?filter[latitude][gte]=45.4&filter[latitude][lte]=45.5",
    "location_visits?as=month",
    "photos",
    "photos?as=map",
    "transactions",
    "transactions?since=2020-03-01&until=2020-04-01",
)


DAY_PAGES = ("/owner/days", "/owner/days?year=2020", "/owner/days/2020-03-01")
OTHER_PAGES = (
    "/owner/people",
    "/owner/people/{person}",
    "/owner/search?q=event",
    "/owner/search?q=dinner&since=2020-01-01",
    "/owner/notices",
)
ZONE, SENDERS = "Europe/Berlin", 400


def rows(stream: str, count: int) -> Iterator[dict[str, Any]]:
    """Ingest lines of so many records, in the order of time."""
    chance = random.Random(stream)
    for number in range(count):
        at = BEGIN + timedelta(days=DAYS * number / count)
        begin, end = f"{at:%Y-%m-%dT%H:%M:%SZ}", f"{at + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
        north, east = chance.choice(CITIES)
        place = {
            "latitude": round(north + chance.gauss(0, 0.03), 6),
            "longitude": round(east + chance.gauss(0, 0.03), 6),
        }
        kind, unit = chance.choice(KINDS)
        own = {"id": f"{stream}{number:08}"}
        facts: dict[str, dict[str, Any]] = {
            "events": {"title": f"Event {number % 97}", "starts_at": begin, "ends_at": end},
            "measurements": {
                "started_at": begin,
                "ended_at": end,
                "kind": kind,
                "value": round(chance.uniform(40, 180), 1),
                "unit": unit,
                "device": "Watch",
            },
            "location_points": {"observed_at": begin, "accuracy_meters": 9, **place},
            "messages": {
                "sent_at": begin,
                "subject": f"Dinner {number % 89}",
                "from_name": f"Sender {number % SENDERS}",
                "from_address": f"s{number % SENDERS}@example.org",
                "to_address": "ada@example.org",
                "body": f"Shall we have dinner on day {number % 3_650}?",
            },
            "location_visits": {
                "started_at": begin,
                "ended_at": end,
                "place_name": f"Place {number % 211}",
                **place,
            },
            "photos": {
                "taken_at": begin,
                "filename": f"IMG_{number:08}.jpg",
                "mime_type": "image/jpeg",
                **place,
            },
            "transactions": {
                "account_id": "a1",
                "posted_on": begin[:10],
                "payee": f"Shop {number % 499}",
                "amount": round(chance.gauss(-30, 40), 2),
                "currency": "EUR",
                "category": chance.choice(CATEGORIES),
            },
        }
        yield {"data": own | facts[stream], "emitted_at": "2026-11-01T00:00:00Z"}


def fill(stores: Stores, total: int) -> None:
    """A connection for each stream, named like it."""
    for stream, (raw, share) in SHARES.items():
        declaration = declare(stores.records, raw, stores.clock()).declaration
        connection_id = connect(stores, declaration, stream)
        lines = (orjson.dumps(row) for row in rows(stream, int(total * share)))
        while batch := list(islice(lines, BATCH)):
            ingest_lines(stores, connection_id, declaration, stream, batch)
    turn_on(stores.records, stores.clock(), stores.random_bytes)


def look(site: Site) -> bool:
    """A line for each page; whether all keep the bounds."""
    good = True
    with site.serving() as running:
        with open_stores(settings_of(site), serving=False) as stores:
            ids = {c.display_name: c.connection_id for c in stores.catalogs().connections}
            owner = OwnerSignIn(stores.authorization, stores.clock, stores.random_bytes)
            link = owner.make_link()
            person = str(next(every_person(stores.records, stores.declarations))["id"])
        with httpx2.Client(base_url=site.origin, timeout=120) as client:
            sign_in(client, site, link)
            for page in PAGES:
                path = f"/owner/records/{ids[page.partition('?')[0]]}/{page}"
                good = is_within(client, running, path, page) and good
            for path in (*DAY_PAGES, *(each.format(person=person) for each in OTHER_PAGES)):
                good = is_within(client, running, path, path) and good
            live_in(client, site, ZONE)
            for path in DAY_PAGES:
                good = is_within(client, running, path, f"{path} in {ZONE}") and good
    return good


def is_within(client: httpx2.Client, running: Running, path: str, name: str) -> bool:
    """Whether a page keeps the bounds, after a line about it."""
    asked = ask(client, running, path)
    kilobytes = len(asked.text.encode()) / 1_000
    is_good = min(asked.median_ms, asked.processor_ms) < BOUND_MS and kilobytes < BOUND_KB
    uncounted = asked.text.count('data-field="uncounted"')
    times = f"{asked.median_ms:8.1f} ms {asked.processor_ms:6.0f} ms of processor"
    mark = "" if is_good else "   PAST THE BOUND"
    print(f"{name:<72} {times} {kilobytes:7.1f} KB, uncounted {uncounted}{mark}", flush=True)
    return is_good


def live_in(client: httpx2.Client, site: Site, zone: str) -> None:
    """Set the owner's time zone on its page."""
    page = client.get("/owner/locale").text
    fields = dict(re.findall(r'name="(_csrf)" value="([^"]*)"', page))
    headers = {"Origin": site.origin}
    client.post("/owner/locale", data={**fields, "time_zone": zone}, headers=headers)


def main() -> int:
    """Fill, serve, ask; 1 when a page is past a bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--store", choices=STORES)
    parser.add_argument(
        "--kept", type=Path, help="fill this folder, or ask what it was filled with"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pdpp-bench-") as made, database(options.store) as url:
        folder = options.kept or Path(made)
        is_filled = (folder / "data").exists()
        site = Site(folder, database_url=url)
        if not is_filled:
            with open_stores(settings_of(site), serving=False) as stores:
                fill(stores, options.records)
        return 0 if look(site) else 1


if __name__ == "__main__":
    sys.exit(main())
