"""Every refusal has a documented code."""

from __future__ import annotations

from pathlib import Path

from pdpp_kernel import errors, oauth_errors
from pdpp_kernel.errors import TYPE_OF_STATUS, PersonalServerError

PAGE = Path(__file__).parents[3] / "docs" / "errors.md"


def test_each_code_is_documented_and_has_a_type() -> None:
    page = PAGE.read_text(encoding="utf-8")
    found = [
        refusal
        for refusal in {**vars(errors), **vars(oauth_errors)}.values()
        if isinstance(refusal, type) and issubclass(refusal, PersonalServerError)
    ]
    assert len(found) > 20
    assert [r.code for r in found if f"`{r.code}`" not in page] == []
    assert {r.status for r in found} <= TYPE_OF_STATUS.keys()


def test_what_tells_of_sources_is_denied_and_the_rest_is_told() -> None:
    for reason in oauth_errors.HIDDEN_REASONS:
        hidden = oauth_errors.InvalidAuthorizationDetails("x", reason=reason)
        assert hidden.for_client.code == "access_denied"
    told = oauth_errors.InvalidAuthorizationDetails("x", reason="unknown_stream")
    assert told.for_client is told
