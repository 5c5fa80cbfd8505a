"""What an owner and an app do once, cut off by kill -9 at any moment: uploads, codes, rebuilds.

Rule: it is done again by whoever was not answered, and then it is done once: the bytes of an upload
are those that were sent, a code gave tokens once or its access is ended, a rebuilt index finds what
there is.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2

from personal_server.app.owner_store import open_owner_store
from personal_server.granting.codes import challenge_of
from server.tests.app.http_server.served import CALLER, until
from server.tests.app.whole import CALLBACK, VERIFIER
from server.tests.console.browsing import Browser, Page, allow
from server.tests.console.household import bank_request
from tests.torture.tormented import (
    INGEST,
    NO_ANSWER,
    PAYMENTS,
    WITH_FILE,
    Lost,
    Tormented,
    line_of,
)

MAILS, KILLS, WAITING, MANY = 200, 3, 16, 1_500
LONGEST_SECONDS = 0.08
"""How long after a request the server is killed: about as long as an answer takes, or less."""
SECONDS = 600
ROOT = "/owner/uploads"


class Owner(Browser):
    """The owner's browser at a server that listens."""

    def __init__(self, server: Tormented) -> None:
        super().__init__(None, server.origin)
        with open_owner_store(server.settings) as store:
            path = f"/owner/enter?t={store.sign_in.make_link()}"
        if self.submit(self.get(path), "/owner/enter").status != 303:
            raise Lost("the owner cannot sign in")

    async def _exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> httpx2.Response:
        sent = {"accept": "text/html", **headers}
        if body is not None:
            sent["content-type"] = "application/x-www-form-urlencoded"
        if self.cookies:
            sent["cookie"] = "; ".join(f"{n}={v}" for n, v in self.cookies.items())
        sent = {name.replace("_", "-"): value for name, value in sent.items() if value}
        return CALLER.request(method, f"{self.origin}{path}", content=body, headers=sent)

    def sent(self, path: str, body: bytes) -> Page:
        """What the script of the uploads page posts."""
        token = dict(self.get(ROOT).form(f"{ROOT}/form"))["_csrf"]
        headers = {"origin": self.origin, "x_csrf_token": token, "accept": "application/json"}
        return self.request("POST", path, body, headers)

    def begun(self, begin: bytes) -> Any:
        """What the server says of an upload that begins or goes on.  Raises: Lost: refused."""
        answer = self.sent(ROOT, begin)
        if answer.status != 200:
            raise Lost(f"an upload was refused: {answer.status} {answer.text[:400]}")
        return json.loads(answer.text)


