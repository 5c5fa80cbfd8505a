"""The credential cache: one file per provider, in the layout that PDPP tools share.

Rule: a reader sees the old or the new file, never a half; nothing below the root is reached
through a symbolic link, and nothing of another user is believed.
Source: docs/contract/authorization-server.md 14.2.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from pdpp_kernel.system.file_locks import try_lock
from pdpp_kernel.system.own_account import is_own
from pdpp_mcp_server.rs_client.credentials import (
    Credential,
    CredentialInsecure,
    CredentialInvalid,
    CredentialMismatch,
    Document,
    InvalidProviderUrl,
    NotConnected,
    ProviderUnavailable,
    SeveralConnected,
    connect_hint,
    normalize_provider_url,
    parse_credential,
)
from pdpp_mcp_server.rs_client.json_values import is_object

ROOT_NAME = ".pdpp"
MAX_FILE_BYTES = 4 * 1024**2
LOCK_SECONDS = 30.0
_IGNORED = "*\n!.gitignore\n"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOCK_PAUSE_SECONDS = 0.02
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]")


def _ignore(warning: str) -> None:
    del warning


def host_name(provider_url: str) -> str:
    """The file stem of a provider: host with port, unusual characters as `_`."""
    return _UNSAFE.sub("_", urlsplit(provider_url).netloc)


def _file_name(provider_url: str) -> str:
    return f"{host_name(provider_url)}.json"


class Slot(msgspec.Struct, frozen=True):
    """One provider's place while its lock is held.  `directory` is an open descriptor."""

    provider_url: str
    directory: int
    warn: Callable[[str], None]

    def read(self) -> Credential:
        """The credential as it stands now.  Raises: CredentialError."""
        return _read(self.directory, self.provider_url, self.warn)

    def write(self, document: Document) -> None:
        """Replace the file: the old one stays whole until the new one is."""
        _replace(self.directory, _file_name(self.provider_url), document)

    def remove(self) -> None:
        """Remove the file, if there is one."""
        with suppress(FileNotFoundError):
            os.unlink(_file_name(self.provider_url), dir_fd=self.directory)


