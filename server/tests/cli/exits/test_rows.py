"""Rows of the table of exit codes that the server's commands reach.

Those of the adapter's: adapter/tests/commands/exits/test_rows.py.
"""

from __future__ import annotations

from typing import Any

from server.tests.console.household import mail_request


def test_a_grant_that_is_not_there_is_5_and_a_choice_that_is_missing_6(terminal: Any) -> None:
    assert terminal.run("grant", "show", "grt_x") == 5
    request = mail_request()
    del request[0]["streams"][0]["instance_ids"]  # type: ignore[index]
    asked = ("--client", "x", "--from", terminal.file(request), "--yes")
    assert terminal.run("grant", "create", *asked) == 6