@contextmanager
def killed_soon(server: Tormented) -> Generator[None]:
    """kill -9 at some moment of the block; afterwards the server stands again."""
    after = server.random.random() * LONGEST_SECONDS
    timer = threading.Timer(after, server.process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.join()
        server.process.wait()
        server.start_again()


def _cut_off(server: Tormented, act: Callable[[], Page]) -> Page | None:
    """An answer, or none where the server was killed before."""
    with killed_soon(server):
        try:
            return act()
        except NO_ANSWER:
            return None


def upload_killed(server: Tormented) -> None:
    """An upload is cut off while it begins, with its pieces, and when it is to be read."""
    number = server.counts["uploads"]
    server.counts["uploads"] += 1
    content = server.mailbox(MAILS).read_bytes()
    owner, name = Owner(server), f"Sent {number}"
    begin = urlencode({"name": "sent.mbox", "size": len(content), "mark": name}).encode()
    with server.working():
        _cut_off(server, lambda: owner.sent(ROOT, begin))
        upload_id = _send(server, owner, begin, content)
        read = urlencode({"account": "new", "name": name}).encode()
        _cut_off(server, lambda: owner.sent(f"{ROOT}/{upload_id}/import", read))
        _read(server, owner, upload_id, read)
    expected = MAILS + MAILS // WITH_FILE
    if (found := server.records_of(name)) != expected:
        raise Lost(f"{found} of {expected} mails and files of an upload are there")
    _must_leave_nothing(server)
    server.check()


def _send(server: Tormented, owner: Owner, begin: bytes, content: bytes) -> str:
    """All pieces, three times killed in one, each going on where the server says it is."""
    kills = KILLS
    place = server.settings.data_dir / "uploads"
    while True:
        told = owner.begun(begin)
        upload_id, at = told["upload_id"], told["received_bytes"]
        lies = place / upload_id / "content" / "sent.mbox"
        if lies.exists() and lies.read_bytes() != content[:at]:
            raise Lost("bytes of an upload are others than were sent")
        if at == len(content):
            return upload_id
        piece = content[at : at + server.random.randrange(1, len(content) // 4)]
        path = f"{ROOT}/{upload_id}/bytes?path=sent.mbox&from={at}"
        if kills:
            kills -= 1
            _cut_off(server, lambda path=path, piece=piece: owner.sent(path, piece))
        elif owner.sent(path, piece).status != 200:
            raise Lost("an upload that was cut off does not go on")


def _read(server: Tormented, owner: Owner, upload_id: str, read: bytes) -> None:
    """Wait until it was read; where that never began, it is asked for once more."""
    folder = server.settings.data_dir / "uploads" / upload_id
    for _ in range(2):
        if not (folder / "report.json").exists():
            owner.sent(f"{ROOT}/{upload_id}/import", read)
        until(lambda: (folder / "report.json").stat().st_size, SECONDS, 0.5)
    report = json.loads((folder / "report.json").read_bytes())
    if not report.get("imports"):
        raise Lost(f"an upload was not read: {report}")


def _must_leave_nothing(server: Tormented) -> None:
    """What was read is in the records, and its bytes nowhere else."""
    uploads = server.settings.data_dir / "uploads"
    try:
        until(lambda: not list(uploads.glob("*/content")), SECONDS, 0.5)
    except TimeoutError:
        raise Lost("bytes of what was read are still there") from None


def imports_queued(server: Tormented, waiting: int = WAITING) -> None:
    """So many uploads are to be read at once, and the server is killed among them."""
    owner, number = Owner(server), server.counts["queues"]
    server.counts["queues"] += 1
    name = f"Queued {number}"
    ids: list[str] = []
    for each in range(waiting):
        content = _mail(number, each)
        begin = urlencode({"name": f"{each}.mbox", "size": len(content), "mark": name}).encode()
        upload_id = owner.begun(begin)["upload_id"]
        owner.sent(f"{ROOT}/{upload_id}/bytes?path={each}.mbox&from=0", content)
        ids.append(upload_id)
    read = urlencode({"account": "new", "name": name}).encode()
    owner.sent(f"{ROOT}/{ids[0]}/import", read)
    uploads = server.settings.data_dir / "uploads"
    until(lambda: (uploads / ids[0] / "report.json").read_bytes(), SECONDS, 0.5)
    chosen = urlencode({"account": server.connection(name)}).encode()
    for upload_id in ids[1:]:
        owner.sent(f"{ROOT}/{upload_id}/import", chosen)
    _cut_off(server, lambda: owner.get(ROOT))

    def is_over() -> bool:
        under_way = [each for each in uploads.glob("*/report.json") if not each.stat().st_size]
        return not under_way and not list(uploads.glob("*/waiting.json"))

    until(is_over, SECONDS, 0.2)
    if (found := server.records_of(name)) != waiting:
        raise Lost(f"{found} of {waiting} uploads that waited were read")
    _must_leave_nothing(server)
    for upload_id in ids:
        owner.sent(f"{ROOT}/{upload_id}/remove", b"")
    server.check()


def _mail(number: int, each: int) -> bytes:
    return (
        f"From a@example.org Mon Jan  5 10:00:00 2026\nFrom: a@example.org\n"
        f"Message-ID: <q{number}-{each}@example.org>\nSubject: Queued {each}\n"
        f"Date: Mon, 05 Jan 2026 10:00:00 +0000\n\nSome words.\n\n"
    ).encode()


def code_killed(server: Tormented) -> None:
    """A code is redeemed while the server is killed, and then again by who got no answer."""
    owner = Owner(server)
    with server.working():
        for _ in range(KILLS):
            code = _code(owner)
            answer = _cut_off(server, lambda code=code: _redeem(owner, code))
            if answer is None:
                answer = _redeem(owner, code)
            _must_be_whole(server, answer)
            if _redeem(owner, code).status != 400:
                raise Lost("a code gave tokens twice")
    server.check()


def _code(owner: Owner) -> str:
    """The owner allows an app to read; the code that it is given."""
    query = {
        "client_id": "pdpp-cli",
        "redirect_uri": CALLBACK,
        "response_type": "code",
        "code_challenge": challenge_of(VERIFIER),
        "code_challenge_method": "S256",
        "authorization_details": json.dumps(bank_request()),
    }
    asked = owner.get(f"/oauth/authorize?{urlencode(query)}")
    decided = allow(owner, asked.headers["location"])
    (code,) = parse_qs(urlsplit(decided.headers["location"]).query)["code"]
    return code


def _redeem(owner: Owner, code: str) -> Page:
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
    body = urlencode({"client_id": "pdpp-cli", **form}).encode()
    return owner.request("POST", "/oauth/token", body, {"accept": "application/json"})


def _must_be_whole(server: Tormented, answer: Page) -> None:
    """The tokens read; or the code was redeemed before, and then its access is ended."""
    told = json.loads(answer.text)
    if answer.status == 200:
        if server.asked(PAYMENTS, told["access_token"]).status_code != 200:
            raise Lost("a code gave a token that does not read")
        server.counts["codes redeemed"] += 1
    elif (answer.status, told["error"]) != (400, "invalid_grant"):
        raise Lost(f"a code was answered {answer.status} {told}")
    else:
        server.counts["codes replayed"] += 1


def rebuild_killed(server: Tormented) -> None:
    """The words of mails are indexed anew again and again, each time cut off."""
    _ingest_many(server)
    declared = server.asked("/v1/owner/declarations/mail", server.owner_token).json()
    with server.working():
        for _ in range(KILLS):
            server.counts["declared"] += 1
            changed = _changed(declared["declaration"], server.counts["declared"])
            _cut_off(server, lambda changed=changed: _declare(server, changed))
            with killed_soon(server):  # while it builds
                server.process.wait()
        server.work_for(2)
    _declare(server, _changed(declared["declaration"], server.counts["declared"]))
    until(lambda: "rebuilding" not in server.health().get("progress", {}), SECONDS, 0.5)
    if server.command("doctor", "--data").wait(timeout=SECONDS):
        raise Lost("a rebuilt index is not what its records are")
    for word, is_there in (("rain", True), ("nothing", False)):
        path = f"/v1/search?q={word}&limit=1&connection_id=cin_home"
        found = server.asked(path, server.owner_token).json()["data"]
        if bool(found) is not is_there:
            raise Lost(f"a rebuilt index does not tell where {word} is")
    server.check()


def _ingest_many(server: Tormented) -> None:
    """So many records that a rebuild takes a while."""
    ids = [f"m{server.counts['many']}-{number}" for number in range(MANY)]
    server.counts["many"] += 1
    answer = CALLER.post(
        f"{server.origin}{INGEST}",
        content="\n".join(json.dumps(line_of(each)) for each in ids),
        headers={
            "Authorization": f"Bearer {server.owner_token}",
            "Content-Type": "application/x-ndjson",
        },
    )
    if answer.status_code != 200 or answer.json()["records_accepted"] != MANY:
        raise Lost(f"ingest {answer.status_code}")
    server.promised.update(ids)


def _changed(declared: dict[str, Any], number: int) -> dict[str, Any]:
    """The declaration as another version, in which other fields are searched."""
    again: dict[str, Any] = json.loads(json.dumps(declared))
    again["declaration_version"] = f"torture-{number}"
    [mails] = [each for each in again["streams"] if each["name"] == "messages"]
    mails["query"]["search"]["lexical_fields"] = ["subject"] if number % 2 else ["subject", "body"]
    return again


def _declare(server: Tormented, declaration: dict[str, Any]) -> Page:
    headers = {"Authorization": f"Bearer {server.owner_token}"}
    place = f"{server.origin}/v1/owner/declarations"
    answer = CALLER.post(place, json=declaration, headers=headers)
    if answer.status_code not in (200, 201):
        raise Lost(f"a declaration was answered {answer.status_code} {answer.text[:300]}")
    return Page(answer.status_code, answer.headers, answer.text)
