"""The sentences of notices: what each kind says, in kinds, names, numbers and days alone.  Pure.

Source: docs/contract/authorization-server.md 13.8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pdpp_kernel.texts import Day, Minute, Text, listed, message, plural
from personal_server.domain.notices import Cause, Notice, NoticeKind


def title_of(kind: NoticeKind) -> Text:
    """What a kind of notice is called."""
    return _TITLES[kind]


def sentence_of(notice: Notice) -> Text:
    """What a notice says."""
    return _SENTENCES[notice.kind](notice.causes)


TEST_TITLE: Text = message("Test")
TEST_SENTENCE: Text = message("Notices of your server arrive here.")

_TITLES: Mapping[NoticeKind, Text] = {
    NoticeKind.REQUEST: message("A request waits"),
    NoticeKind.UNUSUAL: message("Unusual reading"),
    NoticeKind.BACKUP_FAILS: message("Backups fail"),
    NoticeKind.BACKUP_MISSING: message("A backup is missing"),
    NoticeKind.NO_BACKUP: message("No backup"),
    NoticeKind.FEED: message("Not up to date"),
    NoticeKind.OLD_SOURCE: message("An account is old"),
    NoticeKind.ACCESS_ENDS: message("An access ends soon"),
    NoticeKind.CHANNEL: message("Notices do not arrive"),
}


def _names(causes: Sequence[Cause]) -> Text:
    return listed(dict.fromkeys(each.name for each in causes))


def _request(causes: Sequence[Cause]) -> Text:
    return plural(
        "An app waits for your decision: %(names)s",
        "%(num)s requests wait for your decision: %(names)s",
        len(causes),
        names=_names(causes),
    )


def _unusual(causes: Sequence[Cause]) -> Text:
    return message("Reading differs from what is usual: %(names)s", names=_names(causes))


def _failing_backup(causes: Sequence[Cause]) -> Text:
    return message("Backups fail since %(when)s.", when=Minute(causes[0].at_ns))


def _missing_backup(causes: Sequence[Cause]) -> Text:
    return message("The latest backup is from %(day)s.", day=Day(causes[0].at_ns))


def _no_backup(causes: Sequence[Cause]) -> Text:
    del causes
    return message("Your records exist on this machine only. Turn on daily backups.")


def _feed(causes: Sequence[Cause]) -> Text:
    return message("Nothing new arrives from: %(names)s", names=_names(causes))


def _old_source(causes: Sequence[Cause]) -> Text:
    if len(causes) == 1:
        return message(
            "%(name)s: the newest record is from %(day)s. Export again?",
            name=causes[0].name,
            day=Day(causes[0].at_ns),
        )
    return message(
        "%(num)s accounts have no record of the last year: %(names)s. Export again?",
        num=len(causes),
        names=_names(causes),
    )


def _ending_access(causes: Sequence[Cause]) -> Text:
    if len(causes) == 1:
        return message(
            "The access of %(name)s ends on %(day)s.",
            name=causes[0].name,
            day=Day(causes[0].at_ns),
        )
    return message(
        "%(num)s accesses end within a week: %(names)s", num=len(causes), names=_names(causes)
    )


def _channel(causes: Sequence[Cause]) -> Text:
    return message("Notices do not reach: %(names)s", names=_names(causes))


_SENTENCES: Mapping[NoticeKind, Callable[[Sequence[Cause]], Text]] = {
    NoticeKind.REQUEST: _request,
    NoticeKind.UNUSUAL: _unusual,
    NoticeKind.BACKUP_FAILS: _failing_backup,
    NoticeKind.BACKUP_MISSING: _missing_backup,
    NoticeKind.NO_BACKUP: _no_backup,
    NoticeKind.FEED: _feed,
    NoticeKind.OLD_SOURCE: _old_source,
    NoticeKind.ACCESS_ENDS: _ending_access,
    NoticeKind.CHANNEL: _channel,
}
