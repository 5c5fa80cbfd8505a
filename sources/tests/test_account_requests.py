"""Processes that read accounts end, whatever became of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from pdpp_sources import account_requests
from pdpp_sources.account_requests import AccountTrouble, RequestWire
from pdpp_sources.dav import dav_process
from pdpp_sources.dav.dav_messages import DavEnd, DavTask
from pdpp_sources.jmap import jmap_process
from pdpp_sources.jmap.jmap_messages import AskStates

NO_WIRE = cast("RequestWire", None)  # it is asked for nothing


def of_calendars() -> object:
    with dav_process.read_dav(NO_WIRE, DavTask("caldav", "https://a/", [], {}, {})) as seen:
        (end,) = seen
    assert isinstance(end, DavEnd)
    return end.code


def of_mails() -> object:
    with jmap_process.jmap_process(NO_WIRE) as process, pytest.raises(AccountTrouble) as trouble:
        list(process.ask(AskStates()))
    return trouble.value.code


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("ask", "code"), [(of_calendars, "dav_misbehaves"), (of_mails, "mailbox_misbehaves")]
)
def test_one_that_says_nothing_for_ever_ends(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[], object], code: str
) -> None:
    """Four that wait would hold up all feeds of the server."""
    monkeypatch.setattr(account_requests, "LONGEST_RUN_SECONDS", 1.0)
    for module in (dav_process, jmap_process):
        monkeypatch.setattr(module, "WORKER", "sources.tests.silent_worker")
    assert ask() == code
