"""What a JMAP server answers, as far as it is used.

Rule: pure; what is of another form, or larger than anything that was asked for, is refused.
Source: RFC 8620, 2 (session), 3.4 (responses), 3.6 (errors), 5 (methods); RFC 8621, 2 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urljoin

import msgspec

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.jmap.jmap_messages import (
    MISBEHAVES,
    MOST_AT_ONCE,
    NOT_FOUND,
    UNREACHABLE,
    EmailSeen,
    JmapSession,
)
from pdpp_sources.mailbox_labels import labels_of

CORE, MAIL = "urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"
MOST_CALLS = 16
MOST_LISTED = 20_000
"""Ids that one answer may name, whatever was asked for."""
_LIMIT = "urn:ietf:params:jmap:error:limit"
_FLAGS = {
    "$seen": "\\Seen",
    "$flagged": "\\Flagged",
    "$answered": "\\Answered",
    "$draft": "\\Draft",
}
_PASSING = frozenset({"serverUnavailable"})
_NO_MAIL = frozenset(
    {"unknownMethod", "accountNotFound", "accountNotSupportedByMethod", "forbidden"}
)
_LONGEST = 255
Form = TypeVar("Form")
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST, pattern=r"^[A-Za-z0-9_-]+$")]
AccountId = Annotated[
    str, msgspec.Meta(min_length=1, max_length=_LONGEST, pattern=r"^[^\x00-\x20\x7f]+$")
]
"""Of Cyrus it is the name to sign in with, such as `ada@example.org`."""
Url = Annotated[str, msgspec.Meta(max_length=4_000)]
State = Annotated[str, msgspec.Meta(max_length=1_000)]
Number = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class MethodRefused(Exception):
    """A method that was answered with an error."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class _CoreLimits(msgspec.Struct):
    maxObjectsInGet: int = MOST_AT_ONCE  # noqa: N815 (as servers spell it)
    maxCallsInRequest: int = MOST_CALLS  # noqa: N815


class _Account(msgspec.Struct):
    accountCapabilities: dict[str, Any] = {}  # noqa: N815


class _Session(msgspec.Struct):
    apiUrl: Url  # noqa: N815
    downloadUrl: Url  # noqa: N815
    state: State = ""
    capabilities: dict[str, msgspec.Raw] = {}
    accounts: dict[AccountId, _Account] = {}
    primaryAccounts: dict[str, AccountId] = {}  # noqa: N815


class _Response(msgspec.Struct):
    methodResponses: list[tuple[str, msgspec.Raw, str]]  # noqa: N815
    sessionState: State = ""  # noqa: N815


class _Error(msgspec.Struct):
    type: str


class StateAnswer(msgspec.Struct):
    """Of a `get`: the state alone."""

    state: State


class ChangesAnswer(msgspec.Struct):
    """Of `Email/changes` and `Mailbox/changes`."""

    newState: State  # noqa: N815
    hasMoreChanges: bool = False  # noqa: N815
    created: list[Id] = []
    updated: list[Id] = []
    destroyed: list[Id] = []
    updatedProperties: list[str] | None = None  # noqa: N815


class MailboxData(msgspec.Struct):
    """A mailbox."""

    id: Id
    name: Annotated[str, msgspec.Meta(max_length=1_000)]
    parentId: Id | None = None  # noqa: N815
    role: str | None = None
    totalEmails: Number = 0  # noqa: N815


class MailboxesAnswer(msgspec.Struct):
    """Of `Mailbox/get`."""

    found: list[MailboxData] = msgspec.field(name="list")


class QueryAnswer(msgspec.Struct):
    """Of `Email/query`; `limit` where the server has a smaller one than was asked for."""

    ids: list[Id]
    limit: int | None = None


class EmailData(msgspec.Struct):
    """A mail, without what it says."""

    id: Id
    blobId: Id  # noqa: N815
    size: Number
    mailboxIds: dict[Id, bool] = {}  # noqa: N815
    keywords: dict[str, bool] = {}

    def seen(self) -> EmailSeen:
        """As it is told."""
        flags = [_FLAGS.get(word.lower(), word) for word, has in self.keywords.items() if has]
        inside = [mailbox for mailbox, is_in in self.mailboxIds.items() if is_in]
        return EmailSeen(self.id, self.blobId, self.size, inside, labels_of(flags, None))


class EmailsAnswer(msgspec.Struct):
    """Of `Email/get`."""

    found: list[EmailData] = msgspec.field(name="list")


def session_of(content: bytes, url: str) -> JmapSession | None:
    """The session that an address answered with; None where there is no mail.

    Raises: AccountTrouble.
    """
    found = decoded(content, _Session)
    account = found.primaryAccounts.get(MAIL)
    if account is None:
        having = [each for each, one in found.accounts.items() if MAIL in one.accountCapabilities]
        account = min(having, default=None)
    if account is None:
        return None
    core = found.capabilities.get(CORE)
    limits = _CoreLimits() if core is None else decoded(bytes(core), _CoreLimits)
    return JmapSession(
        urljoin(url, found.apiUrl),
        urljoin(url, found.downloadUrl),
        account,
        found.state,
        max(1, min(limits.maxObjectsInGet, MOST_AT_ONCE)),
        max(1, min(limits.maxCallsInRequest, MOST_CALLS)),
    )


def download_url(session: JmapSession, blob: str) -> str:
    """Where a blob is (RFC 8620, 6.2)."""
    values = {
        "{accountId}": session.account,
        "{blobId}": blob,
        "{type}": "application/octet-stream",
        "{name}": "mail.eml",
    }
    url = session.download
    for name, value in values.items():
        url = url.replace(name, quote(value, safe=""))
    return url


def response_of(content: bytes, asked: Sequence[str]) -> tuple[list[bytes | MethodRefused], str]:
    """What each method answered, in their order, and the state of the session.

    Raises: AccountTrouble.
    """
    found = decoded(content, _Response)
    if len(found.methodResponses) != len(asked):
        raise AccountTrouble(MISBEHAVES)
    answers: list[bytes | MethodRefused] = []
    for number, (name, raw, call) in enumerate(found.methodResponses):
        if call != str(number) or name not in (asked[number], "error"):
            raise AccountTrouble(MISBEHAVES)
        is_error = name == "error"
        answers.append(refused(decoded(bytes(raw), _Error).type) if is_error else bytes(raw))
    return answers, found.sessionState


def refused(kind: str) -> MethodRefused:
    """An error of a method.  Raises: AccountTrouble for one that no request can help."""
    if kind in _PASSING:
        raise AccountTrouble(UNREACHABLE)
    if kind in _NO_MAIL:
        raise AccountTrouble(NOT_FOUND)
    return MethodRefused(kind)


def problem_of(content: bytes) -> str:
    """What a request failed with that was refused as a whole (RFC 8620, 3.6.1)."""
    try:
        kind = msgspec.json.decode(content, type=_Error).type
    except msgspec.DecodeError:
        return MISBEHAVES
    return UNREACHABLE if kind == _LIMIT else MISBEHAVES


def decoded(content: bytes, form: type[Form]) -> Form:
    """Raises: AccountTrouble for what is of another form."""
    try:
        return msgspec.json.decode(content, type=form)
    except (msgspec.DecodeError, RecursionError):
        raise AccountTrouble(MISBEHAVES) from None
