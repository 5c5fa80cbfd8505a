"""`pdpp doctor --security`: what on this machine would let somebody in.

Rule: it looks, and changes no more than every command that opens the store.  What cannot be seen
from here is said to be so, and counts as no fault.
Source: docs/threat-model.md; docs/contract/authorization-server.md 1, 13.1, 14.1.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from importlib import resources
from pathlib import Path

from pdpp_kernel.texts import counted
from pdpp_kernel.values import NANOSECONDS
from pdpp_mcp_server.commands.failures_shown import failure_of
from personal_server.app.owner_store import OwnerStore
from personal_server.app.stores import command_origin
from personal_server.cli.findings import HINT, SKIPPED, WRONG, Finding, good, wrong
from personal_server.cli.store import StoreOpener
from personal_server.granting.holdings import Holding, list_held
from personal_server.granting.passkeys import has_passkey
from personal_server.settings import Settings
from personal_server.storage.ports.authorization_store import HeldQuery
from personal_server.upkeep.ownership import DataNotOwned, require_own_files
from personal_server.upkeep.releases import order_of

Asking = Callable[[Sequence[str]], str]
VersionOf = Callable[[str], str | None]
OTHERS = 0o077
WIDEST_PREFIX = 7
"""A network with a shorter one is half the internet; the private fc00::/7 is the widest in use."""
ENCRYPTING = ("gocryptfs", "cryfs", "encfs", "ecryptfs", "securefs")
MOUNT_OF = ("findmnt", "--noheadings", "--output", "FSTYPE,SOURCE", "--target")
DEVICES_BELOW = ("lsblk", "--noheadings", "--inverse", "--list", "--output", "TYPE")
OWNER = ("owner", "Owner of the data directory")
MODES = ("modes", "File modes of the data directory")
ENCRYPTION = ("encryption", "Encryption at rest")
SIGN_IN = ("sign_in", "Sign-in")
UNUSED = ("unused_access", "Approved apps that never connected")
ENDLESS = ("endless_access", "Access without an end date")
PROXIES = ("proxies", "Proxies")
BACKUPS = ("backups", "Backups")
VERSIONS = ("advisories", "Known weaknesses of installed packages")
NAMES_SHOWN = 3
FRESH_DAYS = 365


def ask_system(words: Sequence[str]) -> str:
    """What a program of the system prints; nothing where there is none or it fails."""
    program = shutil.which(words[0])
    if program is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 (its words are fixed; a path is one argument)
            [program, *words[1:]], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def installed_version(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def security_findings(
    settings: Settings,
    open_store: StoreOpener,
    ask: Asking = ask_system,
    version_of: VersionOf = installed_version,
    platform: str = sys.platform,
    clock: Callable[[], int] = time.time_ns,
) -> Iterator[Finding]:
    """Everything that can be seen from here.  Raises: PersonalServerError of the store."""
    folder = settings.backup_dir
    if settings.data_dir.is_dir():
        owned = _check_owner(settings.data_dir)
        yield owned
        yield _check_modes(settings.data_dir)
        yield _check_encryption(settings.data_dir, ask, platform)
        if owned.state != WRONG:
            with open_store() as store:
                yield _check_sign_in(settings, store)
                yield from _check_access(store)
                if folder is None and store.backups is not None:
                    folder = Path(store.backups.folder)
    else:
        yield Finding("data_directory", "Data directory", SKIPPED, "does not exist yet")
    yield _check_proxies(settings)
    yield _check_backups(folder)
    yield _check_versions(read_advisories(), version_of, clock())


def _check_owner(data_dir: Path) -> Finding:
    try:
        require_own_files(data_dir)
    except DataNotOwned as error:
        return wrong(*OWNER, error.message, failure_of(error).next_step)
    return good(*OWNER)


def _check_modes(folder: Path) -> Finding:
    """A folder that nobody else enters keeps what lies in it, whatever its mode."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & OTHERS:
        return wrong(
            *MODES, f"other users may enter the data directory ({mode:04o})", f"chmod 700 {folder}"
        )
    return good(*MODES, f"{mode:04o}")


def _check_encryption(data_dir: Path, ask: Asking, platform: str) -> Finding:
    how = _encryption(data_dir, ask, platform)
    if how:
        return good(*ENCRYPTION, how)
    return Finding(
        *ENCRYPTION,
        HINT,
        "no encryption found" if how == "" else "cannot be checked here",
        "Encrypt the disk or the data directory: docs/threat-model.md, A stolen disk.",
        "not_encrypted" if how == "" else "unknown",
    )


def _encryption(data_dir: Path, ask: Asking, platform: str) -> str | None:
    """By what the directory is encrypted; empty: by nothing that shows; `None`: cannot tell."""
    if platform == "darwin":
        answer = ask(["fdesetup", "status"])
        return "FileVault" if "is On" in answer else "" if "is Off" in answer else None
    mounted = ask(
        ["findmnt", "--noheadings", "--output", "FSTYPE,SOURCE", "--target", f"{data_dir}"]
    )
    kind, _, source = mounted.strip().partition(" ")
    found = next((program for program in ENCRYPTING if program in kind), None)
    if found is not None:
        return found
    device = source.strip().partition("[")[0]  # btrfs names its subvolume behind it
    if not device.startswith("/dev/"):
        return None
    below = ask(
        ["lsblk", "--noheadings", "--inverse", "--list", "--output", "TYPE", device]
    ).split()
    if not below:
        return None
    return "dm-crypt (LUKS)" if "crypt" in below else ""


