"""The owner limits an access to some senders in a real browser, without a script."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import pytest

from personal_server.domain.grant import ContentLimit, parse_grant
from personal_server.storage.authorization_rows import GrantRow
from tests.browser.site import Owner, Site
from tests.browser.visits import limit_to_senders, prepare

pytestmark = pytest.mark.browser


def test_what_is_ticked_and_typed_is_what_is_granted(owner: Owner, running: Site) -> None:
    prepare(running)
    limit_to_senders(owner)
    said = "grace@example.org, ALAN@example.org"
    assert owner.figure() == 16
    assert owner.sees(said)
    assert owner.all("main + [role=status]") == []  # what the script of the page would make
    owner.allow()
    with running.server.stores.authorization.read() as reader:
        grants = [parse_grant(row.grant) for row in reader.rows(GrantRow)]
    limited = [grant for grant in grants if any(stream.only for stream in grant.streams)]
    (grant,) = limited
    values = ("grace@example.org", "ALAN@example.org")
    assert grant.streams[0].only == (ContentLimit("from_address", values),)
    owner.open(f"{running.origin}/owner/access/{grant.grant_id}")
    assert owner.sees(said)
