"""Accounts as they are added on a page, against a real dovecot: tried once, chosen, fetched."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import InvalidRequest, InvalidState
from pdpp_sources.mailbox_messages import SignIn
from personal_server.app import account_sign_ups
from personal_server.app.account_sign_ups import (
    StoredSignUps,
    mailbox_place,
    new_mailbox,
)
from personal_server.app.feed_secrets import FILE, FeedSecrets
from personal_server.app.feed_sign_ins import new_password
from personal_server.app.feeding import feed_engine, feed_store
from personal_server.app.mailbox_runs import MailPlace
from personal_server.app.oauth_access import OAuthAccess
from personal_server.app.stores import Stores, open_stores
from personal_server.feeds.feed_kinds import ADDRESS_BOOKS, CALENDARS, MAILBOX
from personal_server.feeds.feed_states import FeedState
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.feeds.wanted_accounts import SeenFolder, WantedAccount, chosen_folders
from personal_server.settings import Settings
from personal_server.storage.feed_rows import FOLLOW, FeedRow
from personal_server.storage.sql.care.feeds import SqlFeeds
from server.tests.app.importing_here import ImportHere
from server.tests.app.test_feeding import Fed
from server.tests.app.test_mailbox_runs import put, signed_in
from tests.dovecot import PASSWORD, USER, mail_server, needs_dovecot


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", time_zone="UTC")


@pytest.fixture
def stores(settings: Settings) -> Iterator[Stores]:
    with open_stores(settings, serving=False) as found:
        yield found


def wanted(**over: object) -> WantedAccount:
    account = WantedAccount(address=USER, password=PASSWORD, kinds=frozenset({MAILBOX}))
    return replace(account, **over)


def rows(stores: Stores) -> list[FeedRow]:
    return feed_store(stores).feeds()


@needs_dovecot
def test_an_account_is_signed_in_to_once_its_folders_are_chosen_and_its_mails_come(
    stores: Stores, settings: Settings
) -> None:
    sign_ups = StoredSignUps(stores)
    with mail_server() as server:
        host = f"127.0.0.1:{server.port}"
        with signed_in(server) as client:
            put(client, "INBOX", range(4))
            put(client, "Old", range(4, 7))
            put(client, "Junk", range(7, 9))
        with pytest.raises(InvalidState) as refused:
            sign_ups.add(wanted(host=host, password="open sesame 42"))
        assert refused.value.members["feed_code"] == "sign_in_refused"
        assert server.log.count("Password mismatch") == 1
        assert rows(stores) == []
        (feed,) = sign_ups.add(wanted(host=host))
        assert (feed.state, feed.name) == (FeedState.PAUSED, USER)
        seen = sign_ups.folders(feed)
        assert [(e.name, e.mails, e.is_usual) for e in seen] == [
            ("INBOX", 4, True),
            ("Old", 3, True),
            ("Junk", 2, False),
        ]
        signed = server.log.count("Login: user")
        with pytest.raises(InvalidState):
            sign_ups.add(wanted(host=host))
        assert server.log.count("Login: user") == signed  # an account that is there is not tried
        sign_ups.choose(feed, ["INBOX"], FOLLOW)
        (feed,) = rows(stores)
        assert (feed.state, feed.chosen, feed.deletions) == ("waiting", ("INBOX",), FOLLOW)
        engine = feed_engine(settings, stores, ImportHere.over(stores, settings))
        fed = Fed(stores, engine, feed.feed_id)
        fed.run()
        assert fed.held() == {"messages": 4}
        assert sign_ups.items(feed) == 4
    data = settings.data_dir
    for path in (each for each in data.rglob("*") if each.is_file()):
        assert PASSWORD.encode() not in path.read_bytes(), path
    sign_ups.remove(feed)
    assert (data / FILE).read_bytes() == b"{}"
    assert fed.held() == {"messages": 4}


@pytest.mark.parametrize(
    "over",
    [
        {"address": "ada"},
        {"password": ""},
        {"kinds": frozenset[str]()},
        {"host": ""},
        {"host": "imap.example.org/x"},
        {"host": "imap.example.org:99999"},
        {"host": "imap.example.org:0"},
        {"host": "imap://[x"},
        {"address": "ada@outlook.com"},
        {"kinds": frozenset({CALENDARS})},
        {"kinds": frozenset({CALENDARS}), "caldav": "http://dav.example.org/"},
    ],
)
def test_what_no_account_is_is_refused_before_anything_is_kept(
    stores: Stores, over: dict[str, object]
) -> None:
    with pytest.raises(InvalidRequest):
        StoredSignUps(stores).add(wanted(**over))
    assert rows(stores) == []


def test_calendars_alone_are_kept_without_a_look(stores: Stores) -> None:
    sign_ups = StoredSignUps(stores)
    kinds = frozenset({CALENDARS})
    (feed,) = sign_ups.add(wanted(address="ada@gmx.de", kinds=kinds))
    assert (feed.place, feed.state) == ("caldavs://ada%40gmx.de@caldav.gmx.net/", "waiting")
    with pytest.raises(InvalidState):
        sign_ups.add(wanted(address="ada@gmx.de", kinds=kinds))


def test_of_several_kinds_all_are_kept_or_none(stores: Stores) -> None:
    sign_ups, both = StoredSignUps(stores), frozenset({CALENDARS, ADDRESS_BOOKS})
    (contacts,) = sign_ups.add(wanted(address="ada@gmx.de", kinds=frozenset({ADDRESS_BOOKS})))
    with pytest.raises(InvalidState):
        sign_ups.add(wanted(address="ada@gmx.de", kinds=both))
    feed_store(stores).change_feed(
        contacts.feed_id, lambda e: dataclasses.replace(e, place="elsewhere")
    )
    with pytest.raises(InvalidState):  # its name is another's
        sign_ups.add(wanted(address="ada@gmx.de", kinds=both))
    assert [each.feed_id for each in rows(stores)] == [contacts.feed_id]
    assert list(orjson.loads((stores.data_dir / FILE).read_bytes())) == [contacts.feed_id]


def test_a_feed_has_its_password_from_the_first_moment(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_feed, found = SqlFeeds.add_feed, list[str | None]()

    def looked_at(store: SqlFeeds, feed: FeedRow) -> None:
        add_feed(store, feed)
        found.append(FeedSecrets.of(stores).password(feed))

    monkeypatch.setattr(SqlFeeds, "add_feed", looked_at)
    StoredSignUps(stores).add(wanted(address="ada@gmx.de", kinds=frozenset({CALENDARS})))
    assert found == [PASSWORD]


def test_a_password_that_was_refused_while_folders_are_chosen_is_not_tried_again(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def refused_at(place: MailPlace, sign_in: SignIn) -> list[SeenFolder]:
        tried.append(sign_in.password)
        if sign_in.password != PASSWORD:
            raise FetchTrouble("sign_in_refused")
        return []

    monkeypatch.setattr(account_sign_ups, "folders_at", refused_at)
    sign_ups = StoredSignUps(stores)
    sign_ups.add(wanted(host="127.0.0.1"))
    FeedSecrets.of(stores).keep(rows(stores)[0], "ended 7")
    for _ in range(2):
        with pytest.raises(InvalidState) as refused:
            sign_ups.folders(rows(stores)[0])
        assert refused.value.members["feed_code"] == "sign_in_refused"
    assert tried == [PASSWORD, "ended 7"]
    assert (rows(stores)[0].state, rows(stores)[0].code) == ("paused", "sign_in_refused")
    sign_ups.give_password(rows(stores)[0], PASSWORD)
    assert sign_ups.folders(rows(stores)[0]) == []
    assert (rows(stores)[0].state, rows(stores)[0].code) == ("paused", None)


def test_a_password_does_not_replace_tokens(stores: Stores) -> None:
    sign_ups = StoredSignUps(stores)
    (feed,) = sign_ups.add(wanted(address="ada@gmx.de", kinds=frozenset({CALENDARS})))
    assert sign_ups.sign_in_command(feed) is None
    tokens = OAuthAccess("google", "", "", "id", None, "renewal", "access", 0).text
    new_password(stores, feed, tokens)
    (feed,) = rows(stores)
    with pytest.raises(InvalidState) as refused:
        sign_ups.give_password(feed, PASSWORD)
    assert FeedSecrets.of(stores).password(feed) == tokens
    command = sign_ups.sign_in_command(feed)
    assert command == "feed sign-in 'ada@gmx.de calendars'"
    assert command in str(refused.value.members["next_step"])


def test_tokens_that_are_lost_are_no_password_that_is_missing(stores: Stores) -> None:
    place = mailbox_place("ada@example.org", host="imap.example.org")
    tokens = OAuthAccess("microsoft", "", "", "id", None, "renewal", "access", 0).text
    feed = new_mailbox("ada@example.org", place).added(stores, tokens)
    FeedSecrets.of(stores).forget(feed)  # as a restore does
    sign_ups = StoredSignUps(stores)
    with pytest.raises(InvalidState) as refused:
        sign_ups.folders(feed)
    assert refused.value.members["feed_code"] == "sign_in_ended"
    assert sign_ups.sign_in_command(feed) == (
        "feed sign-in ada@example.org --oauth microsoft --client-id ID"
    )
    with pytest.raises(InvalidState):
        sign_ups.give_password(feed, PASSWORD)


def test_a_provider_without_passwords_is_named_with_the_command_that_signs_in() -> None:
    with pytest.raises(InvalidRequest) as refused:
        mailbox_place("ada@outlook.com")
    step = str(refused.value.members["next_step"])
    assert "feed add-mailbox ada@outlook.com --oauth microsoft --client-id ID" in step


def test_a_server_that_lets_everybody_wait_takes_few_workers(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def acquire(self, *, blocking: bool) -> bool:
            return blocking

    monkeypatch.setattr(account_sign_ups, "_looks", Full())
    with pytest.raises(InvalidState) as refused:
        StoredSignUps(stores).add(wanted(host="127.0.0.1:9"))
    assert "feed_code" not in refused.value.members


def test_a_choice_of_the_usual_folders_is_none() -> None:
    assert chosen_folders(["Sent", "INBOX"], ["INBOX", "Sent"]) == ()
    assert chosen_folders(["INBOX"], ["INBOX", "Sent"]) == ("INBOX",)
    assert chosen_folders(["INBOX", "Junk"], ["INBOX"]) == ("INBOX", "Junk")
