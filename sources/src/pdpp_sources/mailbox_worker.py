"""The process that speaks IMAP: it has two pipes to a server, and nothing else of the network.

Rule: read only towards the account (`EXAMINE`, `BODY.PEEK`); what a server says is parsed in here,
confined as the readers are, and a mail is at most one at a time in memory.
Source: docs/contract/feeds.md 10; RFC 3501, 4731 (ESEARCH), 5819 (LIST-STATUS), 6154 (special
uses), 7162 (CONDSTORE and QRESYNC).
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, NoReturn

import msgspec
from imapclient import imap_utf7

from pdpp_kernel.uid_ranges import LARGEST_UID, packed_ranges, ranges_of
from pdpp_sources.confined_worker import begin_step, confine_worker, end_of
from pdpp_sources.mail.reader import mail_record_id
from pdpp_sources.mailbox_labels import labels_of
from pdpp_sources.mailbox_messages import (
    LARGEST_MAIL_BYTES,
    MOST_FOLDERS,
    Answered,
    AskChanges,
    AskHeads,
    AskLabels,
    AskMark,
    FetchMails,
    FolderChanged,
    FolderMark,
    FolderSeen,
    LeaveMailbox,
    ListFolders,
    ListUids,
    MailboxEnd,
    MailboxMessage,
    MailboxRequest,
    MailboxSignedIn,
    MailHead,
    MailLabels,
    MailPart,
    MailRefused,
    MailSeen,
    OpenFolder,
    SignIn,
    UidRanges,
    WaitForChange,
    receive_request,
)
from pdpp_sources.mailbox_wire import (
    LONGEST_LINE_BYTES,
    LONGEST_UIDS_BYTES,
    CommandRefused,
    ImapWire,
    Response,
    Sink,
    Token,
    WireBroken,
    WireCut,
    quoted,
)
from pdpp_sources.message_frames import send_message

ENDED = "sign_in_ended"
_STANDARD = "AUTH=OAUTHBEARER"
_TOKENS = frozenset({"AUTH=XOAUTH2", _STANDARD})
REFUSED, MISBEHAVES, UNREACHABLE = "sign_in_refused", "mailbox_misbehaves", "mailbox_unreachable"
_BUFFER_BYTES = 64 * 1024
_LONGEST_NAME = 1_000
# Fields that two copies of a mail share and two mails do not, with its size.
_IDENTIFYING = b"BODY.PEEK[HEADER.FIELDS (MESSAGE-ID DATE FROM TO CC SUBJECT)]"
_OWN_UID = re.compile(rb"[( ]UID (\d{1,10})", re.IGNORECASE)
_MARKS = {
    b"UIDVALIDITY": "uidvalidity",
    b"UIDNEXT": "uid_next",
    b"MESSAGES": "mails",
    b"HIGHESTMODSEQ": "modseq",
    b"UNSEEN": "unseen",
}


_CHANGES = frozenset({b"EXISTS", b"EXPUNGE", b"VANISHED", b"FETCH"})


class _Mailbox(msgspec.Struct):
    """What is known of the server and of the folder that is open."""

    wire: ImapWire
    can: frozenset[str] = frozenset()
    names: dict[str, bytes] = msgspec.field(default_factory=dict[str, bytes])
    """The folders as the server writes them, by what they are called."""

    def answers(self, request: MailboxRequest) -> Iterator[MailboxMessage]:
        """Do what is asked.  Raises: CommandRefused, WireCut, WireBroken."""
        match request:
            case SignIn():
                yield self._signed_in(request)
            case ListFolders():
                yield from self._folders()
            case AskMark():
                yield from self._mark(request.name)
            case OpenFolder():
                yield from self._opened(request.name)
            case AskChanges():
                yield from self._changes(request.modseq)
            case ListUids():
                yield self._uids(request.begin)
            case AskHeads():
                yield from self._heads(request)
            case AskLabels():
                yield from self._labels(request)
            case FetchMails():
                yield from self._mails(request)
            case WaitForChange():
                yield from self._waits(request.seconds)
            case LeaveMailbox():
                with suppress(WireCut):  # it says goodbye
                    self.wire.run(b"LOGOUT")

    def _signed_in(self, request: SignIn) -> MailboxSignedIn:
        if not request.is_greeted:
            self.wire.greeting()
        if request.is_token:
            self._authenticate(request)
        else:
            user, password = (quoted(each.encode()) for each in (request.user, request.password))
            self.wire.run(b"LOGIN", user, password)
        self.can = self._capabilities()
        for name in ("QRESYNC", "CONDSTORE"):
            if name in self.can and "ENABLE" in self.can:
                self.wire.run(b"ENABLE", name.encode())
                break
        return MailboxSignedIn(sorted(self.can))

    def _authenticate(self, request: SignIn) -> None:
        """By an access token: as Google and Microsoft take it, else by the standard."""
        can = self._capabilities()
        mechanism = "OAUTHBEARER" if _TOKENS & can == frozenset({_STANDARD}) else "XOAUTH2"
        begin = f"n,a={request.user}," if mechanism == "OAUTHBEARER" else f"user={request.user}"
        response = f"{begin}\x01auth=Bearer {request.password}\x01\x01"
        self.wire.authenticate(
            mechanism.encode(), base64.b64encode(response.encode()), at_once="SASL-IR" in can
        )

    def _capabilities(self) -> frozenset[str]:
        """What the server can do, as it said last or says when it is asked."""
        codes = self.wire.codes.get(b"CAPABILITY")
        if codes is None:
            words = [each.tokens for each in self.wire.run(b"CAPABILITY")]
            found = [each for line in words for each in line if isinstance(each, bytes)]
        else:
            found = codes.split()
        return frozenset(each.decode("ascii", "replace").upper() for each in found[:500])

    @property
    def _marks(self) -> bytes:
        changes = b"HIGHESTMODSEQ" if "CONDSTORE" in self.can else b"UNSEEN"
        return b"(MESSAGES UIDNEXT UIDVALIDITY " + changes + b")"

    def _folders(self) -> Iterator[FolderSeen]:
        with_marks = "LIST-STATUS" in self.can
        uses = b"SPECIAL-USE " if "SPECIAL-USE" in self.can else b""
        how = [b"RETURN", b"(" + uses + b"STATUS " + self._marks + b")"] if with_marks else []
        listed: dict[bytes, list[str]] = {}
        marks: dict[bytes, FolderMark] = {}
        for each in self.wire.stream(b"LIST", b'""', b'"*"', *how):
            if each.word == b"LIST" and len(each.tokens) >= 3 and len(listed) < MOST_FOLDERS:
                name = _listed(each.tokens[2:])
                if name is not None and len(name) <= _LONGEST_NAME:
                    words = _words(each.tokens[0])
                    if not {"noselect", "nonexistent"} & set(words):
                        listed[name] = words
            elif each.word == b"STATUS":
                name, mark = _status(each)
                marks[name] = mark
        for name, uses in listed.items():
            called = _called(name)
            if called is not None:
                self.names[called] = name
                yield FolderSeen(called, uses, marks.get(name))

    def _mark(self, name: str) -> Iterator[FolderSeen]:
        try:
            responses = self.wire.run(b"STATUS", self._written(name), self._marks)
        except CommandRefused:  # deleted meanwhile, or not ours to read
            return
        for each in responses:
            if each.word == b"STATUS":
                yield FolderSeen(name, [], _status(each)[1])
                return

    def _opened(self, name: str) -> Iterator[FolderSeen]:
        mails = 0
        try:
            for each in self.wire.stream(b"EXAMINE", self._written(name)):
                if each.tokens and _upper(each.tokens[0]) == b"EXISTS":
                    mails = _number(each.word)
        except CommandRefused:  # deleted meanwhile, or not ours to read
            return
        numbers = {word: _number(text) for word, text in self.wire.codes.items() if word in _MARKS}
        members = {_MARKS[word]: number for word, number in numbers.items() if word != b"UNSEEN"}
        yield FolderSeen(name, [], FolderMark(**(members | {"mails": mails})))

    def _written(self, name: str) -> bytes:
        return quoted(self.names.get(name) or imap_utf7.encode(name))

    def _changes(self, modseq: int) -> Iterator[MailboxMessage]:
        """An explicit end, since some servers take `*` for the newest mail that is there still."""
        tells_gone = b" VANISHED" if "QRESYNC" in self.can else b""
        how = b"(CHANGEDSINCE %d%s)" % (max(modseq, 1), tells_gone)
        whole = b"1:%d" % LARGEST_UID
        for each in self.wire.stream(b"UID", b"FETCH", whole, self._asked_labels, how):
            if each.word == b"VANISHED":
                gone = each.tokens[-1] if each.tokens else None
                with suppress(ValueError):  # what is gone is compared with what is there, too
                    if isinstance(gone, bytes):
                        yield UidRanges(packed_ranges(ranges_of(gone)))
            elif (found := _fetched(each)) is not None and b"FLAGS" in found:
                yield MailLabels(_number(found[b"UID"]), _labels(found))

    def _uids(self, begin: int) -> UidRanges:
        wanted = b"UID %d:%d" % (begin, LARGEST_UID)
        brief = [b"RETURN", b"(ALL)"] if "ESEARCH" in self.can else []
        found: list[tuple[int, int]] = []
        self.wire.longest_line_bytes = LONGEST_UIDS_BYTES
        try:
            for each in self.wire.stream(b"UID", b"SEARCH", *brief, wanted):
                words = [one for one in each.tokens if isinstance(one, bytes)]
                if each.word == b"ESEARCH" and b"ALL" in [one.upper() for one in words]:
                    found += ranges_of(words[-1])
                elif each.word == b"SEARCH":
                    for number in map(_number, words):
                        if found and found[-1][1] + 1 == number:  # a range for each takes 100 bytes
                            found[-1] = found[-1][0], number
                        else:
                            found.append((number, number))
        finally:
            self.wire.longest_line_bytes = LONGEST_LINE_BYTES
        return UidRanges(packed_ranges(pair for pair in found if pair[1] >= begin))

    def _waits(self, seconds: int) -> Iterator[FolderChanged]:
        """Its words say less than the next look finds out, so that they are told as one."""
        for each in self.wire.idle(seconds):
            if _CHANGES & {each.word, *map(_upper, each.tokens[:1])}:
                yield FolderChanged()

    @property
    def _asked_labels(self) -> bytes:
        return b"(UID FLAGS X-GM-LABELS)" if "X-GM-EXT-1" in self.can else b"(UID FLAGS)"

    def _heads(self, request: AskHeads) -> Iterator[MailHead]:
        gmail = b" X-GM-MSGID" if "X-GM-EXT-1" in self.can else b""
        what = self._asked_labels[:-1] + b" RFC822.SIZE" + (gmail or b" " + _IDENTIFYING) + b")"
        which = b"%d:%d" % (request.first, request.last)
        for each in self.wire.stream(b"UID", b"FETCH", which, what):
            found = _fetched(each)
            if found is None or b"RFC822.SIZE" not in found:
                continue
            uid = _number(found[b"UID"])
            if request.first <= uid <= request.last:
                size = _number(found[b"RFC822.SIZE"])
                yield MailHead(uid, size, _copy(found, size), _labels(found))

    def _labels(self, request: AskLabels) -> Iterator[MailLabels]:
        which = b"%d:%d" % (request.first, request.last)
        for each in self.wire.stream(b"UID", b"FETCH", which, self._asked_labels):
            found = _fetched(each)
            if found is not None and b"FLAGS" in found:
                yield MailLabels(_number(found[b"UID"]), _labels(found))

    def _mails(self, request: FetchMails) -> Iterator[MailboxMessage]:
        uids, begun = request.uids, request.begun
        if begun and uids:
            yield from self._bodies(uids[:1], begun)
            uids = uids[1:]
        if uids:
            yield from self._bodies(uids, b"")

    def _bodies(self, uids: Sequence[int], begun: bytes) -> Iterator[MailboxMessage]:
        """Fetch mails; what comes is passed on at once, also of one that never ends."""
        which = b",".join(b"%d" % uid for uid in uids)
        part = b"<%d.%d>" % (len(begun), LARGEST_MAIL_BYTES) if begun else b""
        taken = _TakenBodies(frozenset(uids), begun)
        self.wire.stream_body = taken.sink
        try:
            fetched = self.wire.stream(b"UID", b"FETCH", which, b"(UID BODY.PEEK[]" + part + b")")
            for each in fetched:
                found = _fetched(each)
                if found is not None:
                    yield from taken.end(found)
        except CommandRefused:  # one of them cannot be read there
            left = [uid for uid in uids if uid not in taken.ended]
            if len(uids) == 1:
                yield from (MailRefused(uid, "unreadable_mail") for uid in left)
                return
            for uid in left:
                yield from self._bodies([uid], b"")
        finally:
            self.wire.stream_body = None


class _TakenBodies:
    """Bodies as they come: passed on piece by piece where the UID stands before them."""

    def __init__(self, uids: frozenset[int], begun: bytes) -> None:
        self._uids = uids
        self._raw = bytearray(begun)
        self._begun = begun
        self._uid = 0
        self.ended: set[int] = set()

    def sink(self, line: bytes, size: int) -> Sink | None:
        """Where a literal goes.  Raises: WireBroken for one that is larger than any mail."""
        upper = line.upper()
        if b"BODY[]" not in upper and b"BODY[<" not in upper:
            return None
        match = _OWN_UID.search(line)
        self._uid = int(match[1]) if match and int(match[1]) in self._uids else 0
        self._raw = bytearray(self._begun)
        if len(self._raw) + size > LARGEST_MAIL_BYTES:
            if self._uid:
                _send(MailRefused(self._uid, "too_large"))
            raise WireBroken
        return self._take

    def end(self, found: Mapping[bytes, Token]) -> Iterator[MailboxMessage]:
        """A mail is whole."""
        uid = _number(found[b"UID"])
        bodies = [body for name, body in found.items() if name.startswith(b"BODY[")]
        if uid not in self._uids or not bodies:
            if bodies:  # of a mail that nobody asked for
                self._raw = bytearray(self._begun)
            return
        if isinstance(bodies[0], bytes):
            self._raw += bodies[0]  # in quotes; what was a literal is empty here
            if self._uid and bodies[0]:
                yield MailPart(uid, bodies[0])
        if not self._uid and self._raw:
            yield MailPart(uid, bytes(self._raw[len(self._begun) :]))
        raw, self._raw, self._uid = bytes(self._raw), bytearray(), 0
        self.ended.add(uid)
        yield MailSeen(uid, mail_record_id(raw))

    def _take(self, piece: bytes) -> None:
        self._raw += piece
        if self._uid:
            _send(MailPart(self._uid, piece))


def _called(name: bytes) -> str | None:
    """A folder's name for people; None for one that nobody could write."""
    try:
        return imap_utf7.decode(name)
    except (ValueError, LookupError):
        return None


