"""The process that reads a JMAP account: it parses what a server says, and has no network.

Rule: read only towards the account (`get`, `query`, `changes`, downloads); it names a request, and
the process that holds the connection and the password sends it.
Source: docs/contract/feeds.md 13; RFC 8620, RFC 8621.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from pdpp_sources.account_requests import AccountTrouble, NoAnswer, ServerStatus, ServerWords
from pdpp_sources.confined_worker import begin_step, confine_worker, end_of
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
from pdpp_sources.relayed_server import RelayedServer

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


class JmapAccount(msgspec.Struct):
    """An account, asked through the process that holds its connection."""

    server: RelayedServer
    url: str = ""
    session: JmapSession | None = None
    is_new: bool = False

    def answers(self, request: JmapRequest) -> Iterator[JmapMessage]:
        """Do what is asked.  Raises: AccountTrouble."""
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
                    raise AccountTrouble(MISBEHAVES)
                yield ChangesSeen(of_mails, is_known=False)
                continue
            found = decoded(raw, ChangesAnswer)
            changed = list(dict.fromkeys([*found.created, *found.updated]))
            if len(changed) + len(found.destroyed) > MOST_LISTED:
                raise AccountTrouble(MISBEHAVES)
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
            raise AccountTrouble(MISBEHAVES)
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
        status, _ = self.server.ask("GET", download_url(self._session(), request.blob), None, "")
        if status != FOUND:
            if _REFUSED_FROM <= status < _BROKEN:
                return MailTaken("", NOT_GIVEN)
            raise AccountTrouble(MISBEHAVES)
        raw = bytearray()
        for words in self.server.words():
            raw += words
            if len(raw) > LARGEST_MAIL_BYTES:
                return MailTaken("", TOO_LARGE)
        if len(raw) < request.size:  # it was cut, or is none
            return MailTaken("", NOT_GIVEN)
        return MailTaken(mail_record_id(bytes(raw)), None)

    # How it is asked -------------------------------------------------------------------------
    def _found_session(self) -> JmapSession:
        """Where the account is.  Raises: AccountTrouble."""
        begins = [self.url, urljoin(self.url, WELL_KNOWN)]
        if urlsplit(self.url).path in ("", "/"):
            begins = begins[1:]
        for begin in begins:
            status, at = self.server.ask("GET", begin, None, "")
            if status == _BROKEN:  # it passes
                raise AccountTrouble(MISBEHAVES)
            if status != FOUND:
                continue
            content = self._content()
            if not content.lstrip().startswith(b"{"):  # a page for people
                continue
            found = session_of(content, at)
            if found is not None:
                self.session = found
                return found
        raise AccountTrouble(NOT_FOUND)

    def _session(self) -> JmapSession:
        if self.session is None:
            raise AccountTrouble(MISBEHAVES)
        return self.session

    def _called(self, *calls: Call) -> list[bytes | MethodRefused]:
        """What methods answer, in as few requests as the server allows.  Raises: AccountTrouble."""
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
        text = msgspec.json.encode(body).decode()
        status, _ = self.server.ask("POST", session.api, None, text)
        content = self._content()
        if status in _MISSING:
            raise AccountTrouble(NOT_FOUND)
        if status != FOUND:
            raise AccountTrouble(problem_of(content))
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
            raise AccountTrouble(NOT_FOUND)
        found.state = state
        self.session, self.is_new = found, True

    def _content(self) -> bytes:
        content = bytearray()
        for words in self.server.words():
            content += words
            if len(content) > LARGEST_ANSWER_BYTES:
                raise AccountTrouble(MISBEHAVES)
        return bytes(content)


def _answer(raw: bytes | MethodRefused, form: type[Form]) -> Form:
    """Raises: AccountTrouble."""
    if isinstance(raw, MethodRefused):
        raise AccountTrouble(MISBEHAVES)
    return decoded(raw, form)


def _parts(whole: Sequence[_Part], size: int) -> Iterator[list[_Part]]:
    for begin in range(0, len(whole), size):
        yield list(whole[begin : begin + size])


def _serve(server: RelayedServer) -> str | None:
    """Answer what is asked, until nothing more is.  Raises: AccountTrouble."""
    account = JmapAccount(server)
    while (request := to_jmap(server.requests)) is not None:
        if isinstance(request, ServerStatus | ServerWords | NoAnswer):
            return MISBEHAVES
        begin_step()
        for each in account.answers(request):
            server.say(each)
        told = account.told_session()
        if told is not None:
            server.say(told)
        server.say(JmapAnswered())
    return None


def main(files: Sequence[int], _seconds: float, memory_bytes: int) -> NoReturn:
    """Serve whoever had this process started.

    Source: `process_starter.py`.
    """
    requests, replies = os.fdopen(files[0], "rb"), os.fdopen(files[1], "wb", _BUFFER_BYTES)
    confine_worker(memory_bytes)
    server = RelayedServer(requests, replies, to_jmap, MISBEHAVES)
    code = end_of(lambda: _serve(server), MISBEHAVES)
    if code is not None:
        server.say(JmapEnd(code))
    os._exit(0)