class CredentialCache(msgspec.Struct, frozen=True):
    """The directory `root` (`.pdpp`): `warn` gets one sentence where modes were too wide.

    `folder` is `clients`; the owner's own credentials stand apart from them.
    """

    root: Path
    warn: Callable[[str], None] = _ignore
    folder: str = "clients"

    def path(self, provider_url: str) -> Path:
        """Where the credential of a provider stands."""
        return self.root / self.folder / _file_name(provider_url)

    def load(self, provider_url: str) -> Credential:
        """The cached credential.

        Raises: NotConnected, CredentialInsecure, CredentialInvalid, CredentialMismatch.
        """
        try:
            with self._directory() as directory:
                return _read(directory, provider_url, self.warn)
        except FileNotFoundError:
            raise _not_connected(provider_url) from None

    def providers(self) -> tuple[str, ...]:
        """The providers with a credential here, by file name.  Raises: CredentialError."""
        try:
            with self._directory() as directory:
                names = sorted(name for name in os.listdir(directory) if name.endswith(".json"))
                return tuple(_provider_url(directory, name, self.warn) for name in names)
        except FileNotFoundError:
            return ()

    def only_provider(self) -> str:
        """The one provider with a credential here.  Raises: CredentialError."""
        found = self.providers()
        if not found:
            step = "Run `pdpp connect <provider-url>` in this directory."
            raise NotConnected("No server is connected here.", step)
        only, *others = found
        if others:
            step = "Name the server with --provider-url."
            raise SeveralConnected("Several servers are connected here.", step)
        return only

    def save(self, document: Document) -> Path:
        """Write a whole credential, making the directories.  Raises: CredentialError."""
        provider_url = parse_credential(document).provider_url
        self.prepare()
        with self.locked(provider_url) as slot:
            slot.write(document)
        return self.path(provider_url)

    def prepare(self) -> None:
        """Make the directories, so that nobody is asked for what could not be kept.

        Raises: CredentialInsecure.
        """
        with _refusing_links():
            self._make()
        with self._directory() as directory, _refusing_links():
            if not self._is_ours:
                _ignore_all(directory)

    def read_file(self, name: str) -> Document:
        """Another document of the folder.

        Raises: FileNotFoundError, CredentialInsecure, CredentialInvalid.
        """
        with self._directory() as directory:
            return _document(directory, name, self.warn)

    def keep_file(self, name: str, document: Document) -> None:
        """Write such a document, making the directories.  Raises: CredentialInsecure."""
        self.prepare()
        with self._directory() as directory:
            _replace(directory, name, document)

    def remove_file(self, name: str) -> None:
        """Remove such a document.  Raises: FileNotFoundError."""
        with self._directory() as directory:
            os.unlink(name, dir_fd=directory)

    def remove(self, provider_url: str) -> None:
        """Delete the cached credential of a provider."""
        with suppress(FileNotFoundError), self.locked(provider_url) as slot:
            slot.remove()

    @contextmanager
    def locked(self, provider_url: str, wait_seconds: float = LOCK_SECONDS) -> Generator[Slot]:
        """Hold the provider's lock; the lock file is never deleted.

        Raises: ProviderUnavailable after `wait_seconds`, FileNotFoundError without a cache.
        """
        with self._directory() as directory:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            name = f"{host_name(provider_url)}.lock"
            with _refusing_links():
                lock = os.open(name, flags, 0o600, dir_fd=directory)
            try:
                _acquire(lock, wait_seconds)
                yield Slot(provider_url, directory, self.warn)
            finally:
                os.close(lock)

    def _make(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        root = os.open(self.root, self._root_flags)
        try:
            with suppress(FileExistsError):
                os.mkdir(self.folder, 0o700, dir_fd=root)
            if self._is_ours:
                _ignore_all(root)
        finally:
            os.close(root)

    @property
    def _root_flags(self) -> int:
        # A folder of somebody else's, as a checkout, may hold a link of our name that leads to any
        # folder of this user: one that they named is theirs to follow.
        return _FOLDER | (os.O_NOFOLLOW if self._is_ours else 0)

    @property
    def _is_ours(self) -> bool:
        """Whether the root is made for credentials only; another one is left as it is."""
        return self.root.name == ROOT_NAME

    @contextmanager
    def _directory(self) -> Generator[int]:
        """Open the folder without following links, and keep both directories private."""
        with _refusing_links():
            root = os.open(self.root, self._root_flags)
        try:
            if self._is_ours:
                _keep_private(root, str(self.root), self.warn)
            with _refusing_links():
                clients = os.open(self.folder, _FOLDER | os.O_NOFOLLOW, dir_fd=root)
            try:
                _keep_private(clients, str(self.root / self.folder), self.warn)
                yield clients
            finally:
                os.close(clients)
        finally:
            os.close(root)


def _read(directory: int, provider_url: str, warn: Callable[[str], None]) -> Credential:
    name = _file_name(provider_url)
    try:
        credential = _parsed(directory, name, provider_url, warn)
    except FileNotFoundError:
        raise _not_connected(provider_url) from None
    if credential.provider_url.rstrip("/") != provider_url:
        raise CredentialMismatch(
            "The saved credential belongs to another server.", connect_hint(provider_url)
        )
    return credential


def _provider_url(directory: int, name: str, warn: Callable[[str], None]) -> str:
    return _parsed(directory, name, _address_in(name), warn).provider_url.rstrip("/")


def _parsed(
    directory: int, name: str, provider_url: str, warn: Callable[[str], None]
) -> Credential:
    """A credential of the folder; a damaged one is named, with the address to connect to anew."""
    try:
        return parse_credential(_document(directory, name, warn), provider_url)
    except CredentialInvalid as error:
        advice = (
            f"Run `pdpp disconnect {provider_url} --local`, then `pdpp connect {provider_url}`."
        )
        raise CredentialInvalid(f"{name}: {error.message}", advice) from None


def _address_in(name: str) -> str:
    """The address that a file is named after."""
    host = re.sub(r"_(\d+)$", r":\1", name.removesuffix(".json"))
    try:
        return normalize_provider_url(host)
    except InvalidProviderUrl:
        return "<provider-url>"


def _document(directory: int, name: str, warn: Callable[[str], None]) -> Document:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with _refusing_links():
        descriptor = os.open(name, flags, dir_fd=directory)
        file = os.fdopen(descriptor, "rb")
    with file:
        _keep_private(descriptor, name, warn)
        raw = file.read(MAX_FILE_BYTES + 1)
    try:
        value: object = json.loads(raw) if len(raw) <= MAX_FILE_BYTES else None
    except ValueError:
        value = None
    if not is_object(value):
        raise CredentialInvalid(
            "The saved credential is not a JSON object.",
            "Run `pdpp disconnect URL --local`, then `pdpp connect URL`.",
        )
    return value


def _replace(directory: int, name: str, document: Document) -> None:
    prefix = f".{name}."
    for stale in os.listdir(directory):  # left by a writer that was killed; the lock is ours
        if stale.startswith(prefix):
            os.unlink(stale, dir_fd=directory)
    temporary = f"{prefix}{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=directory)
    try:
        with open(descriptor, "wb") as file:
            file.write(json.dumps(document, ensure_ascii=False, indent=2).encode() + b"\n")
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
    os.fsync(directory)


def _keep_private(descriptor: int, name: str, warn: Callable[[str], None]) -> None:
    """Own user only; group and world bits are removed with a warning."""
    status = os.fstat(descriptor)
    if not is_own(status) or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise CredentialInsecure(
            f"{name} in the folder of saved credentials is not yours or not a plain file.",
            "Remove the file, or set --cache-root to a directory of your own.",
        )
    if status.st_mode & 0o077:
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & 0o700)
        warn(f"Others could read {name}; it is now readable only by you.")


@contextmanager
def _refusing_links() -> Generator[None]:
    """Open calls with O_NOFOLLOW fail on links; say so in our words."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError:
        raise CredentialInsecure(
            (
                "The folder of saved credentials contains a symbolic link, or cannot "
                "be opened or written."
            ),
            "Remove the link; the folder may contain only plain files and directories of your own.",
        ) from None


def _acquire(lock: int, wait_seconds: float) -> None:
    deadline = time.monotonic() + wait_seconds
    while not try_lock(lock):
        if time.monotonic() >= deadline:
            raise ProviderUnavailable(
                "Another process is using this credential.", "Try again in a moment."
            )
        time.sleep(_LOCK_PAUSE_SECONDS)


def _ignore_all(directory: int) -> None:
    """Have git ignore a folder, also where a checkout brought a file that says otherwise."""
    name = ".gitignore"
    with suppress(OSError, UnicodeDecodeError):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(name, flags, dir_fd=directory), encoding="utf-8") as file:
            if file.read(len(_IGNORED) + 1) == _IGNORED:
                return
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with (
        suppress(FileExistsError),  # another process was quicker
        open(os.open(name, flags, 0o600, dir_fd=directory), "w", encoding="utf-8") as file,
    ):
        file.write(_IGNORED)


def _not_connected(provider_url: str) -> NotConnected:
    return NotConnected(
        f"No credential for {provider_url} is saved here.", connect_hint(provider_url)
    )
