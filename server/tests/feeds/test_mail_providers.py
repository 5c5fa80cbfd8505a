"""The table of providers: each can be signed in to as it says, and an address tells one of them."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

import pytest

from personal_server.app.account_sign_ups import dav_place, mailbox_place
from personal_server.feeds.feed_kinds import ADDRESS_BOOKS, CALENDARS
from personal_server.feeds.mail_providers import (
    MailProvider,
    Password,
    mail_providers,
    provider_of,
)

PROVIDERS = mail_providers()


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=list(PROVIDERS))
def test_each_provider_has_places_that_feeds_can_be_made_of(provider: MailProvider) -> None:
    address = f"ada.lovelace@{provider.domains[0]}"
    assert urlsplit(provider.help).scheme == "https"
    assert all(each == each.lower() and "." in each for each in provider.domains)
    if provider.password is not Password.NONE:
        place = mailbox_place(address)
        assert (place.host, place.port, place.is_plain) == (provider.imap, 993, False)
        assert place.user in (address, "ada.lovelace")
    for kind, url in ((CALENDARS, provider.caldav), (ADDRESS_BOOKS, provider.carddav)):
        if url is not None:
            assert dav_place(kind, address, None).url == url


def test_a_domain_is_of_one_provider_and_the_table_is_as_large_as_it_is_said_to_be() -> None:
    domains = Counter(each for one in PROVIDERS.values() for each in one.domains)
    assert [name for name, times in domains.items() if times > 1] == []
    assert len({one.name for one in PROVIDERS.values()}) == len(PROVIDERS) >= 30


@pytest.mark.parametrize(
    ("address", "provider_id"),
    [
        ("ada@fastmail.com", "fastmail"),
        ("Ada@GoogleMail.COM", "gmail"),
        ("ada@icloud.com", "icloud"),
        ("ada@example.org", None),
        ("ada@fastmail.com.example.org", None),
    ],
)
def test_an_address_tells_its_provider(address: str, provider_id: str | None) -> None:
    found = None if provider_id is None else PROVIDERS[provider_id]
    assert provider_of(address) == found


def test_a_name_to_sign_in_with_is_what_the_provider_says() -> None:
    assert PROVIDERS["icloud"].user_of("ada@icloud.com") == "ada"
    assert PROVIDERS["gmail"].user_of("ada@gmail.com") == "ada@gmail.com"
