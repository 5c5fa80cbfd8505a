"""The pages about sources and uploads say nothing that no language could say."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from pdpp_kernel.texts import message, text_of
from pdpp_sources.bank.reader import DECLARATION as BANK
from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.cli.report_texts import with_texts
from personal_server.collecting.import_folders import ImportFolders
from personal_server.collecting.receipts import ImportMemory
from personal_server.collecting.uploads import Uploads
from personal_server.domain.stored import (
    CollectionRun,
    RunStatus,
)
from personal_server.owner_locale import OwnerLocale
from server.tests.console.browsing import allow, words
from server.tests.console.household import HOME, WORK, Household, mail_request
from server.tests.console.test_languages import DATA, marking, unmarked
from server.tests.console.uploads.test_sending import REPORT, ended

NAMES = (
    *(each["display"]["name"] for each in (MAIL, BANK)),
    *(
        part.strip()
        for each in (MAIL, BANK)
        for part in re.split("[,;]", each["display"]["detail"])
    ),
    *(stream["display"]["label"] for each in (MAIL, BANK) for stream in each["streams"]),
    *(
        "Home mailbox",
        "Work mailbox",
        "Checking account",
        "Ask for it.",
        "messages",
        "transactions",
    ),
    *("holiday.mbox", "Maildir", "x.mbox", "<b>Home</b>", "notes.xyz", "twice"),
    *("It may be Home.", "Jan", "Feb", "Nov"),
)


def asks(paths: Sequence[Path], within: Path | None, account: str | None) -> Sequence[str]:
    """What imports, or asks where no account is told."""
    del paths, within
    error = {"error": {"code": "ambiguous_connection", "message": "It may be Home."}}
    said = orjson.dumps(error if account is None else REPORT).decode()
    return [sys.executable, "-c", f"print({said!r})"]


def refuses(paths: Sequence[Path], within: Path | None, account: str | None) -> Sequence[str]:
    """What imports a part, and cannot read the rest."""
    del paths, within, account
    reason = message("the message is over %(most)s MB", most=32)
    skips = [
        {"where": "x.mbox", "reason": reason},
        {"where": "x.mbox", "reason": "the entry is not valid JSON"},
    ]
    skipped = [{"code": "too_large", "count": 2, "examples": skips}]
    sentence = message(
        "%(file)s: %(sentence)s", file="x.mbox", sentence=text_of("This file or folder is empty.")
    )
    step = message("Import this file with `--as %(source)s`.", source="mail")
    error = {"path": "x", "code": "export_unreadable", "message": sentence, "next_step": step}
    (done,) = REPORT["imports"]
    report = {"imports": [{**done, "skipped": skipped}], "not_read": [], "errors": [error]}
    said = json.dumps(with_texts(report))
    return [sys.executable, "-c", f"print({said!r})"]


def test_what_an_import_says_is_said_in_the_readers_language(tmp_path: Path) -> None:
    house = Household(languages=marking)
    uploads = Uploads(tmp_path / "uploads", 1_000, refuses, {}, house.clock, house.random_bytes)
    house.uploads = uploads
    house.app = house.console()
    upload_id = whole(uploads)
    uploads.start(upload_id, HOME)
    ended(uploads, upload_id)
    owner = house.signed_in()
    page = owner.get(f"/owner/uploads/{upload_id}")
    assert unmarked(page, *DATA, *NAMES) == []
    house.locale.known = OwnerLocale(language="de")
    german = words(owner.get(f"/owner/uploads/{upload_id}"))
    assert "x.mbox: Es ist nichts darin. Importieren Sie es mit `--as mail`" in german
    assert "die Nachricht hat über 32 MB" in german


def whole(uploads: Uploads) -> str:
    made = uploads.begin("x.mbox", 4, uploads.random_bytes(4).hex())
    uploads.append(made.upload_id, "x.mbox", 0, b"From")
    return made.upload_id


def test_every_text_of_these_pages_stands_in_the_catalogue(tmp_path: Path) -> None:
    house = Household(languages=marking)
    folder = tmp_path / "exports"
    (folder / "Maildir").mkdir(parents=True)
    (folder / "holiday.mbox").write_bytes(b"From x")
    (folder / ".hidden").write_bytes(b"")
    uploads = Uploads(tmp_path / "uploads", 1_000, asks, {}, house.clock, house.random_bytes)
    house.uploads, house.folders = uploads, ImportFolders((folder,))
    house.app = house.console()
    owner = house.signed_in()
    allow(owner, house.ask(mail_request()))
    house.collect()
    house.records.record_run(WORK, CollectionRun("run_2", RunStatus.FAILED, house.clock.now_ns))
    receipt = {
        "name": "x.mbox",
        "imported_at": "2026-02-01T10:00:00Z",
        "earliest": "2026-01-01",
        "latest": None,
        "streams": {"messages": {"new": 1, "updated": 0}},
        "skipped": {"truncated": 1},
    }
    ImportMemory(house.records, HOME, "messages").finish("f", receipt, house.clock.now_ns)
    cut = uploads.begin("x.mbox", 10, "cut").upload_id
    asking, done = whole(uploads), whole(uploads)
    uploads.start(asking, None)
    uploads.start(done, HOME)
    for upload_id in (asking, done):
        ended(uploads, upload_id)
    root, sources = "/owner/uploads", "/owner/sources"
    shown = [
        *("/owner/records", f"{sources}/{HOME}", f"{sources}/{WORK}"),
        *(f"{sources}/{HOME}/merge?other={WORK}", f"{sources}/{WORK}/split?other={HOME}"),
        *(root, f"{root}/exports", f"{root}/folders", f"{root}/folders?folder=0&path=Maildir"),
        *(f"{root}/{each}" for each in (cut, asking, done)),
    ]
    for path in shown:
        assert unmarked(owner.get(path), *DATA, *NAMES) == [], path
    for kind in ("split", "merge"):
        place = f"{sources}/{HOME}/{kind}"
        page = owner.follow(owner.submit(owner.get(f"{place}?other={WORK}"), place, confirm=HOME))
        assert page.status == 200
        assert unmarked(page, *DATA, *NAMES) == [], kind
    secret = dict(owner.get(f"{sources}/{WORK}").form(f"{sources}/{WORK}/name"))["_csrf"]
    erased = owner.post(f"{sources}/{WORK}/erase", [("_csrf", secret), ("confirm", WORK)])
    assert unmarked(owner.follow(erased), *DATA, *NAMES) == []


def test_refused_uploads_folders_and_accounts_are_said_in_the_readers_language(
    tmp_path: Path,
) -> None:
    house = Household(languages=marking)
    folder, closed = tmp_path / "exports", tmp_path / "gone"
    folder.mkdir()
    uploads = Uploads(tmp_path / "uploads", 1_000, asks, {}, house.clock, house.random_bytes)
    house.uploads, house.folders = uploads, ImportFolders((folder, closed))
    house.app = house.console()
    owner = house.signed_in()
    root, sources = "/owner/uploads", "/owner/sources"
    cut = uploads.begin("x.mbox", 10, "cut").upload_id
    secret = ("_csrf", dict(owner.get(root).form(f"{root}/form"))["_csrf"])
    form = {"content-type": "multipart/form-data; boundary=x"}
    refused = {
        "no form with files": owner.request(
            "POST", f"{root}/form", b"", {"origin": owner.origin, **form}
        ),
        "no such upload": owner.get(f"{root}/upl_gone"),
        "not whole": owner.post(f"{root}/{cut}/import", [secret]),
        "no name": owner.post(f"{root}/{cut}/import", [secret, ("account", "new")]),
        "too large": owner.post(root, [secret, ("name", "x"), ("size", "999999")]),
        "no size": owner.post(root, [secret, ("name", "x"), ("size", "much")]),
        "no such name": owner.post(root, [secret, ("name", ".."), ("size", "1")]),
        "no such folder": owner.get(f"{root}/folders?folder=7"),
        "nothing there": owner.get(f"{root}/folders?folder=0&path=gone"),
        "nothing to read": owner.post(
            f"{root}/folders", [secret, ("folder", "0"), ("path", "gone")]
        ),
        "too long a name": owner.post(f"{sources}/{HOME}/name", [secret, ("name", "a" * 300)]),
        "no such step": owner.post(f"{sources}/{HOME}/status", [secret, ("action", "resume")]),
        "not confirmed": owner.post(f"{sources}/{HOME}/erase", [secret]),
        "no such account": owner.get(f"{sources}/cin_gone"),
        "not of one source": owner.get(f"{sources}/{HOME}/merge?other=cin_bank"),
        "made-up beside others": owner.post("/owner/sample", [secret]),
        "planted nowhere": owner.post("/owner/canaries", [secret, ("place", f"{HOME}/nothing")]),
    }
    for why, page in refused.items():
        assert page.error is not None, why
        assert unmarked(page, *DATA, *NAMES) == [], why
    assert unmarked(owner.get(f"{root}/folders"), *DATA, *NAMES) == []
