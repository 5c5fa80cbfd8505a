"""`pdpp backup`, `pdpp restore`: everything in one file, and back.

Source: docs/backup.md.
"""

from __future__ import annotations

from pathlib import Path

import cyclopts

from personal_server.app.backups import (
    BackupOrder,
    make_backup,
    restore_backup,
    verify_backup,
)
from personal_server.app.stores import open_stores
from personal_server.cli.exits import print_json, settings_or_exit
from personal_server.cli.tables import console, minute, plain, table, words
from personal_server.upkeep.backups import BackupManifest

backup = cyclopts.App(name="backup", help="Back everything up into one file.")


@backup.default
def make(file: Path, /, *, recipient: str | None = None, json: bool = False) -> None:
    """Back everything up into one file, while the server runs.

    Parameters
    ----------
    file
        The file to write; one that exists is never replaced.
    recipient
        Seal it for this age recipient (`age1…`, or an SSH public key).
    json
        Print JSON.
    """
    settings = settings_or_exit()
    with open_stores(settings, serving=False) as stores:
        manifest = make_backup(stores, settings, BackupOrder(file, recipient))
    _tell(manifest, f"{file} holds", as_json=json)


@backup.command
def verify(file: Path, /, *, identity: Path | None = None, json: bool = False) -> None:
    """Read a backup to its end, and compare everything in it with what it should be.

    Parameters
    ----------
    file
        The backup.
    identity
        The file of the age key (or SSH private key) that opens a sealed one.
    json
        Print JSON.
    """
    _tell(verify_backup(file, identity), f"{file} is whole:", as_json=json)


@backup.command(name="list")
def list_() -> None:
    """List the backups that are kept, and the last one that was proven by restoring it."""
    with open_stores(settings_or_exit(), serving=False) as stores:
        rows, proof = stores.upkeep.backups(), stores.upkeep.proof()
    lines = [
        (minute(row.made_at), f"{row.size_bytes:,}", _there(row.path), row.path) for row in rows
    ]
    console().print(table(("made", "bytes", "state", "file"), lines))
    proven = "never" if proof is None else minute(proof.proven_at_ns)
    skipped = f" (last try skipped: {proof.skipped})" if proof and proof.skipped else ""
    words().print(plain(f"Last proven restore: {proven}{skipped}"))


def restore(
    file: Path,
    /,
    *,
    identity: Path | None = None,
    erasures: Path | None = None,
    json: bool = False,
) -> None:
    """Restore a backup into an empty data directory (PDPP_DATA_DIR).

    Every app has to connect again, and every access waits until you let it go on.

    Parameters
    ----------
    file
        The backup.
    identity
        The file of the age key (or SSH private key) that opens a sealed one.
    erasures
        The list of erasures kept beside your data (`erasures.jsonl`); else the one beside the
        backup.
    json
        Print JSON.
    """
    settings = settings_or_exit()
    found = restore_backup(settings, file, identity, erasures)
    if json:
        told = {"erased": found.erased, "ended": found.ended, "waiting": found.waiting}
        print_json({**found.manifest.counts(), **told, "ledger": found.ledger})
        return
    _tell(found.manifest, f"Restored into {settings.data_dir}:", as_json=False)
    say = words().print
    if found.ledger:
        say(f"{found.erased} erasures made since the backup were made again.")
    else:
        say(
            "No list of erasures was found: what you erased, and access that you ended, after "
            f"{found.manifest.made_at} is back. End and erase it again."
        )
    say(
        f"{found.waiting} grants wait, and every app has to connect again. See the list: pdpp grant"
        " list. End what you had ended since; let the rest go on: pdpp grant resume --all"
    )


def _there(path: str) -> str:
    return "kept" if Path(path).exists() else "moved or removed"


def _tell(manifest: BackupManifest, what: str, *, as_json: bool) -> None:
    if as_json:
        lost = {"vanished": list(manifest.vanished), "damaged": list(manifest.damaged)}
        print_json({"made_at": manifest.made_at, **manifest.counts(), **lost})
        return
    counts = ", ".join(f"{count:,} {name}" for name, count in manifest.counts().items())
    console().print(plain(f"{what} {counts}, as of {manifest.made_at}."))
    if manifest.damaged:
        words().print(f"{len(manifest.damaged)} blobs have other bytes than were stored.")
