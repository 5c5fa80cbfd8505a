"""Refusals of the authorization server: the status of each, and what they say beside their code."""

from __future__ import annotations

import pytest

from pdpp_kernel import oauth_errors
from pdpp_kernel.errors import PersonalServerError

# docs/contract/authorization-server.md: everything else is 400.
STATUSES = {
    "RequestTooLarge": 413,
    "ReviewChanged": 409,
    "ReviewStale": 409,
    "ApprovalConflict": 409,
    "RequestClosed": 410,
}
REFUSALS = {
    name: refusal
    for name, refusal in vars(oauth_errors).items()
    if isinstance(refusal, type)
    and issubclass(refusal, PersonalServerError)
    and refusal.__module__ == oauth_errors.__name__
}


@pytest.mark.parametrize("name", REFUSALS)
def test_each_has_the_status_of_the_contract(name: str) -> None:
    assert REFUSALS[name].status == STATUSES.get(name, 400)


@pytest.mark.parametrize(
    ("reason", "said"), [("unknown_stream", "unknown_stream"), (7, None), (None, None)]
)
def test_a_reason_is_a_word(reason: object, said: str | None) -> None:
    assert oauth_errors.BadRequest("x", reason=reason).reason == said
