"""Feeds that sign in by tokens: against a real dovecot that asks about them, and a provider."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx2
import pytest
from msgspec.structs import replace

from pdpp_kernel.values import NANOSECONDS
from pdpp_mcp_server.rs_client.authorization_flows import DeviceOffer, PollWait
from pdpp_mcp_server.rs_client.discovery import ProviderExchange, network_exchange
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.oauth_access import access_of, access_token
from personal_server.app.oauth_flows import OAuthClient, provider_named
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.feeds.oauth_providers import OAUTH_PROVIDERS
from server.tests.app.test_mailbox_runs import FeedOf, again, feed_of, put, settings, signed_in
from tests.dovecot import USER, TokenAsks, mail_server, needs_dovecot
from tests.oauth_provider import USER_CODE, OAuthProviderDouble, oauth_provider

__all__ = ["feed_of", "settings"]


@pytest.fixture
def provider() -> Iterator[OAuthProviderDouble]:
    with oauth_provider(USER) as double:
        yield double


def client_at(provider: OAuthProviderDouble) -> OAuthClient:
    found = provider_named(provider.address, "mail offline_access", network_exchange)
    return OAuthClient(provider.address, found, "client-1", None)


def by_code(provider: OAuthProviderDouble, now_ns: int = 0) -> str:
    """What is kept once the owner typed the code."""
    waited = PollWait(lambda _: None, lambda: 0.0)
    given = client_at(provider).by_code(network_exchange(), lambda _: None, waited)
    return client_at(provider).access(given, now_ns)[0].text


@needs_dovecot
@pytest.mark.parametrize("mechanism", ["xoauth2", "oauthbearer"])
def test_a_mailbox_is_fetched_by_tokens_that_are_renewed_once_each(
    mechanism: str, provider: OAuthProviderDouble, feed_of: FeedOf
) -> None:
    with mail_server(tokens=TokenAsks(f"{provider.address}/introspect", mechanism)) as server:
        with signed_in(server) as client:
            put(client, "INBOX", range(2))
        fed = feed_of(server.place, by_code(provider))  # an access token of long ago
        assert (fed.run().records_new, fed.run().code) == (2, None)
        assert provider.renewals == 1
        provider.active.clear()  # the mail server refuses a token that would last
        assert fed.run().code == "sign_in_ended"
        assert (fed.feed.state, provider.renewals) == ("needs_you", 1)
        FeedSecrets.of(fed.stores).keep(fed.feed, by_code(provider))
        again(fed)
        assert fed.run().code is None
        provider.end()
        FeedSecrets.of(fed.stores).keep(fed.feed, by_code(provider))
        provider.end()
        assert fed.run().code == "sign_in_ended"
        assert fed.feed.state == "needs_you"


def test_a_token_is_renewed_by_one_of_many_that_need_it(
    provider: OAuthProviderDouble, feed_of: FeedOf
) -> None:
    fed = feed_of("imap://ada@127.0.0.1:1", by_code(provider))
    secrets, found = FeedSecrets.of(fed.stores), list[str]()
    threads = [
        threading.Thread(target=lambda: found.append(access_token(secrets, fed.feed)))
        for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (set(found), len(found), provider.renewals) == ({"access-2"}, 4, 1)
    access = access_of(secrets.password(fed.feed) or "")
    assert access is not None
    assert access.refresh_token == "refresh-2"


@pytest.mark.parametrize("chosen", ["a password", None])
def test_what_its_owner_chose_while_a_sign_in_was_renewed_stays(
    provider: OAuthProviderDouble, feed_of: FeedOf, chosen: str | None
) -> None:
    fed = feed_of("imap://ada@127.0.0.1:1", by_code(provider))
    secrets = FeedSecrets.of(fed.stores)

    def meanwhile() -> ProviderExchange:
        secrets.forget(fed.feed)
        if chosen is not None:
            secrets.keep(fed.feed, chosen)
        return network_exchange()

    with pytest.raises(FetchTrouble) as trouble:
        access_token(secrets, fed.feed, meanwhile)
    assert trouble.value.code == "provider_unreachable"
    assert (secrets.password(fed.feed), provider.renewals) == (chosen, 1)


def test_a_provider_that_does_not_answer_ends_nothing(
    provider: OAuthProviderDouble, feed_of: FeedOf
) -> None:
    fed = feed_of("imap://ada@127.0.0.1:1", by_code(provider).replace("/token", "/nowhere"))
    with pytest.raises(FetchTrouble) as trouble:
        access_token(FeedSecrets.of(fed.stores), fed.feed)
    assert trouble.value.code == "provider_unreachable"
    assert fed.run().code == "provider_unreachable"
    assert fed.feed.state == "resting"


def test_an_owner_signs_in_with_a_code_on_any_device(provider: OAuthProviderDouble) -> None:
    shown: list[DeviceOffer] = []
    client = client_at(provider)
    given = client.by_code(network_exchange(), shown.append, PollWait(lambda _: None, lambda: 0.0))
    access, ends_ns = client.access(given, 0)
    assert [each.user_code for each in shown] == [USER_CODE]
    assert provider.asked == {"client_id": "client-1", "scope": "mail offline_access"}
    assert (access.access_token, access.refresh_token, ends_ns) == ("access-1", "refresh-1", None)


def test_a_client_shows_its_secret_wherever_it_asks(
    provider: OAuthProviderDouble, feed_of: FeedOf
) -> None:
    provider.client_secret = "secret-1"
    client = replace(client_at(provider), client_secret="secret-1")
    given = client.by_code(network_exchange(), lambda _: None, PollWait(lambda _: None, lambda: 0))
    fed = feed_of("imap://ada@127.0.0.1:1", client.access(given, 0)[0].text)
    assert access_token(FeedSecrets.of(fed.stores), fed.feed) == "access-2"


def test_an_owner_signs_in_with_a_browser_of_this_machine(provider: OAuthProviderDouble) -> None:
    provider.renewable_seconds = 604_799  # as Google says of a client that is being tested
    client, browsers = client_at(provider), list[threading.Thread]()

    def browser(address: str) -> None:
        browsers.append(threading.Thread(target=httpx2.get, args=[address], kwargs=FOLLOWING))
        browsers[0].start()

    given = client.by_browser(network_exchange(), USER, browser, lambda size: bytes(size))
    browsers[0].join()
    access, ends_ns = client.access(given, 5)
    assert access.access_token == "access-1"
    assert ends_ns == 604_799 * NANOSECONDS + 5
    assert provider.asked["login_hint"] == USER
    assert "resource" not in provider.asked


FOLLOWING = {"follow_redirects": True}


def test_every_provider_of_the_table_is_asked_over_tls() -> None:
    for each in OAUTH_PROVIDERS.values():
        addresses = [each.authorization, each.token, *([each.device] if each.device else [])]
        assert all(address.startswith("https://") for address in addresses)
        assert each.imap
