"""What puts a mail into a thread: what it answers, or where it names nothing, its subject.

Mail that names what it answers (In-Reply-To, References) is in one thread with that, whether that
comes sooner, later or never. An answer that names nothing, as some mailing lists send them, is in
one thread with mail of the same subject within a month, if it came through the same list, or two
of its people stand in that mail as the one who sent it and one who got it. A list that names itself
in no header is told by its address, to which both were sent and which is not the owner's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import combinations

from pdpp_kernel.source_item import ThreadLinks, stable_id
from pdpp_sources.common.text import one_line
from pdpp_sources.mail.message import Headers

MONTH_SECONDS = 31 * 86_400
MOST_REFERENCES = 50
MOST_PEOPLE = 8
_ANSWER = "re|aw|sv|vs|antw|antwort|res|rif|odp|ynt|回复|答复|回覆"
_PASSED_ON = "fwd?|wg|tr|rv|enc|doorst|转发|轉寄"
_BEFORE_THE_SUBJECT = re.compile(
    rf"\s*(?:\[[^\]]{{1,60}}\]|(?:(?P<answer>{_ANSWER})(?:\s?[\[(]\d{{1,4}}[\])]|\^\d{{1,4}})?"
    rf"|{_PASSED_ON})\s?[:：])",
    re.IGNORECASE,
)
_LISTS = ("list-id", "x-beenthere", "mailing-list", "x-mailing-list", "list-post")
_KEEPERS = ("bounces", "bounce", "request", "owner", "admin", "return", "errors")
_RETURNED_TO = ("sender", "return-path", "errors-to")
# To whom a mail was brought in the end.
_OWNERS = ("delivered-to", "x-delivered-to", "x-original-to", "envelope-to", "x-envelope-to")
_IN_ANGLES = re.compile(r"<([^<>]+)>")


def thread_of(
    headers: Headers, mailbox: str, sent_at: datetime | None
) -> tuple[str | None, ThreadLinks]:
    """The thread that a mail would begin (`None`: one of its own), and what joins it to others.

    Gmail says itself which thread a mail is in; then nothing else counts.
    """
    own = headers.message_ids("message-id")[:1]
    if gmail := headers.raw("x-gm-thrid").strip():
        marks = [_mark("gmail", gmail), *(_mark("id", message_id) for message_id in own)]
        return stable_id("thr", "gmail", gmail), _links(marks[:1], marks)
    references, answered = headers.message_ids("references"), headers.message_ids("in-reply-to")
    ids = [*references[:1], *references[1:][-MOST_REFERENCES:], *answered]
    begun_by = next(iter([*ids, *own]), None)
    marks = [_mark("id", message_id) for message_id in dict.fromkeys([*own, *ids])]
    links = _links(marks, marks)
    if sent_at is not None:
        links = _with_topic(links, headers, mailbox, sent_at, names_parent=bool(ids))
    return stable_id("thr", begun_by) if begun_by else None, links


def _links(looks: Iterable[str], leaves: Iterable[str]) -> ThreadLinks:
    return ThreadLinks(tuple((mark, 0, 0) for mark in looks), tuple((mark, 0) for mark in leaves))


def _with_topic(
    links: ThreadLinks, headers: Headers, mailbox: str, sent_at: datetime, *, names_parent: bool
) -> ThreadLinks:
    """Further links for mail of one subject.

    An answer that names nothing looks for any mail, other mail for such answers only: two mails
    that are no answers stay two threads.
    """
    subject, is_answer = topic_of(headers.text("subject"))
    if not subject:
        return links
    asks = is_answer and not names_parent
    circles = [_mark("topic", subject, *circle) for circle in _circles(headers, mailbox)]
    people = [_mark("topic", subject, *pair) for pair in _pairs(headers)] if asks else []
    at = int(sent_at.timestamp())
    span = (at - MONTH_SECONDS, at + MONTH_SECONDS)
    looked_up = tuple(("any " if asks else "answer ") + circle for circle in [*circles, *people])
    left_marks = tuple("any " + circle for circle in circles)
    if asks:
        left_marks += tuple("answer " + circle for circle in [*circles, *people])
    return ThreadLinks(
        links.looks + tuple((_mark(mark), *span) for mark in looked_up),
        links.leaves + tuple((_mark(mark), at) for mark in left_marks),
    )


def topic_of(subject: str) -> tuple[str, bool]:
    """A subject without what programs and lists put before it, and whether that says "answer"."""
    is_answer = False
    while match := _BEFORE_THE_SUBJECT.match(subject):
        is_answer = is_answer or match["answer"] is not None
        subject = subject[match.end() :]
    return one_line(subject).casefold(), is_answer


def _circles(headers: Headers, mailbox: str) -> Iterator[tuple[str, ...]]:
    """Who may have read a mail: its list (of an archive without recipients its mailbox), else the
    one who sent it with each who got it.
    """
    list_header = next((headers.raw(name) for name in _LISTS if name in headers), "")
    if list_header:
        inner = _IN_ANGLES.search(list_header)
        yield ("list", (inner.group(1) if inner else list_header).strip().lower())
    receivers = _receivers(headers)
    if not list_header and not receivers:
        yield ("mailbox", mailbox)
    if not list_header:
        for receiver in receivers:
            if _is_list(receiver, headers):
                yield ("list", receiver)
    for sender in _addresses(headers, "from")[:1]:
        for receiver in receivers:
            yield ("people", *sorted((sender, receiver)))


def _is_list(receiver: str, headers: Headers) -> bool:
    """Whether an address is a list's, though no header names one.

    Answers go back to it, or are returned to its keeper; or the mail came to another address, that
    of the mailbox's owner.
    """
    local = receiver.partition("@")[0]
    if receiver in _addresses(headers, "reply-to"):
        return True
    keepers = [f"owner-{local}", *(f"{local}-{keeper}" for keeper in _KEEPERS)]
    returned = [address for name in _RETURNED_TO for address in _addresses(headers, name)]
    if any(address.partition("@")[0].startswith(tuple(keepers)) for address in returned):
        return True
    owners = [address for name in _OWNERS for address in _addresses(headers, name)]
    sender = _addresses(headers, "from")[:1]
    names = {address.partition("@")[0] for address in [*owners, *sender]}
    return bool(owners) and local not in names


def _pairs(headers: Headers) -> Iterator[tuple[str, ...]]:
    """Any two people of a mail."""
    everybody = dict.fromkeys([*_addresses(headers, "from")[:1], *_receivers(headers)])
    for pair in combinations(sorted(everybody), 2):
        yield ("people", *pair)


def _receivers(headers: Headers) -> list[str]:
    receivers = [address for name in ("to", "cc") for address in _addresses(headers, name)]
    return list(dict.fromkeys(receivers))[:MOST_PEOPLE]


def _addresses(headers: Headers, name: str) -> list[str]:
    return [address.email.lower() for address in headers.addresses(name) if address.email]


def _mark(*parts: str) -> str:
    return stable_id("m", *parts)