def _listed(tokens: Sequence[Token]) -> bytes | None:
    """The name in a list, also of a server that leaves spaces in it unquoted (Exchange does)."""
    words = [each for each in tokens if isinstance(each, bytes)]
    return b" ".join(words) if isinstance(tokens[0], bytes) else None


def _upper(token: Token) -> bytes:
    return token.upper() if isinstance(token, bytes) else b""


def _words(flags: Token) -> list[str]:
    """Flags of a folder, without the backslash and in lower case."""
    given = flags if isinstance(flags, list) else []
    texts = [each.decode("ascii", "replace") for each in given if isinstance(each, bytes)]
    return [each.removeprefix("\\").lower()[:100] for each in texts[:50]]


def _number(token: Token) -> int:
    """Raises: WireBroken."""
    if isinstance(token, bytes) and token.isdigit() and len(token) <= 19:
        return int(token)
    raise WireBroken


def _pairs(tokens: Token) -> dict[bytes, Token]:
    given = tokens if isinstance(tokens, list) else []
    return {_upper(name): value for name, value in zip(given[::2], given[1::2], strict=False)}


def _status(response: Response) -> tuple[bytes, FolderMark]:
    """Raises: WireBroken."""
    if len(response.tokens) < 2 or not isinstance(response.tokens[0], bytes):
        raise WireBroken
    found = _pairs(response.tokens[1])
    members = {_MARKS[word]: _number(value) for word, value in found.items() if word in _MARKS}
    return response.tokens[0], FolderMark(**members)


