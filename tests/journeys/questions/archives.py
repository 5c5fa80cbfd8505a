"""The archives that are asked: imported, granted in part and served; and all records of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import sleep

import httpx2

from bench.samples import RECURRING, Sample, mailbox, notes, statement, statements, unpacked
from bench.workspace import workspace
from demo.__main__ import Home
from demo.story import Story
from tests.journeys.questions.asking import CONVERSATIONS, OFFERED, SINCE, Facts, Json, Rows
from tests.ports import free_port


def archives(*, with_mail: bool) -> list[tuple[str, Sample]]:
    """What is imported, and how its connection is called."""
    calendars = unpacked(RECURRING) / "recurring_ical_events" / "test" / "calendars"
    listed = [
        ("Checking account", statement()),
        ("Abroad", Sample(statements().path / "bank_medium.ofx", statements().title)),
        ("Chats", workspace(CONVERSATIONS)),
        ("Holidays", Sample(calendars / "Germany.ics", RECURRING.title)),
        ("Lab", Sample(calendars / "fablab_cottbus.ics", RECURRING.title)),
        ("Manual", notes()),
    ]
    return [*([("Mailing lists", mailbox())] if with_mail else []), *listed]


def selection(folder: Path, held: Mapping[str, list[str]]) -> Path:
    """The grant: these streams of all connections, mail since September without its recipients.

    `held` are the connections of each connector; those of the server's own are not named.
    """
    details = [
        {
            "type": "https://pdpp.dev/data-access",
            "source": {"id": f"https://registry.pdpp.dev/connectors/{connector}"},
            "purpose_code": "https://pdpp.dev/purpose/agent_context",
            "access_mode": "continuous",
            "streams": [
                {"name": name}
                | ({"instance_ids": held[connector]} if connector in held else {})
                | ({"fields": fields} if fields else {})
                | ({"time_range": {"since": SINCE}} if connector == "mail" else {})
                for name, fields in streams.items()
            ],
        }
        for connector, streams in OFFERED.items()
        if connector in held or connector == "persons"
    ]
    path = folder / "selection.json"
    path.write_text(json.dumps(details), encoding="utf-8")
    return path


@contextmanager
def served(folder: Path, *, with_mail: bool) -> Generator[Home]:
    """A server with the archives and a client that was granted them."""
    home = Home(folder, free_port(), Story(), ())
    held: dict[str, list[str]] = defaultdict(list)
    for name, sample in archives(with_mail=with_mail):
        told = home.pdpp("import", sample.path, "--connection", name, "--zone", "UTC", "--json")
        (report,) = json.loads(told)["imports"]
        held[report["connector_key"]].append(report["connection"]["connection_id"])
    home.pdpp("person", "on")
    home.pdpp(
        "grant", "create", "--client", "Reader", "--from", selection(folder, held),
        "--expires", "30d", "--cache-root", home.cache, "--yes",
    )  # fmt: skip
    with home.serving():
        yield home


def facts_of(http: httpx2.Client) -> Facts:
    catalog = http.get("/v1/schema").json()
    facts = Facts(http)
    for connector in catalog["connectors"]:
        for row in connector["streams"]:
            held = row.get("granted_connections") or connector["granted_connections"]
            for each in held:
                name, stream = each["display_name"], row["name"]
                read = all_records(http, stream, each["connection_id"])
                facts.streams[name, stream] = Rows(each["connection_id"], stream, read)
    return facts


def all_records(http: httpx2.Client, stream: str, connection: str) -> list[Json]:
    rows: list[Json] = []
    params = {"limit": "100", "connection_id": connection}
    while True:
        answer = http.get(f"/v1/streams/{stream}/records", params=params)
        if answer.status_code == 429:
            sleep(int(answer.headers["retry-after"]))
            continue
        body = answer.json()
        rows += [row["data"] for row in body["data"]]
        if not body.get("next_cursor"):
            return rows
        params = {**params, "cursor": body["next_cursor"]}


def token_of(home: Home) -> str:
    document = json.loads(next((home.cache / "clients").glob("*.json")).read_text())
    return document["credential"]["access_token"]
