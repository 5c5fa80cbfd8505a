"""What holds a secret in clear says it in no text of its own, such as one of a log."""

from __future__ import annotations

import pytest

from personal_server.granting.clients import IntrospectionCredentials
from personal_server.granting.codes import Redemption
from personal_server.granting.decisions import Decided
from personal_server.granting.owner_sessions import SignedIn
from personal_server.granting.pending_requests import DeviceCodes
from personal_server.granting.tokens import Issued, Refresh, TokenPair

SECRET = "pdpp_secret"


@pytest.mark.parametrize(
    "holder",
    [
        Issued(SECRET, None, 1, 1, "client", "", ""),
        Issued("", SECRET, 1, 1, "client", "", ""),
        TokenPair(SECRET),
        TokenPair("", SECRET),
        Refresh("cli_1", SECRET, "none"),
        Redemption("cli_1", SECRET, "none"),
        Redemption("cli_1", "", "none", verifier=SECRET),
        DeviceCodes(SECRET, "", 1, 1),
        DeviceCodes("", SECRET, 1, 1),
        SignedIn(SECRET.encode(), "", 1, 1, 1, None, None),
        SignedIn(b"", SECRET, 1, 1, 1, None, None),
        IntrospectionCredentials("int_1", SECRET),
        Decided("code", f"https://app.example/cb?code={SECRET}"),
    ],
)
def test_a_secret_is_in_no_text(holder: object) -> None:
    assert SECRET not in repr(holder)
