"""Where passwords of feeds lie: in one place, and in the sealed file wherever a keyring fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from msgspec.structs import replace

from personal_server.app.feed_secrets import DAMAGED, FeedSecrets, PasswordPlace
from personal_server.app.machine_keyring import MachineKeyring, machine_keyring
from personal_server.app.stores import open_stores
from personal_server.settings import Settings
from personal_server.storage.feed_rows import FeedRow
from server.tests.feeds.test_feed_states import a_feed

SECRET = "open sesame 42"
FIRST, SECOND = a_feed(feed_id="fee_1"), a_feed(feed_id="fee_2")


@dataclass
class FakeBackend:
    """A keyring in memory, which may be locked."""

    kept: dict[str, str] = field(default_factory=dict[str, str])
    is_locked: bool = False
    priority: float = 5
    backends: list[FakeBackend] = field(default_factory=list["FakeBackend"])

    def get_password(self, service: str, username: str) -> str | None:
        return self._open().get(service + username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self._open()[service + username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self._open()[service + username]

    def _open(self) -> dict[str, str]:
        if self.is_locked:
            raise PermissionError
        return self.kept


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def secrets(tmp_path: Path, backend: FakeBackend) -> Iterator[FeedSecrets]:
    with open_stores(Settings(data_dir=tmp_path), serving=False) as stores:
        yield replace(FeedSecrets.of(stores), keyring=MachineKeyring(backend))


def kept(secrets: FeedSecrets, feed: FeedRow) -> tuple[PasswordPlace | None, str | None]:
    return secrets.place_of(feed), secrets.password(feed)


def test_a_password_lies_in_the_keyring_alone(secrets: FeedSecrets, backend: FakeBackend) -> None:
    replace(secrets, keyring=None).keep(FIRST, "older")
    assert kept(secrets, FIRST) == (PasswordPlace.FILE, "older")
    secrets.keep(FIRST, SECRET)
    assert kept(secrets, FIRST) == (PasswordPlace.KEYRING, SECRET)
    assert replace(secrets, keyring=None).password(FIRST) is None
    assert list(backend.kept.values()) == [SECRET]
    secrets.forget(FIRST)
    assert (secrets.place_of(FIRST), backend.kept) == (None, {})


def test_the_keyring_gives_no_password_for_another_server(secrets: FeedSecrets) -> None:
    """A restored database may name another one in a feed of the same id."""
    secrets.keep(FIRST, SECRET)
    elsewhere = a_feed(feed_id="fee_1", place="imaps://ada@imap.example.net")
    assert kept(secrets, elsewhere) == (None, None)


def test_a_keyring_that_is_locked_leaves_the_sealed_file(
    secrets: FeedSecrets, backend: FakeBackend
) -> None:
    backend.is_locked = True
    secrets.keep(FIRST, SECRET)
    assert kept(secrets, FIRST) == (PasswordPlace.FILE, SECRET)
    assert SECRET.encode() not in secrets.path.read_bytes()
    assert secrets.password(SECOND) is None
    secrets.forget(FIRST)
    assert secrets.place_of(FIRST) is None


@pytest.mark.parametrize("content", [b'{"fee_1": "a', b"[1]", b'{"fee_1": 3}', b"\xff"])
def test_a_damaged_file_gives_no_password_and_is_kept_beside_the_next(
    secrets: FeedSecrets, content: bytes
) -> None:
    in_file = replace(secrets, keyring=None)
    in_file.path.write_bytes(content)
    assert kept(in_file, FIRST) == (None, None)
    in_file.forget(FIRST)
    assert in_file.path.read_bytes() == content
    in_file.keep(SECOND, SECRET)
    assert (in_file.password(SECOND), in_file.password(FIRST)) == (SECRET, None)
    assert in_file.path.with_suffix(DAMAGED).read_bytes() == content


def test_many_that_keep_passwords_at_once_lose_none(secrets: FeedSecrets) -> None:
    sealed = replace(secrets, keyring=None)
    sealed.keep(a_feed(feed_id="fee_0"), SECRET)
    names = [f"fee_{number}" for number in range(24)]
    feeds = [a_feed(feed_id=name) for name in names]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(sealed.keep, feeds, names))
    assert [sealed.password(feed) for feed in feeds] == names


@pytest.mark.parametrize(("priority", "is_one"), [(5, True), (0.5, False)])
def test_only_a_keyring_that_is_one_is_used(
    monkeypatch: pytest.MonkeyPatch, backend: FakeBackend, priority: float, is_one: bool
) -> None:
    backend.priority = priority
    package = ModuleType("keyring")
    package.get_keyring = lambda: backend  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", package)
    assert (machine_keyring.__wrapped__() is not None) is is_one


@pytest.mark.parametrize(("first", "is_one"), [(5, True), (0.6, False)])
def test_of_a_chain_of_keyrings_none_that_is_a_plain_file_is_used(
    monkeypatch: pytest.MonkeyPatch, backend: FakeBackend, first: float, is_one: bool
) -> None:
    plain, chain = FakeBackend(priority=0.5), FakeBackend(priority=10)
    backend.priority = first
    chain.backends = [backend, plain]
    package = ModuleType("keyring")
    package.get_keyring = lambda: chain  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", package)
    found = machine_keyring.__wrapped__()
    assert found == (MachineKeyring(backend) if is_one else None)


def test_a_machine_without_the_package_has_no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert machine_keyring.__wrapped__() is None
