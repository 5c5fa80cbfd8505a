from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import pytest
from argon2 import PasswordHasher

from pdpp_kernel.errors import (
    InvalidRequest,
    SignInFailed,
    SignInLinkInvalid,
    StorageReadOnly,
)
from personal_server.granting.owner_sessions import Browser, OwnerSignIn
from personal_server.storage.authorization_rows import AuditRow, OwnerRow
from tests.oracle.authorization_memory import MemoryAuthorizationStore

SECOND = 1_000_000_000
HOUR = 3_600 * SECOND
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
SOMEWHERE = Browser("203.0.113.7", "A browser")
PASSWORD = "correct horse battery"


@dataclass
class Clock:
    now_ns: int = 1_795_000_000 * SECOND

    def __call__(self) -> int:
        return self.now_ns


@dataclass
class Randomness:
    drawn: int = 0

    def __call__(self, size: int) -> bytes:
        self.drawn += 1
        return hashlib.shake_256(str(self.drawn).encode()).digest(size)


@dataclass
class Door:
    clock: Clock = field(default_factory=Clock)
    store: MemoryAuthorizationStore = field(
        default_factory=lambda: MemoryAuthorizationStore("own_test")
    )

    def __post_init__(self) -> None:
        self.sign_in = OwnerSignIn(self.store, self.clock, Randomness(), CHEAP)

    def audited(self) -> list[str]:
        with self.store.read() as reader:
            return [row.event for row in reader.rows(AuditRow)]


@pytest.fixture
def door() -> Door:
    return Door()


def test_a_link_opens_one_session_once(door: Door) -> None:
    link = door.sign_in.make_link()
    cookie = door.sign_in.enter_by_link(link, SOMEWHERE)
    session = door.sign_in.session(cookie)
    assert session is not None
    assert (session.address, session.user_agent) == ("203.0.113.7", "A browser")
    with pytest.raises(SignInLinkInvalid):
        door.sign_in.enter_by_link(link, SOMEWHERE)


def test_a_link_is_good_for_ten_minutes(door: Door) -> None:
    link = door.sign_in.make_link()
    door.clock.now_ns += 600 * SECOND
    with pytest.raises(SignInLinkInvalid):
        door.sign_in.enter_by_link(link, SOMEWHERE)


@pytest.mark.parametrize("secret", ["", "pdpp_ol_", "\ud800", "x" * 10_000])
def test_an_unknown_link_opens_nothing(door: Door, secret: str) -> None:
    with pytest.raises(SignInLinkInvalid):
        door.sign_in.enter_by_link(secret, SOMEWHERE)


def test_without_a_password_none_fits(door: Door) -> None:
    assert not door.sign_in.has_password()
    with pytest.raises(SignInFailed):
        door.sign_in.enter_by_password("", SOMEWHERE)


def test_the_password_opens_a_session_and_no_other_does(door: Door) -> None:
    door.sign_in.set_password(PASSWORD)
    assert door.sign_in.session(door.sign_in.enter_by_password(PASSWORD, SOMEWHERE))
    for wrong in ("", PASSWORD[:-1], PASSWORD + " ", "x" * 5_000):
        with pytest.raises(SignInFailed):
            door.sign_in.enter_by_password(wrong, SOMEWHERE)
    assert door.audited().count("owner.sign_in_failed") == 4


@pytest.mark.parametrize("password", ["", "eleven char", "x" * 1_025])
def test_a_password_has_twelve_to_1024_characters(door: Door, password: str) -> None:
    with pytest.raises(InvalidRequest):
        door.sign_in.set_password(password)


def test_a_new_password_ends_every_session(door: Door) -> None:
    cookie = door.sign_in.enter_by_link(door.sign_in.make_link(), SOMEWHERE)
    door.sign_in.set_password(PASSWORD)
    assert door.sign_in.session(cookie) is None
    door.sign_in.set_password("another " + PASSWORD)
    with pytest.raises(SignInFailed):
        door.sign_in.enter_by_password(PASSWORD, SOMEWHERE)


def test_a_password_is_hashed_anew_when_the_parameters_change(door: Door) -> None:
    door.sign_in.set_password(PASSWORD)
    dearer = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1)
    OwnerSignIn(door.store, door.clock, Randomness(1_000), dearer).enter_by_password(
        PASSWORD, SOMEWHERE
    )
    with door.store.read() as reader:
        row = reader.get(OwnerRow)
    assert row is not None
    assert row.password_hash is not None
    assert "m=16,t=2" in row.password_hash


def test_a_session_ends_after_twelve_idle_hours(door: Door) -> None:
    cookie = door.sign_in.enter_by_link(door.sign_in.make_link(), SOMEWHERE)
    door.clock.now_ns += 12 * HOUR - 1
    assert door.sign_in.session(cookie) is not None
    door.clock.now_ns += 12 * HOUR
    assert door.sign_in.session(cookie) is None


