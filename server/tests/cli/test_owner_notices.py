from __future__ import annotations

from typing import Any

from personal_server.delivery.notice_channels import row_of
from personal_server.domain.notices import Cause, NoticeKind, StandingNotice
from personal_server.storage.notice_rows import NoticeChannelRow


def test_one_is_told_nowhere_at_first(terminal: Any) -> None:
    assert terminal.json("notices") == {"notices": [], "channels": [], "quiet": None, "off": []}
    assert terminal.run("notices", "test") == 5
    assert terminal.run("notices", "off", "desktop") == 5


def test_the_desktop_needs_a_program_that_is_there(terminal: Any) -> None:
    assert terminal.run("notices", "to", "desktop") == 5
    program = terminal.folder / "show-notice"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert terminal.run("notices", "to", "desktop") == 0
    (channel,) = terminal.json("notices")["channels"]
    assert (channel["kind"], channel["outcome"]) == ("desktop", None)


def test_a_url_is_checked_and_its_secret_shown_once(terminal: Any) -> None:
    assert terminal.run("notices", "to", "http://me.example/hook") != 0
    assert terminal.run("notices", "to", "https://me.example/hook") == 0
    assert "whsec_" in terminal.out
    assert terminal.run("notices", "to", "https://me.example/hook") != 0
    assert terminal.run("notices") == 0
    assert "https://me.example/hook" in terminal.out
    assert "whsec_" not in terminal.out
    assert terminal.run("notices", "test") == 0
    (row,) = terminal.house.rows(NoticeChannelRow)
    assert row.test_asked
    for shared in ("me.example", ""):
        assert terminal.run("notices", "off", shared) == 5
    assert terminal.run("notices", "off", "https://me.example/hook") == 0
    assert terminal.run("notices", "to", "https://me.example/hook") == 0
    assert terminal.run("notices", "off") == 0
    assert terminal.house.rows(NoticeChannelRow) == []


def test_quiet_hours_are_set_and_ended(terminal: Any) -> None:
    assert terminal.run("notices", "quiet", "22:00-7:00") == 0
    assert terminal.json("notices")["quiet"] == "22:00-07:00"
    assert terminal.run("notices", "quiet", "late") != 0
    assert terminal.run("notices", "quiet", "none") == 0
    assert terminal.json("notices")["quiet"] is None


def test_what_stands_is_listed_with_when_each_channel_was_told(terminal: Any) -> None:
    cause = Cause(NoticeKind.FEED, "fee_1", "Home mailbox", 0)
    terminal.house.insert(row_of(StandingNotice(cause, 0, {"noc_1": 1_000_000_000})))
    assert terminal.run("notices") == 0
    assert "Home mailbox" in terminal.out
    (notice,) = terminal.json("notices")["notices"]
    assert (notice["kind"], notice["about"]) == ("feed_stale", "fee_1")
    assert notice["told"] == {"noc_1": "1970-01-01T00:00:01Z"}
