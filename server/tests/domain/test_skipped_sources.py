"""Accounts that were asked for and take no part, or less of one."""

from __future__ import annotations

from personal_server.domain.skipped_sources import skipped, without_related
from server.tests.enforcement.mailbox import notes


def test_a_skipped_source_is_named_with_its_label_and_its_reason() -> None:
    warning = skipped(notes(display_name="Work"), "no_time_field")
    assert warning.code == "source_skipped_not_applicable"
    assert (warning.connection_id, warning.display_name) == ("cin_a", "Work")
    assert warning.detail == {"stream": "notes", "reason": "no_time_field"}


def test_a_reason_that_is_known_is_said_in_words() -> None:
    messages = {skipped(notes(), why).message for why in ("unknown_field", "else", "x")}
    assert len(messages) == 2


def test_an_account_without_its_related_records_is_not_said_to_be_left_out() -> None:
    left_out = skipped(notes(), "field_not_granted")
    warning = without_related("cin_a", "notes", "field_not_granted")
    assert (warning.code, warning.detail) == (left_out.code, left_out.detail)
    assert warning.message != left_out.message
