"""Notices as lines of a page: the causes of a kind in one sentence, the most urgent first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from pdpp_kernel.texts import Text, message
from personal_server.domain.notice_texts import sentence_of
from personal_server.domain.notices import (
    KINDS,
    Cause,
    Notice,
    NoticeKind,
    StandingNotice,
    has_passed,
)

BESIDE = frozenset({NoticeKind.REQUEST, NoticeKind.UNUSUAL, NoticeKind.FEED})
"""Kinds that the overview shows by themselves."""
ACTIONS: Mapping[str, Text] = {
    "/owner/": message("Overview"),
    "/owner/uploads/exports": message("How to get an export"),
    "/owner/access": message("Access"),
    "/owner/notices": message("Notices"),
}
"""What leads to the page where the owner acts."""


class NoticeLine(msgspec.Struct, frozen=True):
    """A kind that stands: its sentence, and the page where its owner acts."""

    kind: NoticeKind
    sentence: Text
    page: str
    action: Text


def lasting(standing: Iterable[StandingNotice], now_ns: int) -> list[StandingNotice]:
    """What stands so long that it is told."""
    return [
        each
        for each in standing
        if has_passed(each.noticed_at_ns, KINDS[each.cause.kind].after_ns, now_ns)
    ]


def notice_lines(
    standing: Iterable[StandingNotice], without: Collection[NoticeKind] = ()
) -> list[NoticeLine]:
    """What stands, one line for each kind."""
    found: dict[NoticeKind, list[Cause]] = {}
    for each in standing:
        found.setdefault(each.cause.kind, []).append(each.cause)
    return [
        NoticeLine(
            kind, sentence_of(Notice(kind, tuple(found[kind]))), rule.page, ACTIONS[rule.page]
        )
        for kind, rule in KINDS.items()
        if kind in found and kind not in without
    ]
