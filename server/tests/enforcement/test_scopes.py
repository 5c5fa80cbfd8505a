"""Whose records exist for a request."""

from __future__ import annotations

from pdpp_kernel.criteria import Condition
from pdpp_kernel.operators import Operator
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.scopes import Scope, scope_of, scopes_of
from server.tests.enforcement.mailbox import MAILS, TEXT, mails, notes

WINDOW = TimeConstraint("sent_at", 1)
ONLY = (Condition("folder", TEXT, Operator.EQ, "in"),)


def test_a_scope_has_what_the_source_grants_and_nothing_of_the_grant() -> None:
    source = mails("id", "folder", time_constraint=WINDOW, resources=frozenset({"m1"}), only=ONLY)
    assert scope_of(source) == Scope(
        "cin_a",
        MAILS,
        ("id", "folder"),
        window=WINDOW,
        resources=frozenset({"m1"}),
        connector_key="mail",
        only=ONLY,
    )


def test_what_is_made_of_others_sees_what_they_show() -> None:
    made = mails(made_of=(notes("id"),))
    assert scope_of(made).made_of == scopes_of((notes("id"),))
    assert scope_of(mails()).made_of is None


def test_records_are_picked_by_key_or_content() -> None:
    by_key, by_content = mails(resources=frozenset({"m1"})), mails(only=ONLY)
    picked = [scope_of(each).is_picked for each in (by_key, by_content, mails())]
    assert picked == [True, True, False]


def test_the_window_alone_is_left_of_what_is_unpicked() -> None:
    picked = scope_of(mails(time_constraint=WINDOW, resources=frozenset({"m1"}), only=ONLY))
    assert picked.unpicked == scope_of(mails(time_constraint=WINDOW))
    whole = scope_of(mails())
    assert whole.unpicked is whole