def _fetched(response: Response) -> dict[bytes, Token] | None:
    """What a server says of a mail, where it names its UID."""
    if len(response.tokens) < 2 or _upper(response.tokens[0]) != b"FETCH":
        return None
    found = _pairs(response.tokens[1])
    return found if b"UID" in found else None


def _copy(found: Mapping[bytes, Token], size: int) -> str:
    """What copies of one mail have in common; empty for a mail that names itself nowhere."""
    of_gmail = found.get(b"X-GM-MSGID")
    if isinstance(of_gmail, bytes):
        return "g" + of_gmail.decode("ascii", "replace")[:20]
    head = next((value for name, value in found.items() if name.startswith(b"BODY[HEADER")), None)
    if not isinstance(head, bytes) or b"message-id:" not in head.lower():
        return ""
    return hashlib.blake2b(b"%d\n" % size + head.strip(), digest_size=16).hexdigest()


def _labels(found: Mapping[bytes, Token]) -> list[str]:
    def texts(name: bytes) -> list[str]:
        given = found.get(name)
        words = given if isinstance(given, list) else []
        return [_called(each) or "" for each in words if isinstance(each, bytes)]

    of_gmail = texts(b"X-GM-LABELS") if b"X-GM-LABELS" in found else None
    return labels_of(texts(b"FLAGS"), of_gmail)


