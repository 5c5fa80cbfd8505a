"""What there is to see: a server with apps that ask, hold and have read something.

Pages are reached by their address; states only by doing something, as a person does.
"""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import json
import secrets
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from personal_server.app.uploads import uploads_of
from personal_server.collecting.connections import create_connection
from personal_server.collecting.persons import turn_on
from personal_server.consent.choices import Choices, EntryChoice, StreamChoice
from personal_server.consent.credentials import secret_hash
from personal_server.domain.disclosure import DENIED, SERVED, AskedDetail, DisclosureEntry
from personal_server.granting.audit import Acting
from personal_server.granting.decisions import Granting
from personal_server.granting.grant_changes import GrantChanges
from personal_server.granting.tokens import Entitlement, mint
from personal_server.granting.transitions import transition
from personal_server.reading.persons import every_person
from personal_server.settings import Settings
from personal_server.storage.authorization_rows import (
    AuditRow,
    CanaryRow,
    ClientRow,
    GrantRow,
    ReadingAlarmRow,
    RequestRow,
)
from personal_server.storage.notice_rows import NoticeChannelRow, NoticeSettingsRow
from server.tests.console.household import CHECKING, DAY, HOME, WORK, bank_request, mail_request
from tests.browser import looks
from tests.browser.site import Owner, Site

OWNER = Acting("owner", "req_visit", "127.0.0.1")
PAGES = (
    "consent",
    "package",
    "picker",
    "training",
    "device",
    "device-owner",
    "home",
    "access",
    "access-one",
    "change",
    "eyes",
    "eyes-record",
    "asked",
    "feed-new",
    "account",
    "merge",
    "split",
    "uploads",
    "folders",
    "upload",
    "exports",
    "records",
    "stream",
    "payments",
    "month",
    "lines",
    "map",
    "pictures",
    "record",
    "days",
    "day",
    "people",
    "person",
    "search",
    "notices",
    "canaries",
    "disclosures",
    "disclosure",
    "apps",
    "sign-ins",
    "locale",
    "not-found",
    "front",
    "docs",
)


STATES = (
    "changed",
    "limited",
    "impossible",
    "expired",
    "allowed",
    "wrong-code",
    "merged",
    "erased",
)


def show(owner: Owner, name: str, addresses: dict[str, str]) -> None:
    """Bring the browser to a page of `PAGES`, or into one of `STATES`."""
    if name in looks.PATHS:
        assert isinstance(owner.site, Site), "its rows are written beside the server"
        looks.fill_looks(owner.site.server.stores.records, time.time_ns())
    if name in PAGES:
        owner.open(addresses[name])
        return
    act = {
        "changed": _change_after_preview,
        "limited": limit_to_senders,
        "impossible": _see_the_impossible,
        "expired": _come_too_late,
        "allowed": _allow_a_device,
        "wrong-code": _type_a_wrong_code,
        "merged": _merge_accounts,
        "erased": _erase_an_account,
    }
    act[name](owner)


def _change_after_preview(owner: Owner) -> None:
    open_request(owner, mail_wanted())
    owner.press(owner.find("details.narrow-box > summary"))
    body = owner.find('input[name="field.0.messages"][value="body"]')
    owner.driver.execute_script("arguments[0].checked = false", body)  # and was not counted yet
    owner.allow()


def limit_to_senders(owner: Owner) -> None:
    """Tick a sender and type another, and look again."""
    open_request(owner, mail_wanted())
    field = "0.messages/from_address"
    for summary in (
        "details.narrow-box > summary",
        "details.limit:has([name$=from_address]) > summary",
    ):
        owner.press(owner.find(summary))
    owner.tick(f"only.{field}", "grace@example.org")
    owner.find(f'textarea[name="others.{field}"]').send_keys("ALAN@example.org")
    owner.preview()
    owner.press(owner.find("details.narrow-box > summary"))


def _see_the_impossible(owner: Owner) -> None:
    wanted = mail_wanted()
    wanted[0]["source"] = {"id": "https://registry.pdpp.dev/connectors/health"}
    open_request(owner, wanted)


def _come_too_late(owner: Owner) -> None:
    open_request(owner, mail_wanted(), expires_at_ns=time.time_ns())


def _allow_a_device(owner: Owner) -> None:
    open_request(owner, mail_wanted(), flow="device", redirect_uri=None)
    owner.allow()


def _type_a_wrong_code(owner: Owner) -> None:
    owner.open(f"{owner.site.origin}/device?user_code=BBBB-CCCC")
    owner.leave_by(owner.find("button.primary"))


