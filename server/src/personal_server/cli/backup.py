"""`pdpp backup`, `pdpp restore`: everything in one file, and back.

Source: docs/backup.md.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated, TypeAlias

import cyclopts
import msgspec
from cyclopts import Parameter, validators

from pdpp_kernel.errors import StorageUnavailable
from pdpp_kernel.texts import counted
from pdpp_kernel.values import render_instant
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, minute, plain, print_facts, table, words
from personal_server.app.backup_schedule import schedule_of, set_schedule
from personal_server.app.backups import (
    BackupOrder,
    backup_signer,
    make_backup,
    verify_backup,
)
from personal_server.app.restores import Restored, restore_backup
from personal_server.app.scheduled_backups import next_due_ns
from personal_server.app.stores import Stores, open_stores
from personal_server.cli.kept_data import kept_or_empty, settings_of_kept
from personal_server.cli.server_settings import settings_or_exit
from personal_server.domain.stored import BackupSchedule
from personal_server.settings import Settings
from personal_server.upkeep.backups import NOBODY, BackupManifest

Signer: TypeAlias = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
"""A public key, which may begin as an option does."""

KEPT = 7
HOURS_OF = {"h": 1, "d": 24, "w": 168}
MOST_HOURS = 8_760
_DURATION = re.compile(r"([1-9][0-9]{0,4})([hdw])\Z")


def _hours(text: str) -> int:
    match = _DURATION.match(text)
    return int(match[1]) * HOURS_OF[match[2]] if match else 0


def _is_duration(kind: object, text: str | None) -> None:
    del kind
    if text is not None and not 1 <= _hours(text) <= MOST_HOURS:
        raise ValueError("a duration from 1h to a year is needed, such as 12h, 1d or 1w.")


backup = cyclopts.App(name="backup", help="Back up all data into one file, now or on a schedule.")


@backup.default
def make(
    file: Path,
    /,
    *,
    every: Annotated[str | None, Parameter(validator=_is_duration)] = None,
    keep: Annotated[int | None, Parameter(validator=validators.Number(gte=1, lte=10_000))] = None,
    recipient: str | None = None,
    json: bool = False,
) -> None:
    """Back up all data into one file, while the server runs, or on a schedule.

    Parameters
    ----------
    file
        The file to write; an existing one is never replaced. With --every: the folder, which is
        made if need be.
    every
        Let the server make a backup regularly: every `12h`, `1d` or `1w`, for example.
    keep
        With --every: how many scheduled backups to keep. Default: 7.
    recipient
        Encrypt the backup for this age recipient (`age1…`, or an SSH public key).
    json
        Print JSON.
    """
    if every is None and keep is not None:
        raise CommandError(
            "usage", "--keep works only together with --every.", "See `pdpp backup --help`."
        )
    settings = settings_of_kept() if every is None else settings_or_exit()
    with open_stores(settings, serving=False) as stores:
        if every is None:
            manifest = make_backup(stores, settings, BackupOrder(file, recipient))
        else:
            folder = str(file.absolute())
            schedule = BackupSchedule(folder, _hours(every), keep or KEPT, recipient)
            set_schedule(stores, settings, schedule)
            _tell_standing(stores, settings, as_json=json)
            return
    _tell(manifest, f"{file} holds", as_json=json)


@backup.command
def status(*, json: bool = False) -> None:
    """Show the schedule, the folder, the last and next backup, and the last successful test
    restore.

    Parameters
    ----------
    json
        Print JSON.
    """
    with (
        kept_or_empty(settings_or_exit()) as (settings, is_kept),
        open_stores(settings, serving=False) as stores,
    ):
        _tell_standing(stores, settings, as_json=json, signs=is_kept)


@backup.command
def stop() -> None:
    """End the schedule of --every; existing backups stay."""
    settings = settings_of_kept()
    with open_stores(settings, serving=False) as stores:
        set_schedule(stores, settings, None)
        _tell_standing(stores, settings, as_json=False)


@backup.command
def verify(
    file: Path,
    /,
    *,
    identity: Path | None = None,
    signer: Signer = None,
    unsigned: bool = False,
    json: bool = False,
) -> None:
    """Read a whole backup and compare its content with the checksums and the signature.

    Parameters
    ----------
    file
        The backup file.
    identity
        The age key file (or SSH private key) that decrypts the backup.
    signer
        The key of the server that must have made it, as `pdpp backup status` prints it there.
    unsigned
        Take a backup without a signature, as earlier versions made it.
    json
        Print JSON.
    """
    manifest = verify_backup(file, identity, _wanted(signer, unsigned=unsigned))
    _tell(manifest, f"The backup {file} is complete:", as_json=json)


@backup.command(name="list")
def list_() -> None:
    """List the backups, and when the server last tested one by restoring it."""
    with open_stores(settings_of_kept(), serving=False) as stores:
        rows, proof = stores.upkeep.backups(), stores.upkeep.proof()
    lines = [
        (minute(row.made_at), f"{row.size_bytes:,}", _there(row.path), row.path) for row in rows
    ]
    console().print(table(("made", "bytes", "state", "file"), lines))
    proven = "never" if proof is None else minute(proof.proven_at_ns)
    skipped = (
        f" (the last test restore was skipped: {proof.skipped})" if proof and proof.skipped else ""
    )
    words().print(plain(f"Last successful test restore: {proven}{skipped}"))


def restore(
    file: Path,
    /,
    *,
    identity: Path | None = None,
    erasures: Path | None = None,
    signer: Signer = None,
    unsigned: bool = False,
    json: bool = False,
) -> None:
    """Restore a backup into an empty data directory (PDPP_DATA_DIR).

    Every app has to reconnect, and every grant is paused until you resume it. Passwords and
    passkeys come back only with --signer.

    Parameters
    ----------
    file
        The backup file.
    identity
        The age key file (or SSH private key) that decrypts the backup.
    erasures
        The list of erasures in your old data directory (`erasures.jsonl`). Default: the one next
        to the backup.
    signer
        The key of the server that made it, as `pdpp backup status` printed it there: another
        backup is refused, and your password and passkeys are restored.
    unsigned
        Take a backup without a signature, as earlier versions made it. Restore none that somebody
        else may have changed.
    json
        Print JSON.
    """
    settings = settings_or_exit()
    wanted = _wanted(signer, unsigned=unsigned)
    found = restore_backup(settings, file, identity, erasures, wanted)
    if json:
        report = {"erased": found.erased, "ended": found.ended, "waiting": found.waiting}
        credentials = {"credentials": found.credentials, "credentials_restored": found.is_proven}
        report = {**report, "ledger": found.ledger, "signer": found.manifest.signer, **credentials}
        print_json({**found.manifest.counts(), **report})
        return
    _tell(found.manifest, f"Restored into {settings.data_dir}:", as_json=False)
    _tell_credentials(found)
    say = words().print
    if found.ledger:
        ended = counted(found.ended, "end of access", "ends of access")
        say(f"{counted(found.erased, 'erasure')} and {ended} since the backup repeated.")
    else:
        say(
            "No list of erasures found, so the records that you erased after "
            f"{found.manifest.made_at}, and the access that you ended after then, "
            "are back. Erase the records and end the access again. Or, if you "
            "still have the file erasures.jsonl of your old data, restore again "
            "with --erasures FILE."
        )
    paused = f" {counted(found.waiting, 'grant')} paused." if found.waiting else ""
    here = f"PDPP_DATA_DIR={shlex.quote(str(settings.data_dir))}"
    say(
        f"The restore is complete. Reconnect your apps.{paused} From now on, set this "
        "variable for every command:"
    )
    say(plain(f"  export {here}"), soft_wrap=True)
    say(
        "List the grants with `pdpp grant list`. End those that you had ended "
        "after the backup, resume the others with `pdpp grant resume --all`, and "
        "start the server with `pdpp serve`."
    )


def _wanted(signer: str | None, *, unsigned: bool) -> str | None:
    """Who must have made a backup.  Raises: CommandError."""
    if signer is not None and unsigned:
        raise CommandError(
            "usage", "--signer and --unsigned exclude each other.", "Give one of them."
        )
    return NOBODY if unsigned else signer


_CREDENTIALS = {
    "passwords": ("password",),
    "passkeys": ("passkey",),
    "resource_servers": ("credential of a resource server", "credentials of resource servers"),
    "subscriptions": ("address to which an app is told", "addresses to which apps are told"),
    "clients": ("client in config.toml", "clients in config.toml"),
}


def _tell_credentials(found: Restored) -> None:
    """Say what signs somebody in that came back, or did not."""
    counts = found.credentials.items()
    what = ", ".join(counted(count, *_CREDENTIALS[name]) for name, count in counts if count)
    if what and found.is_proven:
        words().print(f"Restored with it: {what}. Change them if you changed them since.")
    elif what:
        words().print(
            f"Not restored: {what}, because nothing proves that your server made this backup. "
            "Set a new password with `pdpp owner password`. Or restore again with --signer KEY, "
            "if you know the key that `pdpp backup status` printed there."
        )


def _tell_standing(
    stores: Stores, settings: Settings, *, as_json: bool, signs: bool = True
) -> None:
    """Show the state of scheduled backups; `signs` where this server has a key of its own."""
    schedule, proof = schedule_of(stores, settings), stores.upkeep.proof()
    rows = [row for row in stores.upkeep.backups() if row.scheduled]
    made_at_ns = rows[0].made_at if rows else None
    due_ns = None
    if schedule is not None:
        due_ns = stores.clock() if made_at_ns is None else next_due_ns(made_at_ns, schedule)
    failure = None if schedule is None else stores.upkeep.backup_failure()
    signer = _signer(stores, settings) if signs else None
    proven_ns = None if proof is None else proof.proven_at_ns
    skipped = "" if proof is None else proof.skipped
    if as_json:
        report = {
            "schedule": None if schedule is None else msgspec.to_builtins(schedule),
            "set_by": "environment" if settings.backup_dir is not None else "command",
            "kept": sum(Path(row.path).exists() for row in rows),
            "last_backup": _instant(made_at_ns),
            "next_backup": _instant(due_ns),
            "last_proven_restore": _instant(proven_ns),
            "proof_skipped": skipped or None,
            "failure": None if failure is None else failure.why,
            "failing_since": None if failure is None else _instant(failure.since_ns),
            "signer": signer,
        }
        print_json(report)
        return
    if schedule is None:
        words().print(
            "No backups are scheduled. Schedule them: pdpp backup FOLDER --every 1d --keep 7"
        )
    else:
        sealed = "" if schedule.recipient is None else f", encrypted for {schedule.recipient}"
        is_due = due_ns is not None and due_ns <= stores.clock()
        facts = {
            "every": f"every {schedule.every_hours} h, while the server runs",
            "into": f"{schedule.folder}{sealed}",
            "keep": f"the newest {schedule.keep}; {len(rows)} so far",
            "last": _minute(made_at_ns),
            "next": "within a minute after the server starts" if is_due else _minute(due_ns),
        }
        print_facts(facts.items(), console())
    why = f" (the last test restore was skipped: {skipped}, see /healthz)" if skipped else ""
    words().print(plain(f"Last successful test restore: {_minute(proven_ns)}{why}"))
    if failure is not None:
        since = minute(failure.since_ns)
        words().print(plain(f"Backups fail since {since}. {failure.why} {failure.next_step}"))
    if signer is not None:
        words().print(plain(f"Signed with {signer}: note this key elsewhere, for restore --signer"))


def _signer(stores: Stores, settings: Settings) -> str | None:
    """The key, where the data directory has one or takes one."""
    try:
        return backup_signer(stores, settings).name
    except StorageUnavailable:
        return None


def _minute(at_ns: int | None) -> str:
    return "never" if at_ns is None else minute(at_ns)


def _instant(at_ns: int | None) -> str | None:
    return None if at_ns is None else render_instant(at_ns)


def _there(path: str) -> str:
    return "kept" if Path(path).exists() else "backup file moved or removed"


def _tell(manifest: BackupManifest, what: str, *, as_json: bool) -> None:
    if as_json:
        lost = {"vanished": list(manifest.vanished), "damaged": list(manifest.damaged)}
        report = {"made_at": manifest.made_at, "signer": manifest.signer}
        print_json({**report, **manifest.counts(), **lost})
        return
    counts = ", ".join(
        f"{count:,} {name.removesuffix('s') if count == 1 else name}"
        for name, count in manifest.counts().items()
    )
    console().print(plain(f"{what} {counts}, as of {manifest.made_at}."))
    words().print(plain(f"Signed with the key {manifest.signer}"))
    if manifest.damaged:
        words().print(f"{counted(len(manifest.damaged), 'file')} damaged: the content has changed.")
