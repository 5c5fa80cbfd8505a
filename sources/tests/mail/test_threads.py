from datetime import UTC, datetime
from email import message_from_string

import pytest

from pdpp_sources.mail.message import Headers
from pdpp_sources.mail.threads import thread_of

AT = datetime(2024, 1, 5, tzinfo=UTC)


def are_joined(first: str, answer: str) -> bool:
    """Whether an answer that names nothing looks for what the mail before it leaves."""
    _, before = thread_of(Headers(message_from_string(f"{first}Subject: Rye\n\n")), "Inbox", AT)
    _, after = thread_of(Headers(message_from_string(f"{answer}Subject: Re: Rye\n\n")), "Inbox", AT)
    return bool({mark for mark, *_ in after.looks} & {mark for mark, *_ in before.leaves})


@pytest.mark.parametrize(
    "shown_by",
    [
        "Delivered-To: me@home.example\n",
        "X-Original-To: me@home.example\n",
        "Return-Path: <bakers-bounces@lists.example>\n",
        "Sender: owner-bakers@lists.example\n",
        "Reply-To: bakers@lists.example\n",
    ],
)
def test_a_list_that_no_header_names_is_told_by_its_address(shown_by: str) -> None:
    to = f"To: bakers@lists.example\n{shown_by}"
    assert are_joined(f"From: ann@x.example\n{to}", f"From: bob@y.example\n{to}")


def test_the_owner_s_own_address_is_no_list() -> None:
    for owner in ("me@home.example", "me@other.example"):
        to = f"To: me@home.example\nDelivered-To: {owner}\n"
        assert not are_joined(f"From: shop@x.example\n{to}", f"From: bank@y.example\n{to}")


def test_an_address_of_which_nothing_is_known_is_no_list() -> None:
    to = "To: bakers@lists.example\n"
    assert not are_joined(f"From: ann@x.example\n{to}", f"From: bob@y.example\n{to}")
