from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import pytest
from argon2 import PasswordHasher

from pdpp_kernel.errors import InvalidRequest, SignInFailed, SignInLinkInvalid
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
