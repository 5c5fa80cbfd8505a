"""The process that reads a JMAP account: it parses what a server says, and has no network.

Rule: read only towards the account (`get`, `query`, `changes`, downloads); it names a request, and
the process that holds the connection and the password sends it.
Source: docs/contract/feeds.md 13; RFC 8620, RFC 8621.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, NoReturn, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from pdpp_kernel.system.confinement import Limits, confine
from pdpp_kernel.system.landlock import read_only
from pdpp_sources.dav.dav_messages import (
    DavAsk,
    DavFailed,
    DavNext,
    DavStatus,
    DavTrouble,
    DavWords,
)
from pdpp_sources.jmap.jmap_answers import (
    CORE,
    MAIL,
    MOST_LISTED,
    ChangesAnswer,
    EmailsAnswer,
    Form,
    MailboxesAnswer,
    MethodRefused,
    QueryAnswer,
    StateAnswer,
    decoded,
    download_url,
    problem_of,
    response_of,
    session_of,
)
from pdpp_sources.jmap.jmap_messages import (
    MISBEHAVES,
    MOST_AT_ONCE,
    NOT_FOUND,
    AskEmails,
    AskIds,
    AskMailboxes,
    AskStates,
    BeginJmap,
    ChangesSeen,
    IdsSeen,
    JmapAnswered,
    JmapEnd,
    JmapMessage,
    JmapRequest,
    JmapSession,
    MailboxSeen,
    MailTaken,
    PollJmap,
    StatesSeen,
    TakeMail,
    to_jmap,
)
from pdpp_sources.mail.reader import mail_record_id
from pdpp_sources.mailbox_messages import LARGEST_MAIL_BYTES, MOST_FOLDERS
from pdpp_sources.message_frames import send_message

STEP_SECONDS = 30.0
LARGEST_ANSWER_BYTES = 16 * 1024 * 1024
FOUND, _MISSING, _REFUSED_FROM, _BROKEN = 200, (404, 410), 400, 500
WELL_KNOWN = "/.well-known/jmap"
NOT_GIVEN, TOO_LARGE = "item_not_given", "too_large"
_BUFFER_BYTES = 64 * 1024
# What `changes` is answered with by servers that cannot tell, whatever the standard says of it.
_UNTOLD = frozenset({"cannotCalculateChanges", "invalidArguments"})
_MAILBOX = ["id", "name", "parentId", "role", "totalEmails"]
_EMAIL = ["id", "blobId", "size", "mailboxIds", "keywords"]
_COUNTS = frozenset({"totalEmails", "unreadEmails", "totalThreads", "unreadThreads"})
Call = tuple[str, dict[str, Any]]
_Part = TypeVar("_Part")


@dataclass(slots=True)
class JmapAccount:
    """An account, asked through the process that holds its connection."""

    requests: IO[bytes]
    replies: IO[bytes]
    url: str
    session: JmapSession | None = None
    is_new: bool = False

    def answers(self, request: JmapRequest) -> Iterator[JmapMessage]:
        """Do what is asked.  Raises: DavTrouble."""
        match request:
            case BeginJmap():
                self.url, self.session = request.url, request.session
                if self.session is None:
                    yield self._found_session()
            case AskStates():
                mails, mailboxes = self._called(
                    ("Email/get", {"ids": []}), ("Mailbox/get", {"ids": []})
                )
                yield StatesSeen(
                    _answer(mails, StateAnswer).state, _answer(mailboxes, StateAnswer).state
                )
            case PollJmap():
                yield from self._changes(request)
            case AskMailboxes():
                yield from self._mailboxes(request.ids)
            case AskIds():
                yield self._ids(request)
            case AskEmails():
                yield from self._emails(request.ids)
            case TakeMail():
                yield self._mail(request)

    def told_session(self) -> JmapSession | None:
        """The session, once, where it is another than it was."""
        is_new, self.is_new = self.is_new, False
        return self.session if is_new else None

    # What is asked ---------------------------------------------------------------------------
    def _changes(self, request: PollJmap) -> Iterator[ChangesSeen]:
        since = {"sinceState": request.emails, "maxChanges": MOST_AT_ONCE}
        calls: list[Call] = [("Email/changes", since)]
        if request.mailboxes is not None:
            calls.append(("Mailbox/changes", {"sinceState": request.mailboxes}))
        for (name, _), raw in zip(calls, self._called(*calls), strict=True):
            of_mails = name.startswith("Email")
            if isinstance(raw, MethodRefused):
                if raw.kind not in _UNTOLD:
                    raise DavTrouble(MISBEHAVES)
                yield ChangesSeen(of_mails, is_known=False)
                continue
            found = decoded(raw, ChangesAnswer)
            changed = list(dict.fromkeys([*found.created, *found.updated]))
            if len(changed) + len(found.destroyed) > MOST_LISTED:
                raise DavTrouble(MISBEHAVES)
            only = found.updatedProperties
            is_counts = only is not None and _COUNTS.issuperset(only)
            yield ChangesSeen(
                of_mails,
                is_known=True,
                state=found.newState,
                has_more=found.hasMoreChanges,
                changed=changed,
                gone=found.destroyed,
                counts_only=is_counts and not found.created and not found.destroyed,
            )

    def _mailboxes(self, ids: Sequence[str] | None) -> Iterator[MailboxSeen]:
        parts = [None] if ids is None else _parts(ids, self._session().most_objects)
        count = 0
        for part in parts:
            (raw,) = self._called(("Mailbox/get", {"ids": part, "properties": _MAILBOX}))
            for each in _answer(raw, MailboxesAnswer).found:
                count += 1
                if count <= MOST_FOLDERS:
                    yield MailboxSeen(
                        each.id, each.name, each.parentId, each.role, each.totalEmails
                    )

    def _ids(self, request: AskIds) -> IdsSeen:
        limit = self._session().most_objects
        asked: dict[str, Any] = {
            "filter": {"inMailbox": request.mailbox},
            "sort": [{"property": "receivedAt", "isAscending": False}],
            "limit": limit,
            "collapseThreads": False,
        }
        if request.behind is not None:
            asked |= {"anchor": request.behind, "anchorOffset": 1}
        (raw,) = self._called(("Email/query", asked))
        if isinstance(raw, MethodRefused) and raw.kind == "anchorNotFound":
            return IdsSeen([], is_last=False, is_found=False)
        found = _answer(raw, QueryAnswer)
        if len(found.ids) > MOST_LISTED:
            raise DavTrouble(MISBEHAVES)
        return IdsSeen(found.ids, is_last=not found.ids, is_found=True)

    def _emails(self, ids: Sequence[str]) -> Iterator[JmapMessage]:
        for part in _parts(ids, self._session().most_objects):
            (raw,) = self._called(("Email/get", {"ids": part, "properties": _EMAIL}))
            wanted = set(part)
            for each in _answer(raw, EmailsAnswer).found:
                if each.id in wanted:  # each once, and nothing that was not asked for
                    wanted.remove(each.id)
                    yield each.seen()

    def _mail(self, request: TakeMail) -> MailTaken:
        status, _ = self._asked("GET", download_url(self._session(), request.blob), "")
        if status != FOUND:
            if _REFUSED_FROM <= status < _BROKEN:
                return MailTaken("", NOT_GIVEN)
            raise DavTrouble(MISBEHAVES)
        raw = bytearray()
        for words in self._words():
            raw += words
            if len(raw) > LARGEST_MAIL_BYTES:
                return MailTaken("", TOO_LARGE)
        if len(raw) < request.size:  # it was cut, or is none
            return MailTaken("", NOT_GIVEN)
        return MailTaken(mail_record_id(bytes(raw)), None)

    # How it is asked -------------------------------------------------------------------------
    def _found_session(self) -> JmapSession:
        """Where the account is.  Raises: DavTrouble."""
        begins = [self.url, urljoin(self.url, WELL_KNOWN)]
        if urlsplit(self.url).path in ("", "/"):
            begins = begins[1:]
        for begin in begins:
            status, at = self._asked("GET", begin, "")
            if status == _BROKEN:  # it passes
                raise DavTrouble(MISBEHAVES)
            if status != FOUND:
                continue
            content = self._content()
            if not content.lstrip().startswith(b"{"):  # a page for people
                continue
            found = session_of(content, at)
            if found is not None:
                self.session = found
                return found
        raise DavTrouble(NOT_FOUND)

    def _session(self) -> JmapSession:
        if self.session is None:
            raise DavTrouble(MISBEHAVES)
        return self.session

    def _called(self, *calls: Call) -> list[bytes | MethodRefused]:
        """What methods answer, in as few requests as the server allows.  Raises: DavTrouble."""
        answers: list[bytes | MethodRefused] = []
        for part in _parts(calls, self._session().most_calls):
            answers += self._called_at_once(part)
        return answers

    def _called_at_once(self, calls: Sequence[Call]) -> list[bytes | MethodRefused]:
        session = self._session()
        body = {
            "using": [CORE, MAIL],
            "methodCalls": [
                [name, {"accountId": session.account, **asked}, str(number)]
                for number, (name, asked) in enumerate(calls)
            ],
        }
        status, _ = self._asked("POST", session.api, msgspec.json.encode(body).decode())
        content = self._content()
        if status in _MISSING:
            raise DavTrouble(NOT_FOUND)
        if status != FOUND:
            raise DavTrouble(problem_of(content))
        answers, state = response_of(content, [name for name, _ in calls])
        if state and state != session.state:
            self._look_again(state)
        return answers

    def _look_again(self, state: str) -> None:
        """Find the session anew, since it is another than it was.

        A server that is of two minds about its state is believed until the next run.
        """
        before = self._session()
        found = self._found_session()
        if found.account != before.account:  # what is known is of another account
            raise DavTrouble(NOT_FOUND)
        found.state = state
        self.session, self.is_new = found, True

    def _content(self) -> bytes:
        content = bytearray()
        for words in self._words():
            content += words
            if len(content) > LARGEST_ANSWER_BYTES:
                raise DavTrouble(MISBEHAVES)
        return bytes(content)

    def _asked(self, method: str, url: str, body: str) -> tuple[int, str]:
        reply = self._reply_to(DavAsk(method, url, None, body))
        if not isinstance(reply, DavStatus):
            raise DavTrouble(MISBEHAVES)
        return reply.status, reply.url

    def _words(self) -> Iterator[bytes]:
        while True:
            reply = self._reply_to(DavNext())
            if not isinstance(reply, DavWords):
                raise DavTrouble(MISBEHAVES)
            if not reply.content:
                return
            yield reply.content

    def _reply_to(self, message: DavAsk | DavNext) -> object:
        send_message(self.replies, message)
        signal.setitimer(signal.ITIMER_PROF, STEP_SECONDS)
        reply = to_jmap(self.requests)
        if isinstance(reply, DavFailed):
            raise DavTrouble(reply.code)
        return reply


def _answer(raw: bytes | MethodRefused, form: type[Form]) -> Form:
    """Raises: DavTrouble."""
    if isinstance(raw, MethodRefused):
        raise DavTrouble(MISBEHAVES)
    return decoded(raw, form)


def _parts(whole: Sequence[_Part], size: int) -> Iterator[list[_Part]]:
    for begin in range(0, len(whole), size):
        yield list(whole[begin : begin + size])


def _serve(account: JmapAccount) -> None:
    """Answer what is asked.  Raises: DavTrouble."""
    while (request := to_jmap(account.requests)) is not None:
        if isinstance(request, DavStatus | DavWords | DavFailed):
            raise DavTrouble(MISBEHAVES)
        signal.setitimer(signal.ITIMER_PROF, STEP_SECONDS)
        for each in account.answers(request):
            send_message(account.replies, each)
        told = account.told_session()
        if told is not None:
            send_message(account.replies, told)
        send_message(account.replies, JmapAnswered())


def main(files: Sequence[int], _seconds: float, memory_bytes: int) -> NoReturn:
    """Serve whoever had this process started.

    Source: `process_starter.py`.
    """
    requests, replies = os.fdopen(files[0], "rb"), os.fdopen(files[1], "wb", _BUFFER_BYTES)
    confine(Limits(STEP_SECONDS, memory_bytes))
    read_only(())
    code: str | None = None
    try:
        _serve(JmapAccount(requests, replies, ""))
    except DavTrouble as trouble:
        code = trouble.code
    except MemoryError:
        os._exit(1)
    except Exception:  # noqa: BLE001 (whatever a server makes a parser raise)
        code = MISBEHAVES
    if code is not None:
        send_message(replies, JmapEnd(code))
    os._exit(0)
