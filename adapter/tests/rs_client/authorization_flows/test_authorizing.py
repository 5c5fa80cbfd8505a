from __future__ import annotations

from typing import Any

import pytest

from adapter.tests.rs_client.provider import (
    DOWN,
    ORIGIN,
    PENDING,
    SERVER,
    SLOW_DOWN,
    FakeProvider,
    FakeTime,
)
from pdpp_mcp_server.rs_client.authorization_flows import (
    PollWait,
    RequestRefused,
    ask_as_owner,
    ask_for_device,
    poll_device,
    register,
    revoke,
)
from pdpp_mcp_server.rs_client.credentials import (
    ApprovalDenied,
    ApprovalExpired,
    ConnectNotSupported,
    MetadataFailure,
    ProviderUnavailable,
)
from pdpp_mcp_server.rs_client.discovery import discover


def poll(provider: FakeProvider, time: FakeTime, timeout: float | None = None) -> Any:
    exchange = provider.exchange
    found = discover(exchange, ORIGIN)
    offer = ask_for_device(exchange, found, "cli_1", None)
    waiting = PollWait(time.sleep, time.monotonic, timeout)
    return poll_device(exchange, found, "cli_1", offer, waiting)


def test_polling_keeps_the_interval_in_seconds_and_slows_down_when_told() -> None:
    time = FakeTime()
    provider = FakeProvider(polls=[PENDING, SLOW_DOWN, PENDING, SLOW_DOWN])
    assert poll(provider, time)["access_token"] == "pdpp_at_1"
    assert time.slept == [5, 5, 10, 10, 15]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"error": "access_denied"}, ApprovalDenied),
        ({"error": "expired_token"}, ApprovalExpired),
        ({"error": "invalid_grant"}, RequestRefused),
        ({}, MetadataFailure),
    ],
)
def test_each_end_of_polling_has_its_error(answer: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        poll(FakeProvider(polls=[PENDING, answer]), FakeTime())


def test_a_server_that_restarts_meanwhile_is_asked_again_and_less_often() -> None:
    time = FakeTime()
    provider = FakeProvider(polls=[PENDING, DOWN, DOWN, PENDING])
    assert poll(provider, time)["access_token"] == "pdpp_at_1"
    assert time.slept == [5, 5, 10, 15, 15]


def test_a_server_that_came_back_and_saw_no_decision_says_so() -> None:
    with pytest.raises(ApprovalExpired):
        poll(FakeProvider(polls=[DOWN, {"error": "expired_token"}]), FakeTime())
    with pytest.raises(ApprovalExpired):
        poll(FakeProvider(polls=[DOWN, *[PENDING] * 100]), FakeTime())


def test_a_server_that_stays_away_is_told_as_such() -> None:
    with pytest.raises(ProviderUnavailable):
        poll(FakeProvider(polls=[PENDING, *[DOWN] * 100]), FakeTime())


def test_polling_ends_with_the_code_or_sooner() -> None:
    time = FakeTime()
    with pytest.raises(ApprovalExpired):
        poll(FakeProvider(polls=[PENDING] * 200), time)
    assert time.now == 600
    time = FakeTime()
    with pytest.raises(ApprovalExpired):
        poll(FakeProvider(polls=[PENDING] * 200), time, timeout=12)
    assert time.now == 10


def test_the_request_names_the_resource_and_carries_the_details() -> None:
    provider = FakeProvider()
    exchange = provider.exchange
    details = [{"type": "x"}]
    ask_for_device(exchange, discover(exchange, ORIGIN), "cli_1", details)
    (form,) = provider.forms("/oauth/device_authorization")
    assert form["resource"] == ORIGIN
    assert form["authorization_details"] == '[{"type": "x"}]'


def test_the_owner_profile_asks_for_nothing_else() -> None:
    provider = FakeProvider()
    exchange = provider.exchange
    ask_as_owner(exchange, discover(exchange, ORIGIN))
    (form,) = provider.forms("/oauth/device_authorization")
    assert form == {"client_id": "pdpp-owner-cli", "scope": "pdpp:owner"}


def test_without_registration_the_built_in_client_is_used() -> None:
    metadata = {k: v for k, v in FakeProvider().metadata().items() if "registration_end" not in k}
    exchange = FakeProvider(changes={SERVER: (200, metadata)}).exchange
    assert register(exchange, discover(exchange, ORIGIN), "n") == "pdpp-cli"
    metadata["pdpp_pre_registered_public_clients"] = []
    exchange = FakeProvider(changes={SERVER: (200, metadata)}).exchange
    with pytest.raises(ConnectNotSupported):
        register(exchange, discover(exchange, ORIGIN), "n")


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, RequestRefused), (429, ProviderUnavailable), (503, ProviderUnavailable)],
)
def test_refusals_name_the_servers_code_and_nothing_it_wrote(
    status: int, error: type[Exception]
) -> None:
    body = {"error": "invalid_client_metadata", "error_description": "a secret"}
    provider = FakeProvider(changes={"/oauth/register": (status, body)})
    exchange = provider.exchange
    with pytest.raises(error) as caught:
        register(exchange, discover(exchange, ORIGIN), "n")
    assert "a secret" not in str(caught.value)


def test_a_token_is_given_back_with_its_client() -> None:
    provider = FakeProvider()
    exchange = provider.exchange
    revoke(exchange, discover(exchange, ORIGIN), "cli_1", "pdpp_rt_1")
    assert provider.forms("/oauth/revoke") == [{"token": "pdpp_rt_1", "client_id": "cli_1"}]


def test_an_offer_shows_no_device_code() -> None:
    exchange = FakeProvider().exchange
    assert "pdpp_dc_1" not in repr(
        ask_for_device(exchange, discover(exchange, ORIGIN), "cli_1", None)
    )


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "vscode://file/etc/passwd",
        "--help",
        "https://me.example\\@other.example/",
        "https://user@other.example/",
        "https://me.example/\x1b]52;c;eA==\x07",
    ],
)
@pytest.mark.parametrize("member", ["verification_uri", "verification_uri_complete"])
def test_a_browser_is_sent_to_web_pages_only(address: str, member: str) -> None:
    offer = {
        "device_code": "pdpp_dc_1",
        "user_code": "WDJB-MJHT",
        "verification_uri": f"{ORIGIN}/device",
        member: address,
    }
    exchange = FakeProvider(changes={"/oauth/device_authorization": (200, offer)}).exchange
    with pytest.raises(MetadataFailure):
        ask_for_device(exchange, discover(exchange, ORIGIN), "cli_1", None)
