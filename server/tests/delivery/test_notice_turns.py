"""Notices over a store, with doubles of the channels and a clock of the test: told once, folded,
silent at night, tried again, and over with their cause.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx2
import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import InvalidRequest, InvalidState, NotFound
from pdpp_kernel.values import DAY_NANOSECONDS as DAY
from pdpp_kernel.values import NANOSECONDS
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.deliveries import DeliveryOutcome
from personal_server.delivery.notice_channels import (
    add_channel,
    ask_for_tests,
    change_settings,
    channels,
    desktop,
    notice_settings,
    parse_hours,
    push,
    remove_channel,
    render_hours,
    standing_notices,
    webhook,
    with_hours,
    with_kinds_off,
)
from personal_server.delivery.notice_senders import (
    DesktopSender,
    PushSender,
    WebhookSender,
    no_option,
)
from personal_server.delivery.notice_turns import (
    GONE_WAITS_SECONDS,
    WAITS_SECONDS,
    NoticeMessage,
    Notices,
)
from personal_server.delivery.signatures import SecretBox
from personal_server.delivery.web_push import new_key
from personal_server.domain.notices import (
    HOUR_NS,
    MINUTE_NS,
    NamedFact,
    NoticeKind,
    OwnerFacts,
)
from personal_server.domain.stored import SealingKey
from personal_server.granting.audit import SERVER
from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.notice_rows import NoticeChannelRow
from personal_server.storage.ports.authorization_store import AuthorizationReader
from server.tests.delivery.browser_keys import browser, decrypted, vapid_claims
from server.tests.delivery.post_office import PUBLIC, Chance, PostOffice, Received, post_office

NOON = 20_000 * DAY + 12 * HOUR_NS
URL = "https://me.example/hook"
ORIGIN = "http://127.0.0.1:7662"
PUSH_KEY = new_key(b"p" * 32)


def request(number: int = 1, name: str = "Notes app") -> NamedFact:
    return NamedFact(f"ar_{number}", name, NOON)


@dataclass
class Town:
    """A store, an owner who lives in it, a desktop and a receiver of calls."""

    office: PostOffice
    folder: Path
    now_ns: int = NOON
    facts: OwnerFacts = field(default_factory=OwnerFacts)
    status: int = 200
    received: list[Received] = field(default_factory=list[Received])
    zone: str = "UTC"

    def __post_init__(self) -> None:
        self.store = self.office.authorization
        self.chance = Chance()
        self.secrets = SecretBox(lambda: [SealingKey(1, b"k" * 32, 0)])
        self.program, self.told = self.folder / "show", self.folder / "told"
        self.program.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$#" "$@" "${{PDPP_SECRET:-}}" >> {self.told}\n'
        )
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        self.notices = self.new_process()

    def new_process(self) -> Notices:
        """Notices as after a start."""
        transport = httpx2.MockTransport(self._receive)
        callbacks = Callbacks(resolver=self._resolve, transport=transport)
        return Notices(
            self.store,
            self._look,
            {
                "desktop": DesktopSender(self.program, {"PATH": os.defpath}, ORIGIN),
                "webhook": WebhookSender(callbacks, self.secrets, ORIGIN),
                "push": PushSender(
                    callbacks, self.secrets, lambda: PUSH_KEY, "https://me.example", self.chance
                ),
            },
            lambda: self.now_ns,
            self.chance,
            lambda: ZoneInfo(self.zone),
            str,
        )

    def _look(self, reader: AuthorizationReader, now_ns: int) -> OwnerFacts:
        del reader, now_ns
        return self.facts

    def _resolve(self, host: str) -> Sequence[str]:
        return ["10.0.0.1"] if host.startswith("inside") else [PUBLIC]

    async def _receive(self, request: httpx2.Request) -> httpx2.Response:
        self.received.append(Received(request.headers, request.content, self.now_ns, URL))
        return httpx2.Response(self.status)

    def add_desktop(self) -> NoticeChannelRow:
        with self.store.write() as writer:
            return add_channel(writer, desktop(), self.secrets, self.chance, SERVER, self.now_ns)

    def add_webhook(self, url: str = URL) -> tuple[NoticeChannelRow, bytes]:
        made = webhook(url, self.chance)
        with self.store.write() as writer:
            row = add_channel(writer, made, self.secrets, self.chance, SERVER, self.now_ns)
        return row, made.secret or b""

    async def pass_time(self, ns: int = 0) -> list[Received]:
        """Let time pass and do what is due; what the URL received."""
        before = len(self.received)
        self.now_ns += ns
        await self.notices.work()
        return self.received[before:]

    def rows(self) -> list[NoticeChannelRow]:
        with self.store.read() as reader:
            return channels(reader)

    def stands(self) -> list[str]:
        with self.store.read() as reader:
            return [each.cause.about for each in standing_notices(reader)]


@pytest.fixture(params=["sqlite", "postgres"])
def town(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Town, None, None]:
    with post_office(request.param, tmp_path) as office:
        yield Town(office, tmp_path)


@pytest.fixture
def small_town(tmp_path: Path) -> Generator[Town, None, None]:
    with post_office("sqlite", tmp_path) as office:
        yield Town(office, tmp_path)


pytestmark = pytest.mark.anyio


async def test_three_that_wait_are_one_notice_told_once_and_a_restart_repeats_nothing(
    town: Town,
) -> None:
    channel, secret = town.add_webhook()
    town.facts = OwnerFacts(requests=[request(n, f"App {n}") for n in (1, 2, 3)])
    assert await town.pass_time() == []
    (told,) = await town.pass_time(MINUTE_NS)
    assert told.is_signed_by(secret)
    event = told.event
    assert (event["type"], event["source"]) == ("pdpp.owner.notice", "/owner/notices")
    data = event["data"]
    assert (data["kind"], data["count"]) == ("request_waits", 3)
    assert data["page"] == f"{ORIGIN}/owner/"
    assert set(data) == {"kind", "count", "title", "text", "page"}
    assert all(name in data["text"] for name in ("App 1", "App 2", "App 3"))
    town.notices = town.new_process()
    assert await town.pass_time(DAY) == []
    assert [row.outcome for row in town.rows()] == ["delivered"]
    assert town.rows()[0].channel_id == channel.channel_id


@pytest.mark.parametrize("is_over", [False, True])
async def test_a_look_that_another_process_overtook_repeats_nothing(
    town: Town, is_over: bool
) -> None:
    town.add_webhook()
    stands, nothing = OwnerFacts(alarms=[request()]), OwnerFacts()
    seen, town.facts = nothing, stands
    if is_over:
        assert len(await town.pass_time()) == 1
        seen, town.facts = stands, nothing
    other = town.new_process()

    def overtaken(reader: AuthorizationReader, now_ns: int) -> OwnerFacts:
        del reader, now_ns
        with ThreadPoolExecutor(1) as pool:
            pool.submit(other.turn).result()
        return replace(seen, feeds=[NamedFact("fee_1", "Mail", NOON)])

    slow = town.new_process()
    slow.facts = overtaken
    told = [notice.kind for turn in slow.turn() for notice in turn.notices]
    assert told == [NoticeKind.FEED]
    assert set(town.stands()) == {"fee_1"} | (set() if is_over else {"ar_1"})
    assert await town.pass_time(HOUR_NS) == []


async def test_what_comes_soon_after_waits_and_is_told_as_one(small_town: Town) -> None:
    town = small_town
    town.add_webhook()
    town.facts = OwnerFacts(requests=[request(1)])
    await town.pass_time()
    assert len(await town.pass_time(MINUTE_NS)) == 1
    town.facts = OwnerFacts(requests=[request(n) for n in (1, 2, 3)])
    assert await town.pass_time(5 * MINUTE_NS) == []
    (told,) = await town.pass_time(5 * MINUTE_NS)
    assert told.data["count"] == 2


async def test_what_is_over_before_it_is_told_never_is_and_what_comes_back_is(
    small_town: Town,
) -> None:
    town = small_town
    town.add_webhook()
    town.facts = OwnerFacts(requests=[request()], alarms=[])
    await town.pass_time()
    assert town.stands() == ["ar_1"]
    town.facts = OwnerFacts()
    assert await town.pass_time(MINUTE_NS) == []
    assert town.stands() == []
    for _ in range(2):
        town.facts = OwnerFacts(feeds=[NamedFact("fee_1", "Mail", NOON)])
        assert len(await town.pass_time(6 * HOUR_NS)) == 1
        town.facts = OwnerFacts()
        assert await town.pass_time(MINUTE_NS) == []


async def test_quiet_hours_hold_back_and_end_with_one_notice(small_town: Town) -> None:
    town = small_town
    town.zone = "Europe/Rome"
    town.add_webhook()
    with town.store.write() as writer:
        row = with_hours(notice_settings(writer), parse_hours("22:00-07:00"))
        change_settings(writer, row)
    town.now_ns = NOON + 9 * HOUR_NS  # ten at night in Rome
    town.facts = OwnerFacts(alarms=[replace(request(1), about="ral_1")])
    assert await town.pass_time() == []
    town.facts = OwnerFacts(alarms=[replace(request(n), about=f"ral_{n}") for n in (1, 2)])
    assert await town.pass_time(4 * HOUR_NS) == []
    assert len(town.stands()) == 2
    with town.store.write() as writer:
        ask_for_tests(writer)
    assert [each.event["type"] for each in await town.pass_time()] == ["pdpp.owner.test"]
    (told,) = await town.pass_time(5 * HOUR_NS)
    assert told.data["count"] == 2


async def test_a_kind_that_is_switched_off_stands_and_is_not_told(small_town: Town) -> None:
    town = small_town
    town.add_webhook()
    with town.store.write() as writer:
        row = with_kinds_off(notice_settings(writer), [NoticeKind.UNUSUAL])
        change_settings(writer, row)
    town.facts = OwnerFacts(alarms=[request()])
    assert await town.pass_time() == []
    assert town.stands() == ["ar_1"]


async def test_a_program_gets_its_texts_as_arguments_and_nothing_of_the_server(
    small_town: Town,
) -> None:
    town = small_town
    town.add_desktop()
    town.facts = OwnerFacts(alarms=[request(1, "$(touch x); `id` -v <b>")])
    await town.pass_time()
    count, _, text, secret = town.told.read_text().splitlines()
    assert (count, secret) == ("2", "")
    assert text.endswith("$(touch x); `id` -v <b>")
    town.program.write_text("#!/bin/sh\nexit 3\n")
    with town.store.write() as writer:
        ask_for_tests(writer)
    await town.pass_time()
    town.program.unlink()
    with town.store.write() as writer:
        ask_for_tests(writer)
    outcomes = [row.outcome for row in town.rows()]
    await town.pass_time()
    assert [*outcomes, *(row.outcome for row in town.rows())] == ["refused", "unreachable"]


async def test_notify_send_shows_the_address_of_the_page_below_a_text_without_marks(
    small_town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = small_town
    town.program.rename(town.folder / "notify-send")
    path = f"{town.folder}{os.pathsep}{os.defpath}"
    monkeypatch.setenv("PATH", path)
    sender = DesktopSender(None, {"PATH": path}, ORIGIN)
    notice = NoticeMessage("msg_1", "no_backup", 1, "A title", "A <b>text</b>", "/owner/", NOON)
    assert await sender.send(town.add_desktop(), notice) is DeliveryOutcome.DELIVERED
    *_, ends_options, title, text, address, _ = town.told.read_text().splitlines()
    assert ends_options == "--"
    assert (title, text, address) == ("A title", "A &lt;b&gt;text&lt;/b&gt;", f"{ORIGIN}/owner/")


@pytest.mark.parametrize("name", ["--exec=id", "-x", "–", "a -b"])
def test_no_name_is_an_option_of_a_program(name: str) -> None:
    argument = no_option(f"{name}: the newest record is from 2020.")
    assert not argument.startswith("-")
    assert argument.strip().startswith(name)


async def test_what_did_not_arrive_is_tried_again_later_and_told_of_elsewhere(
    small_town: Town,
) -> None:
    town = small_town
    town.add_webhook()
    town.status = 500
    town.facts = OwnerFacts(alarms=[request(1)])
    assert len(await town.pass_time()) == 1
    town.facts = OwnerFacts(alarms=[request(1), request(2)])
    assert await town.pass_time((WAITS_SECONDS[0] - 1) * NANOSECONDS) == []
    (again,) = await town.pass_time(NANOSECONDS)
    assert again.data["count"] == 2
    await town.pass_time(WAITS_SECONDS[1] * NANOSECONDS)
    (row,) = town.rows()
    assert (row.failures, row.outcome, row.failing_since_ns) == (3, "refused", NOON)
    assert row.due_at_ns == town.now_ns + WAITS_SECONDS[2] * NANOSECONDS
    town.status = 204
    (arrived,) = await town.pass_time(WAITS_SECONDS[2] * NANOSECONDS)
    assert arrived.data["count"] == 2
    (row,) = town.rows()
    assert (row.failures, row.outcome, row.failing_since_ns) == (0, "delivered", None)
    assert await town.pass_time(DAY) == []


async def test_a_channel_that_failed_by_a_wrong_clock_is_tried_again(small_town: Town) -> None:
    town = small_town
    town.add_webhook()
    town.status = 500
    town.facts = OwnerFacts(alarms=[request(1)])
    await town.pass_time()
    town.status = 200
    assert len(await town.pass_time(-900 * DAY)) == 1


async def test_one_that_fails_holds_up_no_other_and_one_that_is_gone_waits_a_day(
    small_town: Town,
) -> None:
    town = small_town
    town.status = 410
    town.add_webhook()
    town.add_desktop()
    town.facts = OwnerFacts(alarms=[request()])
    await town.pass_time()
    by_kind = {row.kind: row for row in town.rows()}
    assert by_kind["desktop"].outcome == DeliveryOutcome.DELIVERED
    assert by_kind["webhook"].outcome == DeliveryOutcome.GONE
    assert by_kind["webhook"].due_at_ns == town.now_ns + GONE_WAITS_SECONDS * NANOSECONDS


async def test_an_address_that_leads_inside_is_not_called(small_town: Town) -> None:
    town = small_town
    town.add_webhook("https://inside.example/hook")
    town.facts = OwnerFacts(alarms=[request()])
    assert await town.pass_time() == []
    assert [row.outcome for row in town.rows()] == ["unsafe_address"]


async def test_a_browser_alone_reads_what_is_pushed_to_it(small_town: Town) -> None:
    town = small_town
    private, keys = browser()
    made = push("https://push.example/send/1?x=2", "Firefox on Linux", keys)
    with town.store.write() as writer:
        row = add_channel(writer, made, town.secrets, town.chance, SERVER, town.now_ns)
    assert keys.auth not in (row.secret or b"")
    town.facts = OwnerFacts(alarms=[request(1), request(2, "Other app")])
    (told,) = await town.pass_time()
    text = json.loads(decrypted(told.body, private, keys.auth))
    assert set(text) == {"kind", "title", "text", "page"}
    assert (text["kind"], text["page"]) == ("unusual_reading", "/owner/")
    assert "Other app" in text["text"]
    assert b"Other app" not in told.body
    headers = told.headers
    assert (headers["content-encoding"], headers["topic"]) == ("aes128gcm", "unusual_reading")
    assert int(headers["ttl"]) > 0
    claims = vapid_claims(headers["authorization"], PUSH_KEY.public_key())
    assert claims["aud"] == "https://push.example"
    assert claims["sub"] == "https://me.example"
    assert 0 < claims["exp"] - town.now_ns // NANOSECONDS <= 24 * 3_600
    town.facts = OwnerFacts(feeds=[NamedFact("fee_1", "Mail", NOON)])
    (other,) = await town.pass_time(MINUTE_NS)
    assert len(other.body) == len(told.body)
    assert other.body[:86] != told.body[:86]


async def test_of_two_processes_one_tells(small_town: Town) -> None:
    town = small_town
    town.add_webhook()
    town.facts = OwnerFacts(alarms=[request()])
    other = town.new_process()
    turns = [town.notices.turn(), other.turn()]
    assert [len(turn) for turn in turns] == [1, 0]


def test_channels_are_added_once_found_by_name_and_audited(small_town: Town) -> None:
    town = small_town
    row, secret = town.add_webhook()
    assert row.secret is not None
    assert secret not in row.secret
    with pytest.raises(InvalidState):
        town.add_webhook()
    with town.store.write() as writer:
        remove_channel(writer, URL, SERVER, NOON)
        with pytest.raises(NotFound):
            remove_channel(writer, URL, SERVER, NOON)
        events = [each.event for each in writer.rows(AuditRow)]
        details = [each.detail for each in writer.rows(AuditRow)]
    assert events == ["notice_channel.added", "notice_channel.removed"]
    assert details == [{"kind": "webhook"}] * 2
    assert town.rows() == []


@pytest.mark.parametrize("text", ["22-7", "24:00-07:00", "22:00-22:00", ""])
def test_hours_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_hours(text)


def test_hours_read_as_they_are_written() -> None:
    assert render_hours(parse_hours("22:00 - 7:00")) == "22:00-07:00"