def _merge_accounts(owner: Owner) -> None:
    owner.open(f"{_another_mailbox(owner)}/merge?other={HOME}")
    owner.press(owner.find('input[name="confirm"]'))
    owner.leave_by(owner.find("button.danger"))


def _another_mailbox(owner: Owner) -> str:
    """The page of a new account without records."""
    site = owner.site
    assert isinstance(site, Site), "its rows are written beside the server"
    records = site.server.stores.records
    declaration = records.declaration("mail", None)
    made = create_connection(records, declaration, "Old job", time.time_ns(), secrets.token_bytes)
    return f"{site.origin}/owner/sources/{made.connection_id}"


def _erase_an_account(owner: Owner) -> None:
    owner.open(_another_mailbox(owner))
    owner.press(owner.find("details:has(input[name=confirm]) > summary"))
    owner.press(owner.find('input[name="confirm"]'))
    owner.leave_by(owner.find("button.danger"))


def _change(site: Site, held_id: str) -> str:
    """The page on which an access is changed."""
    changes = GrantChanges(site.server.stores.authorization, time.time_ns, secrets.token_bytes)
    return f"/consent/{changes.begin(held_id, OWNER)}"


def open_request(owner: Owner, details: list[dict[str, object]], **over: Any) -> None:
    """A fresh request of the notes agent, shown."""
    site = owner.site
    assert isinstance(site, Site), "its rows are written beside the server"
    with site.server.stores.authorization.write() as writer:
        request_id = f"ar_state_{writer.count(RequestRow)}"
        row = _request(site, request_id, details, time.time_ns())
        writer.insert(replace(row, **over))
    owner.open(f"{owner.site.origin}/consent/{request_id}")


def prepare(site: Site) -> dict[str, str]:
    """The addresses of every page by name; asks anew each time it is called."""
    store = site.server.stores.authorization
    now_ns = time.time_ns()
    with store.read() as reader:
        first = reader.count(RequestRow)
        known = reader.get(ClientRow, ClientRow.client_id.equals("cli_notes")) is not None
    if not known:
        _clients(site, now_ns)
    held_id = _held(site, now_ns, f"ar_held_{first}")
    if not known:
        site.server.stores.disclosures.append_disclosures(_reads(site, held_id, now_ns))
        _read_what_was_planted(site, held_id, now_ns)
        _tell_somewhere(site, now_ns)
    asked = _ask_all(site, now_ns, first)
    pages = {
        "home": "/owner/",
        "access": "/owner/access",
        "access-one": f"/owner/access/{held_id}",
        "change": _change(site, held_id),
        "eyes": f"/owner/access/{held_id}/records/{HOME}/messages",
        "eyes-record": f"/owner/access/{held_id}/records/{HOME}/messages/m004",
        "asked": f"/owner/requests/ar_{first}_consent/records",
        "feed-new": "/owner/feeds/new",
        "account": f"/owner/sources/{HOME}",
        "merge": f"/owner/sources/{WORK}/merge?other={HOME}",
        "split": f"/owner/sources/{HOME}/split?other={WORK}",
        "uploads": "/owner/uploads",
        "folders": "/owner/uploads/folders",
        "upload": f"/owner/uploads/{_upload(site)}",
        "exports": "/owner/uploads/exports",
        "records": "/owner/records",
        "stream": f"/owner/records/{HOME}/messages?filter[is_reply]=true",
        "payments": f"/owner/records/{CHECKING}/transactions",
        **{name: f"/owner/records/{path}" for name, path in looks.PATHS.items()},
        "record": f"/owner/records/{HOME}/messages/m004",
        "days": "/owner/days",
        "day": f"/owner/days/{_busy_day(now_ns)}",
        "people": "/owner/people",
        "person": f"/owner/people/{_person(site)}",
        "search": "/owner/search?q=secret+minutes",
        "notices": "/owner/notices",
        "canaries": "/owner/canaries",
        "disclosures": "/owner/disclosures",
        "disclosure": "/owner/disclosures/35",
        "apps": "/owner/clients",
        "sign-ins": "/owner/sign-ins",
        "locale": "/owner/locale",
        "device": "/device?user_code=WDJB-MJHT",
        "not-found": "/owner/nothing",
        "front": "/",
        "docs": "/docs",
    }
    return {name: site.origin + path for name, path in {**asked, **pages}.items()}


def _busy_day(now_ns: int) -> str:
    """A day with mails and payments (`fill` of `tests/browser/site.py`)."""
    return datetime.fromtimestamp((now_ns - 15 * DAY) / 10**9, UTC).date().isoformat()