def _check_sign_in(settings: Settings, store: OwnerStore) -> Finding:
    ways = [
        way
        for way, there in (
            ("password", store.sign_in.has_password()),
            ("passkey", has_passkey(store.authorization, command_origin(settings))),
        )
        if there
    ]
    if ways:
        return good(*SIGN_IN, " and ".join(ways))
    if settings.is_loopback:
        return good(*SIGN_IN, "only by links made on this machine")
    return wrong(
        *SIGN_IN,
        "the server is reachable from outside, but has neither password nor passkey",
        "Set a password: pdpp owner password",
    )


def _check_access(store: OwnerStore) -> Iterator[Finding]:
    with store.authorization.read() as reader:
        holdings = list_held(reader, HeldQuery(store.clock(), lasts=True))
    unused = [one for one in holdings if one.last_used_at_ns is None]
    yield _to_end(UNUSED, "these apps never read anything: {}", unused)
    endless = [one for one in holdings if one.expires_at_ns is None]
    yield _to_end(ENDLESS, "ongoing until you end it: {}", endless)


def _to_end(check: tuple[str, str], sentence: str, holdings: Sequence[Holding]) -> Finding:
    """Access that its owner may want to look at."""
    if not holdings:
        return good(*check, "none")
    shown = _some([f"{one.client_name} ({one.id})" for one in holdings])
    mend = "End what you do not need: pdpp grant revoke ID"
    return Finding(*check, HINT, sentence.format(shown), mend)


def _check_proxies(settings: Settings) -> Finding:
    wide = [str(net) for net in settings.trusted_proxies if net.prefixlen < WIDEST_PREFIX]
    if wide:
        return wrong(
            *PROXIES,
            f"{_some(wide)}: anyone in this network can fake the caller's address and host",
            "List only the addresses of your proxies in PDPP_TRUSTED_PROXIES.",
        )
    if not settings.is_loopback and settings.bind_host not in ("127.0.0.1", "::1", "localhost"):
        return Finding(
            *PROXIES,
            HINT,
            (
                f"the server listens on {settings.bind_host}, so anyone who reaches "
                "that port bypasses the proxy"
            ),
            "If the proxy runs on this machine, set PDPP_BIND=127.0.0.1:PORT; else use a firewall.",
        )
    return good(
        *PROXIES, _some([str(net) for net in settings.trusted_proxies]) or "no proxies named"
    )


def _check_backups(folder: Path | None) -> Finding:
    if folder is None or not folder.is_dir():
        return Finding(
            *BACKUPS,
            SKIPPED,
            "no backups scheduled; to schedule them: pdpp backup FOLDER --every 1d",
        )
    if not folder.stat().st_mode & OTHERS:
        return good(*BACKUPS, "readable only by you")
    kept = (*folder.glob("*.pdpp"), *folder.glob("*.pdpp.age"))
    readable = sorted(path.name for path in kept if path.stat().st_mode & OTHERS)
    if readable:
        return wrong(
            *BACKUPS,
            f"{counted(len(readable), 'backup')} can be read by others: {_some(readable)}",
            f"chmod 700 {folder}",
        )
    return good(*BACKUPS, "readable only by you")


def _check_versions(known: Mapping[str, object], version_of: VersionOf, now_ns: int) -> Finding:
    """Installed packages against the list of the release; what came after its date is not in it."""
    advisories: list[dict[str, str]] = json.loads(json.dumps(known["advisories"]))
    hit = [
        f"{one['package']} {version} ({one['id']}, fixed in {one['before']})"
        for one in advisories
        if (version := version_of(one["package"])) is not None
        and order_of(one["from"]) <= order_of(version) < order_of(one["before"])
    ]
    if hit:
        return wrong(
            *VERSIONS,
            "; ".join(hit),
            "Install the newest release with the exact package versions that it lists.",
        )
    released = date.fromisoformat(str(known["released"]))
    age_days = (datetime.fromtimestamp(now_ns // NANOSECONDS, UTC).date() - released).days
    age = f", {counted(age_days, 'day')} ago" if age_days > 0 else ""
    sentence = (
        f"none of the {len(advisories)} known to this release of {released}{age}; the newest "
        f"of them is from {known['newest']}, and later ones are not in the list"
    )
    if age_days <= FRESH_DAYS:
        return good(*VERSIONS, sentence)
    return Finding(
        *VERSIONS,
        HINT,
        sentence,
        "Install a newer release, or check your packages against a current list with pip-audit.",
    )


def read_advisories() -> dict[str, object]:
    """The list that ships with the release."""
    listed = resources.files("personal_server.cli") / "advisories.json"
    return json.loads(listed.read_text(encoding="utf-8"))


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