def test_a_session_ends_after_seven_days_however_busy(door: Door) -> None:
    cookie = door.sign_in.enter_by_link(door.sign_in.make_link(), SOMEWHERE)
    for _ in range(16):
        door.clock.now_ns += 10 * HOUR
        assert door.sign_in.session(cookie) is not None
    door.clock.now_ns += 8 * HOUR
    assert door.sign_in.session(cookie) is None


def test_sessions_are_listed_and_ended_by_reference(door: Door) -> None:
    first = door.sign_in.enter_by_link(door.sign_in.make_link(), SOMEWHERE)
    second = door.sign_in.enter_by_link(door.sign_in.make_link(), Browser())
    assert len(door.sign_in.sessions()) == 2
    session = door.sign_in.session(second)
    assert session is not None
    assert door.sign_in.end_session(session.reference)
    assert not door.sign_in.end_session(session.reference)
    assert door.sign_in.session(second) is None
    assert door.sign_in.session(first) is not None


def test_signing_out_ends_one_session_or_all(door: Door) -> None:
    cookies = [door.sign_in.enter_by_link(door.sign_in.make_link(), SOMEWHERE) for _ in range(3)]
    door.sign_in.sign_out(cookies[0])
    assert door.sign_in.session(cookies[0]) is None
    assert door.sign_in.sign_out_all() == 2
    assert door.sign_in.sessions() == []


def test_the_store_holds_no_secret_in_clear(door: Door) -> None:
    door.sign_in.set_password(PASSWORD)
    link = door.sign_in.make_link()
    cookie = door.sign_in.enter_by_link(link, SOMEWHERE)
    dump = repr(vars(door.store))
    assert not [secret for secret in (PASSWORD, link, cookie) if secret in dump]


def enter(door: Door, browser: Browser = SOMEWHERE) -> str:
    return door.sign_in.enter_by_link(door.sign_in.make_link(), browser)


def reference(door: Door, cookie: str) -> str:
    session = door.sign_in.session(cookie)
    assert session is not None
    return session.reference


def lines(door: Door) -> list[tuple[str, str, dict[str, object]]]:
    with door.store.read() as reader:
        return [(row.event, row.actor, dict(row.detail)) for row in reader.rows(AuditRow)]


@pytest.mark.parametrize("password", ["shortest 12!", "longest " * 128])
def test_the_longest_and_the_shortest_password_open_a_session(door: Door, password: str) -> None:
    door.sign_in.set_password(password)
    assert door.sign_in.has_password()
    assert door.sign_in.session(door.sign_in.enter_by_password(password, SOMEWHERE))
    assert lines(door)[-1] == ("owner.signed_in", "owner", {"by": "password"})


def test_each_way_in_is_named_in_the_trail(door: Door) -> None:
    enter(door)
    assert door.sign_in.session(door.sign_in.enter_by_passkey(SOMEWHERE)) is not None
    assert lines(door) == [
        ("owner.link_created", "local_cli", {}),
        ("owner.signed_in", "owner", {"by": "link"}),
        ("owner.signed_in", "owner", {"by": "passkey"}),
    ]
    with door.store.read() as reader:
        addresses = [row.address for row in reader.rows(AuditRow)]
    assert addresses == [None, "203.0.113.7", "203.0.113.7"]


def test_a_link_is_good_until_its_last_instant(door: Door) -> None:
    link = door.sign_in.make_link()
    door.clock.now_ns += 600 * SECOND - 1
    assert door.sign_in.enter_by_link(link, SOMEWHERE)


def test_a_password_that_was_removed_opens_nothing_and_ends_every_session(door: Door) -> None:
    door.sign_in.set_password(PASSWORD)
    cookie = door.sign_in.enter_by_password(PASSWORD, SOMEWHERE)
    door.clock.now_ns += SECOND
    door.sign_in.remove_password()
    assert not door.sign_in.has_password()
    assert door.sign_in.session(cookie) is None
    with pytest.raises(SignInFailed):
        door.sign_in.enter_by_password(PASSWORD, SOMEWHERE)
    with door.store.read() as reader:
        row = reader.get(OwnerRow)
    assert row is not None
    assert row.password_changed_at_ns == door.clock.now_ns
    assert door.audited().count("owner.password_changed") == 2


def test_a_password_is_not_hashed_anew_while_the_parameters_stay(door: Door) -> None:
    door.sign_in.set_password(PASSWORD)
    with door.store.read() as reader:
        before = reader.get(OwnerRow)
    door.sign_in.enter_by_password(PASSWORD, SOMEWHERE)
    with door.store.read() as reader:
        assert reader.get(OwnerRow) == before


def test_a_browser_is_known_again_until_the_password_changes(door: Door) -> None:
    assert door.sign_in.remembrance() is None
    door.sign_in.set_password(PASSWORD)
    first, second = door.sign_in.remembrance(), door.sign_in.remembrance()
    assert first is not None
    name = first.partition(".")[0]
    assert door.sign_in.recognized(first) == name
    assert door.sign_in.recognized(second) not in (None, name)
    for other in (None, "", name, f"{name}.", f"other.{first.partition('.')[2]}"):
        assert door.sign_in.recognized(other) is None
    door.sign_in.set_password("another " + PASSWORD)
    assert door.sign_in.recognized(first) is None


