"""Uploads at the pages: who may send, in pieces and as a form, and what is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from personal_server.collecting.persons import DECLARATION as PERSONS
from personal_server.collecting.uploads import Uploads, UploadState
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration, render_declaration
from server.tests.app.http_server.served import until
from server.tests.console.browsing import Browser, marked, words
from server.tests.console.household import CHECKING, HOME, WORK, Household

ROOT = "/owner/uploads"
REPORT = {
    "imports": [
        {
            "connector_key": "mail",
            "connection": {"connection_id": "cin_home", "name": "<b>Home</b>"},
            "streams": {"messages": {"read": 3, "new": 2, "updated": 0, "rejected": 0}},
            "span": {"earliest": "2026-01-01", "latest": "2026-02-01"},
            "skipped": [
                {"code": "duplicate", "count": 1, "examples": [{"where": "a", "reason": "twice"}]}
            ],
            "unfinished": True,
            "kept_tables": [
                {
                    "name": "<i>Old</i>",
                    "connection_id": "cin_old",
                    "code": "folder",
                    "why": "nothing proves it",
                    "command": "pdpp connection erase cin_old",
                }
            ],
            "stored_again": ["messages"],
        }
    ],
    "not_read": [{"path": "x", "unknown": {"count": 1, "files": ["notes.xyz"]}}],
}

LEAST: dict[str, Any] = {
    "connector_key": "calendar",
    "connection": None,
    "streams": {"events": {"read": 1, "rejected": 0}},
    "span": {"earliest": None, "latest": None},
    "skipped": [],
    "unfinished": False,
}
"""What the report of every import has."""

ACCOUNTS = (HOME, WORK, CHECKING, "cin_persons")


def prints(paths: Sequence[Path], within: Path | None, account: str | None) -> Sequence[str]:
    del paths, within, account
    report = {**REPORT, "imports": [*REPORT["imports"], LEAST]}
    return [sys.executable, "-c", f"print({json.dumps(report)!r})"]


@pytest.fixture
def uploads(house: Household, tmp_path: Path) -> Uploads:
    house.uploads = Uploads(
        tmp_path / "uploads", 100_000, prints, {}, house.clock, house.random_bytes
    )
    house.app = house.console()
    return house.uploads


@pytest.fixture
def owner(house: Household, uploads: Uploads) -> Browser:
    del uploads
    return house.signed_in()


def csrf(owner: Browser) -> str:
    return dict(owner.get(ROOT).form(f"{ROOT}/form"))["_csrf"]


def multipart(secret: str, name: str, content: bytes) -> tuple[bytes, str]:
    """A form with a file, as browsers send it."""
    body = (
        b'--xx\r\nContent-Disposition: form-data; name="_csrf"\r\n\r\n'
        + secret.encode()
        + b'\r\n--xx\r\nContent-Disposition: form-data; name="file"; filename="'
        + name.encode()
        + b'"\r\nContent-Type: application/octet-stream\r\n\r\n'
        + content
        + b"\r\n--xx--\r\n"
    )
    return body, "multipart/form-data; boundary=xx"


def send(owner: Browser, path: str, body: bytes, **headers: str) -> tuple[int, str]:
    page = owner.request("POST", path, body, {"origin": owner.origin, **headers})
    return page.status, page.headers.get("location", page.text)


def begun(owner: Browser, secret: str, size: int) -> str:
    fields = [("_csrf", secret), ("name", "a.mbox"), ("size", str(size)), ("mark", "m")]
    page = owner.post(ROOT, fields, accept="application/json")
    assert page.status == 200, page.text
    return json.loads(page.text)["upload_id"]


def ended(uploads: Uploads, upload_id: str) -> UploadState:
    until(lambda: uploads.one(upload_id).state is not UploadState.IMPORTING, pause_seconds=0.005)
    return uploads.one(upload_id).state


def test_pieces_go_where_the_file_ends(owner: Browser, uploads: Uploads) -> None:
    secret = csrf(owner)
    one = f"{ROOT}/{begun(owner, secret, 10)}/bytes"
    told = {"x_csrf_token": secret, "accept": "application/json"}
    assert send(owner, f"{one}?path=a.mbox&from=0", b"01234", **told)[0] == 200
    status, said = send(owner, f"{one}?path=a.mbox&from=0", b"01234", **told)
    assert (status, json.loads(said)["error"]["code"]) == (409, "invalid_state")
    assert json.loads(said)["error"]["received_bytes"] == 5
    assert json.loads(send(owner, f"{one}?path=a.mbox&from=5", b"56789", **told)[1]) == {
        "received_bytes": 10
    }
    assert uploads.each()[0].is_whole


def test_nobody_else_sends_anything(owner: Browser, house: Household, uploads: Uploads) -> None:
    secret = csrf(owner)
    upload_id = begun(owner, secret, 10)
    piece = f"{ROOT}/{upload_id}/bytes?path=a.mbox&from=0"
    asks_json = {"accept": "application/json"}
    assert send(owner, piece, b"01234", **asks_json)[0] == 403
    wrong = {"x_csrf_token": "x" * 43, **asks_json}
    assert send(owner, piece, b"01234", **wrong)[0] == 403
    elsewhere = {"x_csrf_token": secret, "origin": "https://evil.example", **asks_json}
    page = owner.request("POST", piece, b"01234", elsewhere)
    assert page.status == 403
    stranger = Browser(house.app)
    assert send(stranger, piece, b"01234", x_csrf_token=secret, **asks_json)[0] == 401
    body, kind = multipart("x" * 43, "a.mbox", b"0123")
    assert send(owner, f"{ROOT}/form", body, content_type=kind)[0] == 403
    assert send(stranger, f"{ROOT}/form", body, content_type=kind)[0] == 401
    (held,) = uploads.each()
    assert held.received_bytes == 0


def test_a_form_with_a_file_is_taken_and_read(owner: Browser, uploads: Uploads) -> None:
    body, kind = multipart(csrf(owner), "../../a.mbox", b"0123\r\n--x\r\n4567" * 1_000)
    status, where = send(owner, f"{ROOT}/form", body, content_type=kind)
    assert status == 303
    upload_id = where.rpartition("/")[2]
    assert ended(uploads, upload_id) is UploadState.IMPORTED
    assert uploads.one(upload_id).about.name == "a.mbox"
    assert uploads.one(upload_id).about.size_bytes == 15_000
    page = owner.get(f"{ROOT}/{upload_id}")
    for said in ("imported", "messages 3 2", "1 × duplicate", "notes.xyz", "damaged"):
        assert said in words(page)
    assert "1 Jan – 1 Feb 2026" in marked(page, "span")[0]
    assert "notes.xyz" in marked(page, "unread")[0]
    assert "pdpp connection erase cin_old" in marked(page, "kept-table")[0]
    assert "messages" in marked(page, "stored-again")[0]
    assert "<b>Home" not in page.text
    assert "<i>Old" not in page.text
    assert owner.submit(page, f"{ROOT}/{upload_id}/remove").status == 303
    assert uploads.each() == []


def test_a_choice_is_offered_the_accounts_of_its_source_and_none_that_is_derived(
    house: Household, uploads: Uploads, owner: Browser
) -> None:
    derived = parse_declaration(PERSONS)
    house.records.put_declaration(derived, render_declaration(PERSONS), 1)
    person = Connection(
        "cin_persons", "persons", derived.source_id, None, ConnectionStatus.ACTIVE, 1, 1
    )
    house.records.add_connection(person)
    secret = csrf(owner)
    waiting = begun(owner, secret, 4)
    piece = f"{ROOT}/{waiting}/bytes?path=a.mbox&from=0"
    assert send(owner, piece, b"1234", x_csrf_token=secret, accept="application/json")[0] == 200
    offered = [owner.get(f"{ROOT}/{waiting}").text.count(f'value="{c}"') for c in ACCOUNTS]
    assert offered == [1, 1, 1, 0]
    error = {"code": "ambiguous_connection", "message": "Two.", "connector_key": "mail"}
    (uploads.folder / waiting / "report.json").write_text(json.dumps({"error": error}))
    page = owner.get(f"{ROOT}/{waiting}")
    assert [page.text.count(f'value="{each}"') for each in ACCOUNTS] == [1, 1, 0, 0]


@pytest.mark.parametrize("cut", [40, -4])
def test_a_form_that_ended_early_or_is_none_leaves_nothing(
    owner: Browser, uploads: Uploads, cut: int
) -> None:
    body, kind = multipart(csrf(owner), "a.mbox", b"0123" * 100)
    assert send(owner, f"{ROOT}/form", body[:cut], content_type=kind)[0] in (400, 403)
    assert send(owner, f"{ROOT}/form", body, content_type="text/plain")[0] == 400
    assert uploads.each() == []


def test_too_much_is_refused_before_it_is_sent_and_readable_after(
    owner: Browser, uploads: Uploads
) -> None:
    secret = csrf(owner)
    fields = [("_csrf", secret), ("name", "a"), ("size", str(10**10)), ("mark", "m")]
    page = owner.post(ROOT, fields, accept="application/json")
    assert page.status == 413
    assert json.loads(page.text)["error"]["next_step"]
    body, kind = multipart(secret, "a", b"0" * 200_000)
    assert send(owner, f"{ROOT}/form", body, content_type=kind)[0] == 413
    assert uploads.each() == []


def test_how_to_get_an_export_is_told(owner: Browser) -> None:
    assert "Ask for it." in words(owner.get(f"{ROOT}/exports"))


def test_without_room_there_are_no_uploads(house: Household, tmp_path: Path) -> None:
    house.uploads = Uploads(tmp_path, 0, prints, {}, house.clock, house.random_bytes)
    house.app = house.console()
    owner = house.signed_in()
    assert owner.get(ROOT).status == 404
    assert ROOT not in owner.get("/owner/records").text
