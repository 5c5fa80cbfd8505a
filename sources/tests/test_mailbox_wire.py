"""What mail servers say, as it was seen of real ones, and what nobody says."""

from __future__ import annotations

import io
import signal

import pytest

from pdpp_kernel.mail_labels import labels_line
from pdpp_kernel.uid_ranges import UidSet, packed_ranges, ranges_of
from pdpp_sources.mail.reader import mail_record_id, mail_records
from pdpp_sources.mailbox_labels import labels_of
from pdpp_sources.mailbox_wire import CommandRefused, ImapWire, WireBroken, WireCut, quoted


def wire(said: bytes) -> ImapWire:
    return ImapWire(io.BytesIO(said), io.BytesIO())


def test_responses_are_words_lists_and_literals() -> None:
    said = (
        b"* VANISHED (EARLIER) 41,43:116\r\n* OK [HIGHESTMODSEQ 9] (words\r\n"
        b'* 2 FETCH (UID 5 FLAGS (\\Seen) X-GM-LABELS ("\\\\Inbox" Work) BODY[] {3}\r\na)b)\r\n'
        b"P1 OK done\r\n"
    )
    conversation = wire(said)
    found = conversation.run(b"NOOP")
    assert [each.word for each in found] == [b"VANISHED", b"OK", b"2"]
    assert found[0].tokens == [[b"EARLIER"], b"41,43:116"]
    inner = [b"UID", b"5", b"FLAGS", [b"\\Seen"], b"X-GM-LABELS", [b"\\Inbox", b"Work"]]
    assert found[2].tokens == [b"FETCH", [*inner, b"BODY[]", b"a)b"]]
    assert conversation.codes == {b"HIGHESTMODSEQ": b"9"}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"", WireCut),
        (b"* BYE full\r\n", WireCut),
        (b"P1 NO no\r\n", CommandRefused),
        (b"P2 OK of another\r\n", WireBroken),
        (b"* 1 FETCH (UID 1\r\n", WireBroken),
        (b"* 1 FETCH ))\r\n", WireBroken),
        (b"* " + b"(" * 40 + b")" * 40 + b"\r\n", WireBroken),
        (b"* 1 FETCH (X {4294967295}\r\n", WireBroken),
        (b"* OK " + b"x" * 1_100_000 + b"\r\n", WireBroken),
        (b'* LIST () "/" "no end\r\n', WireBroken),
    ],
)
def test_what_is_no_answer_ends_the_conversation(said: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        wire(said).run(b"NOOP")


@pytest.mark.parametrize(
    ("said", "error"),
    [(b"P1 OK done\r\n", WireBroken), (b"P1 NO no\r\n", CommandRefused), (b"", WireCut)],
)
def test_a_wait_ends_by_our_clock_only_which_goes_on_as_before(
    said: bytes, error: type[Exception]
) -> None:
    rings = signal.setitimer(signal.ITIMER_REAL, 500, 500)
    try:
        with pytest.raises(error):
            list(wire(b"+ idling\r\n* 4 EXISTS\r\n" + said).idle(60))
        assert signal.getitimer(signal.ITIMER_REAL)[1] == 500
    finally:
        signal.setitimer(signal.ITIMER_REAL, *rings)


def test_a_string_that_cannot_be_quoted_is_a_literal() -> None:
    conversation = wire(b"+ go\r\nP1 OK in\r\n")
    conversation.run(b"LOGIN", quoted(b'a"b\\c'), quoted("p\u00e4ss".encode()))
    sent = conversation.outgoing
    assert isinstance(sent, io.BytesIO)
    assert sent.getvalue() == b'P1 LOGIN "a\\"b\\\\c" {5}\r\np\xc3\xa4ss\r\n'


def test_uids_are_ranges() -> None:
    uids = UidSet(packed_ranges(ranges_of(b"7,1:3,4,9:8")))
    assert list(uids.ranges()) == [(1, 4), (7, 9)]
    assert ([uid in uids for uid in (0, 1, 4, 5, 9, 10)], len(uids)) == (
        [False, True, True, False, True, False],
        7,
    )
    assert list(uids.stretches(3, 9)) == [(1, 3), (4, 8)]
    with pytest.raises(ValueError, match=r"^$"):
        ranges_of(b"1:*")


def test_labels_are_those_of_gmails_export() -> None:
    assert labels_of(["\\Flagged", "$Forwarded", "todo"], None) == [
        *("Unread", "Starred", "Forwarded", "todo")
    ]
    assert labels_of(["\\Seen", "x"], ["\\Inbox", "\\Starred", "Work"]) == [
        *("Inbox", "Starred", "Work")
    ]


ODD_MAILS = [
    b"From: a@example.org\nMessage-ID: <1@example.org>\nSubject: hi\n\nwords\n\n",
    b"Message-ID: <2@example.org>\na server's remark\nSubject: hi\nFrom: a@example.org\n\nwords\n",
    b"Subject: a note to myself\n\nmilk\n",
    b"name,amount\nada,1\n",
    b"name,amount\nbob,2\n",
    b"From ada Mon Jan  1 00:00:00 2024\nSubject: kept\n\nwords\n",
    b"40\nSubject: after a number\n\nwords\n",
    b"",
]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_mail_has_its_key_before_it_is_read(end: bytes) -> None:
    mails = [raw.replace(b"\n", end) for raw in ODD_MAILS]
    records = [next(iter(mail_records(raw, b"", "INBOX", 0))) for raw in mails]
    keys = [getattr(each, "data")["id"] for each in records]  # noqa: B009
    assert [mail_record_id(raw) for raw in mails] == keys
    assert len({*keys}) == len(mails)


def test_labels_go_before_a_mail_as_plain_letters() -> None:
    assert labels_line(["Sch\u00f6n, a"]).isascii()