def test_a_session_is_fresh_for_a_quarter_of_an_hour(door: Door) -> None:
    session = door.sign_in.session(enter(door))
    assert session is not None
    assert session.is_fresh(session.signed_in_at_ns + 900 * SECOND)
    assert not session.is_fresh(session.signed_in_at_ns + 900 * SECOND + 1)
    assert session.is_fresh(session.signed_in_at_ns + 60 * SECOND, 60)
    assert not session.is_fresh(session.signed_in_at_ns + 61 * SECOND, 60)


def test_use_is_noted_once_a_minute(door: Door) -> None:
    cookie = enter(door)
    began_ns = door.clock.now_ns
    for seconds, noted in ((59, 0), (60, 60), (61, 60), (120, 120)):
        door.clock.now_ns = began_ns + seconds * SECOND
        door.sign_in.session(cookie)
        (session,) = door.sign_in.sessions()
        assert session.last_seen_at_ns == began_ns + noted * SECOND


def test_sessions_are_listed_the_last_seen_first_and_only_while_they_live(door: Door) -> None:
    first = enter(door, Browser("203.0.113.1"))
    door.clock.now_ns += SECOND
    enter(door, Browser("203.0.113.2"))
    addresses = [session.address for session in door.sign_in.sessions()]
    assert addresses == ["203.0.113.2", "203.0.113.1"]
    door.clock.now_ns += 60 * SECOND
    door.sign_in.session(first)
    addresses = [session.address for session in door.sign_in.sessions()]
    assert addresses == ["203.0.113.1", "203.0.113.2"]
    door.clock.now_ns += 12 * HOUR - 1
    assert [session.address for session in door.sign_in.sessions()] == ["203.0.113.1"]


def test_a_reference_is_the_same_24_digits_and_opens_nothing(door: Door) -> None:
    cookie = enter(door)
    name = reference(door, cookie)
    assert (len(name), name) == (24, reference(door, cookie))
    assert door.sign_in.session(name) is None


def test_signing_out_is_noted_once(door: Door) -> None:
    cookie = enter(door)
    enter(door)
    door.sign_in.sign_out("unknown")
    for _ in range(2):
        door.sign_in.sign_out(cookie)
    assert door.audited().count("owner.signed_out") == 1
    assert len(door.sign_in.sessions()) == 1


def test_a_session_that_is_not_there_is_not_ended(door: Door) -> None:
    enter(door)
    assert not door.sign_in.end_session("unknown")
    assert not door.sign_in.end_alike("unknown", "")
    assert "owner.signed_out" not in door.audited()


def test_sessions_of_one_browser_and_address_end_together(door: Door) -> None:
    here = enter(door)
    twins = [enter(door) for _ in range(2)]
    other = enter(door, Browser("203.0.113.8", "A browser"))
    assert door.sign_in.end_alike(reference(door, twins[0]), reference(door, here))
    assert [door.sign_in.session(cookie) is None for cookie in (here, *twins, other)] == [
        False,
        True,
        True,
        False,
    ]
    assert lines(door)[-1] == ("owner.signed_out", "owner", {"ended": 2})
    assert door.sign_in.end_alike(reference(door, here), reference(door, here))
    assert door.sign_in.session(here) is not None
    assert door.audited().count("owner.signed_out") == 1


def test_all_sessions_but_this_one_end(door: Door) -> None:
    here = enter(door)
    assert door.sign_in.end_others(reference(door, here)) == 0
    assert "owner.signed_out" not in door.audited()
    others = [enter(door) for _ in range(2)]
    assert door.sign_in.end_others(reference(door, here)) == 2
    assert lines(door)[-1] == ("owner.signed_out", "owner", {"ended": 2})
    assert door.sign_in.session(here) is not None
    assert {door.sign_in.session(cookie) for cookie in others} == {None}


def test_signing_out_everywhere_says_how_many(door: Door) -> None:
    enter(door)
    door.sign_in.sign_out_all()
    assert lines(door)[-1] == ("owner.signed_out", "local_cli", {"ended": 1})
    assert door.sign_in.sign_out_all() == 0


def test_a_browser_names_itself_in_two_hundred_characters_at_most(door: Door) -> None:
    shown = [
        session.user_agent
        for agent in ("a" * 201, "", None)
        if (session := door.sign_in.session(enter(door, Browser(None, agent))))
    ]
    assert shown == ["a" * 200, None, None]


def test_an_owner_can_look_where_nothing_can_be_noted(
    door: Door, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cookie = enter(door)
    door.clock.now_ns += 120 * SECOND

    def full() -> None:
        raise StorageReadOnly("The disk is full.")

    monkeypatch.setattr(door.store, "write", full)
    assert door.sign_in.session(cookie) is not None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
