"""One line of the trail: who did what, and no detail without a value."""

from __future__ import annotations

from personal_server.granting.audit import Acting, Subject, audit
from personal_server.storage.authorization_rows import AuditRow
from server.tests.granting.conftest import Bench


def test_a_line_says_who_did_what_to_what(memory: Bench) -> None:
    acting = Acting("local_cli", "ar_1", "203.0.113.7", user="me")
    subject = Subject("cli_1", "grt_1", "gpkg_1")
    with memory.store.write() as writer:
        audit(writer, "grant.revoked", acting, 5, subject, reason="owner", left=None)
        audit(writer, "owner.signed_in", Acting("owner"), 6)
    first, second = memory.rows(AuditRow)
    assert (first.event, first.actor, first.at_ns) == ("grant.revoked", "local_cli", 5)
    assert (first.client_id, first.grant_id, first.package_id) == ("cli_1", "grt_1", "gpkg_1")
    assert (first.request_id, first.address) == ("ar_1", "203.0.113.7")
    assert first.detail == {"reason": "owner", "user": "me"}
    assert (second.client_id, second.grant_id, second.package_id) == (None, None, None)
    assert second.detail == {}