def _send(message: MailboxMessage) -> None:
    """To who asked, also from within a literal."""
    begin_step()
    send_message(_replies[0], message)


_replies: list[IO[bytes]] = []


def _serve(mailbox: _Mailbox, requests: IO[bytes]) -> str | None:
    """Answer what is asked; why it ended, where it did not end well."""
    code: str | None = None
    while (request := receive_request(requests)) is not None:
        try:
            for each in mailbox.answers(request):
                _send(each)
        except CommandRefused:
            code = _refusal_of(request)
            break
        except WireCut:
            code = UNREACHABLE
            break
        _send(Answered(mailbox.wire.commands))
        if isinstance(request, LeaveMailbox):
            break
    return code


def _refusal_of(request: MailboxRequest) -> str:
    if not isinstance(request, SignIn):
        return MISBEHAVES
    return ENDED if request.is_token else REFUSED


def main(files: Sequence[int], _seconds: float, memory_bytes: int) -> NoReturn:
    """Serve whoever had this process started: requests and replies, pipes from and to the server.

    Source: `process_starter.py`.
    """
    requests, replies, incoming, outgoing = files
    _replies.append(os.fdopen(replies, "wb", _BUFFER_BYTES))
    pipes = os.fdopen(incoming, "rb", _BUFFER_BYTES), os.fdopen(outgoing, "wb", _BUFFER_BYTES)
    confine_worker(memory_bytes)
    wire = ImapWire(*pipes)
    mailbox, asked = _Mailbox(wire), os.fdopen(requests, "rb")
    code = end_of(lambda: _serve(mailbox, asked), MISBEHAVES)
    _send(MailboxEnd(code, wire.commands))
    os._exit(0)