def _person(site: Site) -> str:
    """The first of the persons, who are turned on."""
    stores = site.server.stores
    turn_on(stores.records, time.time_ns(), secrets.token_bytes)
    known = every_person(stores.records, stores.declarations)
    return str(next(each for each in known if each.get("name") not in (None, "Ada"))["id"])


def _upload(site: Site) -> str:
    """One that asks whose it is, beside one that was cut off."""
    uploads = uploads_of(Settings(data_dir=site.folder / "data"), site.server.stores)
    found = {each.about.name: each for each in uploads.each()}
    if "Takeout.mbox" in found:
        return found["Takeout.mbox"].upload_id
    cut = uploads.begin("takeout-20260101.zip", 4_000_000, "cut")
    uploads.append(cut.upload_id, cut.about.name, 0, bytes(1_500_000))
    held = uploads.begin("Takeout.mbox", 1_000, "whole")
    uploads.append(held.upload_id, held.about.name, 0, bytes(1_000))
    said = "The records may belong to the account Home mailbox, or to a new account."
    error = {"code": "ambiguous_connection", "message": said, "next_step": "Say which."}
    report = uploads.folder / held.upload_id / "report.json"
    report.write_text(json.dumps({"error": error}))
    return held.upload_id


def _tell_somewhere(site: Site, now_ns: int) -> None:
    told = NoticeChannelRow(
        channel_id="noc_desktop",
        kind="desktop",
        name="desktop",
        created_at_ns=now_ns - DAY,
        tried_at_ns=now_ns - 3_600 * 10**9,
        outcome="delivered",
        due_at_ns=now_ns + DAY,
    )
    failing = replace(
        told,
        channel_id="noc_hook",
        kind="webhook",
        address="https://home.example/hooks/personal-server",
        outcome="unreachable",
        failures=4,
        failing_since_ns=now_ns - DAY // 2,
    )
    with site.server.stores.authorization.write() as writer:
        writer.insert(told)
        writer.insert(failing)
        writer.insert(NoticeSettingsRow(quiet_from=22 * 60, quiet_until=7 * 60))


def _read_what_was_planted(site: Site, held_id: str, now_ns: int) -> None:
    at_ns = now_ns - 17 * 3_600 * 10**9  # that of the last read but one
    planted = CanaryRow(
        connection_id=HOME,
        stream="messages",
        key="m_5f0c91d2",
        planted_at_ns=now_ns - 30 * DAY,
        disclosed_at_ns=at_ns,
        disclosed_to=held_id,
    )
    alarm = ReadingAlarmRow(
        alarm_id="ral_canary",
        held_id=held_id,
        client_id="cli_notes",
        rule="canary",
        at_ns=at_ns,
        detail={"stream": "messages"},
        paused=False,
    )
    with site.server.stores.authorization.write() as writer:
        writer.insert(planted)
        writer.insert(alarm)


def mail_wanted() -> list[dict[str, object]]:
    """A believable request: a few fields of one mailbox, with promises."""
    wanted = mail_request(fields=["subject", "from_name", "from_address", "body"])
    wanted[0] |= {
        "purpose_description": "To find open threads and draft answers for you.",
        "retention": {"max_duration": "P30D", "on_expiry": "delete"},
        "client_claims": {"commitments": ["We never use your mail to train models."]},
    }
    return wanted


def _clients(site: Site, now_ns: int) -> None:
    rows = [
        ClientRow(
            client_id="cli_notes",
            client_ref="clr_notes",
            registration="dynamic",
            name="Notes agent",
            redirect_uris=("http://127.0.0.1/callback",),
            registered_at_ns=now_ns - 5 * DAY,
        ),
        ClientRow(
            client_id="https://assistant.example/client.json",
            client_ref="clr_assistant",
            registration="client_id_metadata_document",
            name="Assistant",
            redirect_uris=("https://assistant.example/callback",),
            registered_at_ns=now_ns - 3 * DAY,
        ),
    ]
    with site.server.stores.authorization.write() as writer:
        for row in rows:
            writer.insert(row)


