"""A JMAP server as RFC 8620 and 8621 describe one, with one account that tests edit.

It knows nothing of the code that asks it.  What it answers can be bent (`Bends`), so that it lies,
repeats itself, cuts connections or leads elsewhere.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.dovecot import PASSWORD

ACCOUNT, USER = "A1", "ada"
CORE, MAIL = "urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"
Args = dict[str, Any]
READS = frozenset({"Mailbox/get", "Mailbox/changes", "Email/get", "Email/query", "Email/changes"})


@dataclass
class Mail:
    raw: bytes
    mailboxes: set[str]
    keywords: set[str]


@dataclass
class Bends:
    """How it strays from the standard.

    Shapes: `status` and `headers` are given to each request once `fails_from` requests were
        answered; `cut_at` cuts the answer to that request in its middle; `session` and `answer`
        change what is said; `body` is said in the place of all of it, `blob` of a mail.
    """

    status: int | None = None
    fails_from: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cut_at: int | None = None
    session: dict[str, Any] = field(default_factory=dict[str, Any])
    answer: Callable[[str, Args, Args], Args] | None = None
    body: bytes | None = None
    blob: bytes | None = None


@dataclass
class JmapDouble:
    """The account, and what was asked of it."""

    port: int = 0
    most_objects: int = 500
    most_calls: int = 16
    forgets: bool = False
    never_tells: bool = False
    bends: Bends = field(default_factory=Bends)
    mailboxes: dict[str, tuple[str, str | None, str | None]] = field(
        default_factory=dict[str, tuple[str, str | None, str | None]]
    )
    mails: dict[str, Mail] = field(default_factory=dict[str, Mail])
    edits: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    asked: list[str] = field(default_factory=list[str])
    downloaded: list[str] = field(default_factory=list[str])
    refused: set[str] = field(default_factory=set[str])
    requests: int = 0
    session_state: str = "1"
    scheme: str = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
    _made: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        for name, role in (("Inbox", "inbox"), ("Junk", "junk"), ("Archive", "archive")):
            self.add_mailbox(name, role=role)

    @property
    def place(self) -> str:
        return f"jmap://{USER}@127.0.0.1:{self.port}/"

    # The owner's edits -----------------------------------------------------------------------
    def add_mailbox(self, name: str, parent: str | None = None, role: str | None = None) -> str:
        with self._lock:
            self._made += 1
            mailbox = f"mb{self._made}"
            self.mailboxes[mailbox] = name, parent, role
            self.edits.append(("Mailbox", "created", mailbox))
            return mailbox

    def rename(self, mailbox: str, name: str) -> None:
        with self._lock:
            _, parent, role = self.mailboxes[mailbox]
            self.mailboxes[mailbox] = name, parent, role
            self.edits.append(("Mailbox", "updated", mailbox))

    def drop(self, mailbox: str) -> None:
        """With the mails that lie nowhere else."""
        with self._lock:
            for email, mail in list(self.mails.items()):
                if mailbox in mail.mailboxes:
                    left = mail.mailboxes - {mailbox}
                    self.move(email, left) if left else self.delete(email)
            del self.mailboxes[mailbox]
            self.edits.append(("Mailbox", "destroyed", mailbox))

    def named(self, name: str) -> str:
        return next(mailbox for mailbox, each in self.mailboxes.items() if each[0] == name)

    def put(self, mail: EmailMessage, mailbox: str = "Inbox", *keywords: str) -> str:
        with self._lock:
            self._made += 1
            email = f"M{self._made}"
            raw = mail.as_bytes().replace(b"\n", b"\r\n")
            self.mails[email] = Mail(raw, {self.named(mailbox)}, set(keywords))
            self._edited("created", email)
            return email

    def move(self, email: str, mailboxes: set[str]) -> None:
        with self._lock:
            before = self.mails[email].mailboxes
            self.mails[email].mailboxes = set(mailboxes)
            self._edited("updated", email, before)

    def mark(self, email: str, keywords: set[str]) -> None:
        with self._lock:
            self.mails[email].keywords = set(keywords)
            self._edited("updated", email)

    def delete(self, email: str) -> None:
        with self._lock:
            before = self.mails.pop(email).mailboxes
            self._edited("destroyed", email, before)

    def _edited(self, kind: str, email: str, before: set[str] | None = None) -> None:
        self.edits.append(("Email", kind, email))
        now = self.mails[email].mailboxes if email in self.mails else set[str]()
        for mailbox in (before or set()) | now:
            self.edits.append(("Mailbox", "counted", mailbox))

    # What it answers -------------------------------------------------------------------------
    @property
    def state(self) -> str:
        return f"s{len(self.edits)}"

    def session(self) -> Args:
        at = f"http://127.0.0.1:{self.port}"
        limits = {"maxObjectsInGet": self.most_objects, "maxCallsInRequest": self.most_calls}
        found: Args = {
            "capabilities": {CORE: limits, MAIL: {}},
            "accounts": {ACCOUNT: {"name": USER, "accountCapabilities": {MAIL: {}}}},
            "primaryAccounts": {MAIL: ACCOUNT},
            "apiUrl": f"{at}/api/",
            "downloadUrl": f"{at}/download/{{accountId}}/{{blobId}}/{{name}}?accept={{type}}",
            "state": self.session_state,
        }
        return found | self.bends.session

    def called(self, name: str, asked: Args) -> Args:
        assert name in READS
        assert asked["accountId"] == ACCOUNT
        with self._lock:
            return {
                "Mailbox/get": self._mailboxes,
                "Mailbox/changes": self._changes,
                "Email/changes": self._changes,
                "Email/get": self._emails,
                "Email/query": self._query,
            }[name](name, asked)

    def _mailboxes(self, _: str, asked: Args) -> Args:
        wanted = self.mailboxes if asked["ids"] is None else asked["ids"]
        assert asked["ids"] is None or len(wanted) <= self.most_objects
        found = [
            {
                "id": mailbox,
                "name": self.mailboxes[mailbox][0],
                "parentId": self.mailboxes[mailbox][1],
                "role": self.mailboxes[mailbox][2],
                "totalEmails": sum(mailbox in each.mailboxes for each in self.mails.values()),
            }
            for mailbox in wanted
            if mailbox in self.mailboxes
        ]
        return {"state": self.state, "list": found}

    def _emails(self, _: str, asked: Args) -> Args:
        assert len(asked["ids"]) <= self.most_objects
        found = [
            {
                "id": email,
                "blobId": f"B{email}",
                "size": len(self.mails[email].raw),
                "mailboxIds": dict.fromkeys(self.mails[email].mailboxes, True),
                "keywords": dict.fromkeys(self.mails[email].keywords, True),
            }
            for email in asked["ids"]
            if email in self.mails
        ]
        return {"state": self.state, "list": found}

    def _query(self, _: str, asked: Args) -> Args:
        mailbox = asked["filter"]["inMailbox"]
        found = [e for e in reversed(self.mails) if mailbox in self.mails[e].mailboxes]
        begin = 0
        if "anchor" in asked:
            if asked["anchor"] not in found:
                return {"type": "anchorNotFound"}
            begin = found.index(asked["anchor"]) + asked["anchorOffset"]
        return {"ids": found[begin : begin + asked["limit"]], "queryState": self.state}

    def _changes(self, name: str, asked: Args) -> Args:
        if self.never_tells:
            return {"type": "cannotCalculateChanges"}
        kind, since = name.partition("/")[0], int(asked["sinceState"].removeprefix("s"))
        if self.forgets or since > len(self.edits):
            self.forgets = False
            return {"type": "cannotCalculateChanges"}
        last: dict[str, str] = {}
        first: dict[str, str] = {}
        end = since
        for of, what, which in self.edits[since:]:
            if of == kind and which not in last and len(last) >= asked.get("maxChanges", 500):
                break
            end += 1
            if of == kind:
                last[which] = what
                first.setdefault(which, what)
        kinds: dict[str, list[str]] = {"created": [], "updated": [], "destroyed": []}
        for which, what in last.items():
            if what == "destroyed":
                if first[which] != "created":
                    kinds["destroyed"].append(which)
            else:
                kinds["created" if first[which] == "created" else "updated"].append(which)
        counts = set(last.values()) == {"counted"}
        only = {"updatedProperties": ["totalEmails"] if counts else None}
        return {
            "oldState": asked["sinceState"],
            "newState": f"s{end}",
            "hasMoreChanges": end < len(self.edits),
            **kinds,
            **(only if kind == "Mailbox" else {}),
        }

    def post(self, asked: Args) -> Args:
        assert len(asked["methodCalls"]) <= self.most_calls
        answers: list[list[Any]] = []
        for name, args, call in asked["methodCalls"]:
            self.asked.append(name)
            found = self.called(name, args)
            if self.bends.answer is not None:
                found = self.bends.answer(name, args, found)
            answers.append(["error" if "type" in found else name, found, call])
        return {"methodResponses": answers, "sessionState": self.session_state}


@contextmanager
def jmap_double() -> Generator[JmapDouble]:
    """One that answers on loopback."""
    double = JmapDouble()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if path == "/.well-known/jmap":
                self._answer(301, b"", {"Location": "/session"})
            elif path == "/session":
                self._answer(200, json.dumps(double.session()).encode())
            elif path.startswith(f"/download/{ACCOUNT}/B"):
                email = path.split("/")[3][1:]
                mail = double.mails.get(email)
                double.downloaded.append(email)
                content = double.bends.blob or (b"" if mail is None else mail.raw)
                status = 403 if email in double.refused else 200
                self._answer(404 if mail is None else status, content)
            else:
                self._answer(404, b"")

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/api/"
            assert self.headers["Content-Type"] == "application/json"
            answer = double.bends.body or json.dumps(double.post(json.loads(content))).encode()
            self._answer(200, answer)

        def _answer(
            self, status: int, content: bytes, headers: dict[str, str] | None = None
        ) -> None:
            bends = double.bends
            double.requests += 1
            if self.headers["Authorization"] != double.scheme:
                status, content = 401, b""
            elif bends.status is not None and double.requests > bends.fails_from:
                status, content, headers = bends.status, b"{}", bends.headers
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if bends.cut_at == double.requests:
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
                return
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        double.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield double
        finally:
            server.shutdown()
