"""Accounts added from a browser: what a form asks, and that no page shows a password again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from shlex import quote

import pytest

from pdpp_kernel.errors import InvalidRequest, InvalidState
from personal_server.console.feed_pages import ROOT
from personal_server.feeds.feed_kinds import MAILBOX
from personal_server.feeds.mail_providers import mail_providers
from personal_server.feeds.wanted_accounts import SeenFolder, WantedAccount
from personal_server.storage.feed_rows import FeedRow
from server.tests.console.browsing import Browser, marked, numbers, states
from server.tests.console.household import HOME, Household
from server.tests.feeds.test_feed_states import NOW, a_feed

NEW, FEED = f"{ROOT}/new", f"{ROOT}/fee_1"
SECRET = "open sesame 42"
FOLDERS = [SeenFolder("INBOX", 1_200, True), SeenFolder("<b>&", None, True)]
FOLDERS.append(SeenFolder("Junk", 7, False))


@dataclass
class FakeSignUps:
    """An account at a server of the test, which takes one password."""

    feeds: list[FeedRow]
    asked: list[WantedAccount] = field(default_factory=list[WantedAccount])
    told: list[object] = field(default_factory=list[object])
    has_keyring: bool = False
    has_tokens: bool = False

    def add(self, wanted: WantedAccount) -> list[FeedRow]:
        self.asked.append(wanted)
        if not wanted.kinds:
            raise InvalidRequest("Something is missing.", param="kind")
        if wanted.password != SECRET:
            raise InvalidState("It was refused.", feed_code="sign_in_refused")
        self.feeds.append(a_feed(kind=MAILBOX, state="paused", name=wanted.address))
        return self.feeds[-1:]

    def folders(self, feed: FeedRow) -> list[SeenFolder]:
        if feed.place == "gone":
            raise InvalidState("It did not answer.", feed_code="mailbox_unreachable")
        return FOLDERS

    def choose(self, feed: FeedRow, chosen: Sequence[str], deletions: str) -> None:
        self.told.append((tuple(chosen), deletions))
        self.feeds[:] = [replace(feed, state="running")]

    def sign_in_command(self, feed: FeedRow) -> str | None:
        return f"feed sign-in {quote(feed.name)}" if self.has_tokens else None

    def give_password(self, feed: FeedRow, password: str) -> None:
        self.told.append(password)

    def fill(self, feed: FeedRow, account: str) -> None:
        self.told.append(account)

    def items(self, feed: FeedRow) -> int:
        return 300

    def remove(self, feed: FeedRow) -> None:
        self.feeds.remove(feed)


@pytest.fixture
def sign_ups(house: Household) -> FakeSignUps:
    found = FakeSignUps(house.feeds)
    house.sign_ups = lambda: found
    house.app = house.console()
    return found


@pytest.fixture
def signed(house: Household, sign_ups: FakeSignUps) -> Browser:
    return house.signed_in()


def test_an_owner_signs_in_chooses_folders_and_sees_mails_arrive(
    house: Household, sign_ups: FakeSignUps, signed: Browser
) -> None:
    assert f'href="{NEW}"' in signed.get("/owner/records").text
    page = signed.get(NEW)
    assert len(marked(page, "provider")) == len(mail_providers())
    answer = signed.submit(page, NEW, address=" ada@gmail.com ", password=SECRET)
    assert (answer.status, answer.headers["location"]) == (303, FEED)
    assert sign_ups.asked == [
        WantedAccount(address="ada@gmail.com", password=SECRET, kinds=frozenset({MAILBOX}))
    ]
    choosing = signed.follow(answer)
    assert states(choosing) == ["choosing"]
    assert len(marked(choosing, "folder")) == 3
    assert "<b>&" not in choosing.text
    begun = signed.submit(choosing, f"{FEED}/folders")
    assert begun.headers["location"] == f"{FEED}?of=1200"
    assert sign_ups.told == [((), "keep")]
    shown = signed.follow(begun)
    assert states(shown) == ["running"]
    assert numbers(shown, "items") == [300]
    assert 'max="1200" value="300"' in shown.text
    assert 'http-equiv="refresh"' in shown.text
    house.feeds[:] = [a_feed(kind=MAILBOX, succeeded_at_ns=NOW, connection_ids=(HOME,))]
    done = signed.get(FEED)
    assert marked(done, "account")
    assert 'http-equiv="refresh"' not in done.text
    assert signed.submit(done, f"{FEED}/check").status == 303
    assert house.asked == ["fee_1"]
    assert signed.submit(done, f"{FEED}/remove").headers["location"] == "/owner/records"
    assert signed.get(FEED).status == 404


@pytest.mark.parametrize("password", ["wrong pass 7", ""])
def test_a_form_that_did_not_work_comes_again_without_its_password(
    sign_ups: FakeSignUps, signed: Browser, password: str
) -> None:
    page = signed.get(NEW)
    sent = {"address": "ada@<i>.org", "host": "imap.example.org", "provider": "gmx"}
    again = signed.submit(page, NEW, password=password, **sent)
    assert again.status == 409
    assert marked(again, "problem")
    assert not password or password not in again.text
    assert dict(again.form(NEW)) | sent == dict(again.form(NEW)) | {"password": ""}
    assert sign_ups.feeds == []


def test_only_the_form_of_a_signed_in_owner_is_taken(
    house: Household, sign_ups: FakeSignUps, signed: Browser
) -> None:
    fields = [("address", "ada@gmail.com"), ("password", SECRET), ("kind", MAILBOX)]
    assert signed.post(NEW, fields).error == "csrf_failed"
    assert house.browser().post(NEW, fields).status in (303, 403)
    assert sign_ups.asked == []


def test_some_folders_are_chosen_and_none_is_no_choice(
    sign_ups: FakeSignUps, signed: Browser
) -> None:
    sign_ups.feeds.append(a_feed(kind=MAILBOX, state="paused"))
    page = signed.get(FEED)
    kept = [each for each in page.form(f"{FEED}/folders") if each[0] != "folder"]
    assert signed.post(f"{FEED}/folders", kept).status == 400
    kept = [each for each in kept if each[0] != "deletions"]
    ticked = [*kept, ("folder", "7:Junk"), ("folder", "x:a:b"), ("deletions", "follow")]
    assert signed.post(f"{FEED}/folders", ticked).headers["location"] == f"{FEED}?of=7"
    assert sign_ups.told == [(("Junk", "a:b"), "follow")]
    assert signed.post(f"{FEED}/folders", ticked).headers["location"] == FEED


def test_a_feed_that_needs_its_owner_takes_a_password_or_an_account(
    sign_ups: FakeSignUps, signed: Browser
) -> None:
    feed = a_feed(kind=MAILBOX, state="needs_you", code="sign_in_refused", failing_since_ns=NOW)
    sign_ups.feeds.append(feed)
    page = signed.get(FEED)
    assert marked(page, "problem")
    assert signed.submit(page, f"{FEED}/password", password=SECRET).status == 303
    sign_ups.feeds[:] = [replace(feed, code="ambiguous_connection")]
    page = signed.get(FEED)
    assert len(marked(page, "whose")) == 1
    for chosen in (HOME, "new"):
        assert signed.submit(page, f"{FEED}/account", account=chosen).status == 303
    assert sign_ups.told == [SECRET, HOME, feed.name]


@pytest.mark.parametrize("code", [None, "sign_in_refused"])
def test_folders_that_cannot_be_listed_leave_the_way_to_another_password(
    sign_ups: FakeSignUps, signed: Browser, code: str | None
) -> None:
    sign_ups.feeds.append(a_feed(kind=MAILBOX, state="paused", place="gone", code=code))
    page = signed.get(FEED)
    assert marked(page, "problem")
    assert dict(page.form(f"{FEED}/password")).keys() == {"_csrf", "password"}


@pytest.mark.parametrize(
    "over",
    [
        {"state": "needs_you", "code": "sign_in_ended"},
        {"state": "needs_you", "code": "sign_in_missing"},
        {"state": "paused", "place": "gone"},
    ],
)
def test_a_feed_that_signs_in_by_tokens_shows_the_command_and_no_form_for_a_password(
    sign_ups: FakeSignUps, signed: Browser, over: dict[str, str]
) -> None:
    sign_ups.has_tokens = True
    sign_ups.feeds.append(a_feed(kind=MAILBOX, name="Ada's mail", **over))
    page = signed.get(FEED)
    assert marked(page, "sign-in")[0].endswith(f" feed sign-in {quote(sign_ups.feeds[0].name)}")
    assert 'type="password"' not in page.text


def test_a_provider_that_takes_no_password_is_shown_with_the_command_that_adds_its_mailbox(
    signed: Browser,
) -> None:
    page = signed.get(f"{ROOT}/new")
    (command,) = marked(page, "add-command")
    assert command.endswith(" feed add-mailbox you@outlook.com --oauth microsoft --client-id ID")