def _ask_all(site: Site, now_ns: int, first: int) -> dict[str, str]:
    training = mail_wanted()
    training[0]["purpose_code"] = "https://pdpp.dev/purpose/ai_training"
    owner: dict[str, Any] = {
        "flow": "owner_device",
        "client_id": "pdpp-owner-cli",
        "redirect_uri": None,
        "picker": False,
        "user_agent": "pdpp/0.1 (Linux)",
        "address": "192.168.1.20",
        "user_code_hash": secret_hash(f"BBBB{first:04}"),
    }
    assistant = {
        "client_id": "https://assistant.example/client.json",
        "redirect_uri": "https://assistant.example/callback",
        "opened_at_ns": now_ns,
    }
    wanted: dict[str, tuple[list[dict[str, object]] | None, dict[str, Any]]] = {
        "consent": (mail_wanted(), assistant),
        "package": ([*mail_wanted(), *bank_request()], {}),
        "picker": (None, {}),
        "training": (training, {}),
        "device-owner": (None, owner),
    }
    paths: dict[str, str] = {}
    for number, (name, (details, over)) in enumerate(wanted.items()):
        row = _request(site, f"ar_{first + number}_{name}", details, now_ns)
        with site.server.stores.authorization.write() as writer:
            writer.insert(replace(row, **over))
        place = "device" if name == "device-owner" else "consent"
        paths[name] = f"/{place}/{row.request_id}"
    return paths


def _request(
    site: Site, request_id: str, details: list[dict[str, object]] | None, now_ns: int
) -> RequestRow:
    return RequestRow(
        request_id=request_id,
        flow="code",
        client_id="cli_notes",
        origin=site.origin,
        resource=f"{site.origin}/mcp",
        scope="pdpp:read offline_access",
        redirect_uri="http://127.0.0.1:50123/callback",
        state="s",
        code_challenge="c" * 43,
        details=details,
        picker=details is None,
        created_at_ns=now_ns,
        expires_at_ns=now_ns + 900 * 10**9,
    )


def _held(site: Site, now_ns: int, request_id: str) -> str:
    """An approved grant of the notes agent."""
    stores = site.server.stores
    granting = Granting(stores.authorization, stores.catalogs, stores.clock, stores.random_bytes)
    row = _request(site, request_id, mail_request(fields=["subject", "from_name"]), now_ns)
    with stores.authorization.write() as writer:
        writer.insert(row)
    choices = Choices(
        entries={
            0: EntryChoice(
                keep=True, connections=frozenset({HOME}), streams={"messages": StreamChoice(True)}
            )
        }
    )
    shown = granting.choose(request_id, choices, OWNER)
    granting.approve(request_id, choices, shown.revision or "", OWNER)
    with stores.authorization.read() as reader:
        ids = [e.grant_id for e in _events(reader) if e.event == "grant.created"]
        row = reader.get(GrantRow, GrantRow.grant_id.equals(str(ids[-1])))
    assert row is not None
    collected = Entitlement(
        kind="client",
        client_id=row.client_id,
        origin=site.origin,
        resource=f"{site.origin}/mcp",
        scope="pdpp:read offline_access",
        grant_id=row.grant_id,
        expires_at_ns=row.expires_at_ns,
    )
    of_it = (RequestRow.request_id.equals(request_id),)
    with stores.authorization.write() as writer:
        mint(writer, collected, stores.random_bytes, now_ns)
        transition(writer, RequestRow, "approved", "redeemed", now_ns, *of_it)
    return row.grant_id


def _events(reader: Any) -> list[Any]:
    return reader.rows(AuditRow)


def _reads(site: Site, grant_id: str, now_ns: int) -> list[DisclosureEntry]:
    """A month of reads."""
    entries: list[DisclosureEntry] = []
    for number in range(40):
        refused = number % 17 == 3
        tool = ("query_records", "search", "fetch")[number % 3]
        records = 1 if tool == "fetch" else 3 + (number * 7) % 22
        entries.append(
            DisclosureEntry(
                disclosure_id=f"dsc_{number}",
                subject_id=site.server.stores.records.subject_id,
                at_ns=now_ns - (39 - number) * 17 * 3_600 * 10**9,
                request_id=f"req_{number}",
                outcome=DENIED if refused else SERVED,
                error_code="field_not_granted" if refused else None,
                token_kind="client",
                channel="mcp",
                route="records",
                client_id="cli_notes",
                grant_id=grant_id,
                tool=tool,
                connector_key="mail",
                connection_id=HOME,
                stream="messages",
                fields=() if refused else ("id", "sent_at", "subject", "from_name"),
                record_count=0 if refused else records,
                size_bytes=0 if refused else records * (420 + 30 * (number % 5)),
                detail=_asked(tool, records),
            )
        )
    return entries


def _asked(tool: str, records: int) -> AskedDetail:
    """What a tool asks, and the keys that it gets."""
    keys = tuple(f"m{number:03}" for number in range(records))
    asked = {
        "query_records": "/v1/streams/messages/records?filter[is_reply]=true&limit=25",
        "search": "/v1/search?q=invoice+holiday&since=2026-05-01&page_chars=9000",
        "fetch": "/v1/streams/messages/records/m000",
    }
    return AskedDetail(b"s" * 32, asked[tool], keys)
