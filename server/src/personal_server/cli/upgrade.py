"""`pdpp upgrade`: the program that is installed here, replaced by a newer release.

Source: docs/running.md, Upgrade.
"""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import version
from pathlib import Path

from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import print_facts, words
from pdpp_mcp_server.settings import one_file_program
from personal_server.app.database_claims import claim_database
from personal_server.app.installations import (
    Installation,
    NotInstalled,
    OneFile,
    own_environment,
)
from personal_server.app.upgrades import NewProgramFailed, Upgrade
from personal_server.cli.backup import Signer
from personal_server.cli.server_settings import settings_or_exit
from personal_server.settings import Settings, command_environment
from personal_server.upkeep.releases import (
    Release,
    ReleaseRefused,
    downloaded,
    downloaded_wheels,
    order_of,
)

PACKAGE = "pdpp-personal-server"
SIGNER_FILE = "release-signer"
"""In the data directory: whose releases the owner takes."""


def upgrade(
    file: Path, *, signer: Signer = None, dry_run: bool = False, json: bool = False
) -> None:
    """Replace this program by a newer release; stop the server first.

    The signature is checked, all data are copied, and the new program is started once. If it does
    not answer, the old program and the data are put back.

    Parameters
    ----------
    file
        The folder with the files of a release, or the program in it.
    signer
        The key that signs releases, as its makers publish it. Needed once; then it is remembered.
    dry_run
        Only say what would be done.
    json
        Print JSON.
    """
    installation = _installation()
    settings = settings_or_exit()
    if settings.database_url is not None:
        raise CommandError(
            "unavailable",
            "Your records are in PostgreSQL, which this command cannot copy.",
            "Back the database up, then put the new program in the place of the old one.",
        )
    known = settings.data_dir / SIGNER_FILE
    release = _release(file, installation)
    _require_signer(release, signer or _remembered(known))
    _require_newer(release)
    planned = Upgrade(installation, settings.database_path.absolute(), release)
    if not json:
        print_facts(_shown(planned).items(), words())
    if not dry_run:
        _carry_out(planned, settings, known)
    if json:
        print_json(_shown(planned) | {"done": not dry_run})


def _carry_out(planned: Upgrade, settings: Settings, known: Path) -> None:
    """Raises: CommandError, DatabaseInUse, OSError; the old program and its data are there then."""
    _require_room(planned)
    claim = claim_database(settings)
    try:
        known.write_text(planned.release.signer, encoding="ascii")
        planned.replace_program()
    except ReleaseRefused as refused:
        raise CommandError("export_unsafe", str(refused)) from None
    except NotInstalled:
        raise CommandError(
            "unavailable",
            "The packages could not be installed; the old ones are back.",
            "Do what the lines above say, then try again.",
        ) from None
    finally:
        if claim is not None:
            os.close(claim)
    words().print("Starting the new program once …")
    try:
        planned.try_out(command_environment(settings))
    except NewProgramFailed:
        raise CommandError(
            "unavailable",
            "The new program did not answer, so the old one and its data are back.",
            f"What the new one left is in {planned.failed_data}; report it, then delete it.",
        ) from None
    words().print(
        f"{planned.release.version} answers. Start it: pdpp serve, or pdpp service install.\n"
        f"Delete these when all is well: {planned.installation.previous} and {planned.kept_data}, "
        "which holds all your records."
    )


def _installation() -> Installation:
    """Raises: CommandError."""
    program = one_file_program()
    installation = own_environment() if program is None else OneFile(Path(program))
    if installation is None:
        raise CommandError(
            "unavailable",
            "This command replaces the program that is one file, and packages in an environment "
            "with pip or uv.",
            "From a checkout: git pull, then make install.",
        )
    return installation


def _release(file: Path, installation: Installation) -> Release:
    """Raises: CommandError."""
    if not file.exists():
        raise CommandError("not_found", "There is no such file.", "Give the folder of the release.")
    try:
        if isinstance(installation, OneFile):
            return downloaded(file.absolute(), platform.machine())
        return downloaded_wheels(file.absolute())
    except ReleaseRefused as refused:
        raise CommandError("export_unsafe", str(refused)) from None


def _remembered(known: Path) -> str | None:
    return (known.read_text(encoding="ascii").strip() or None) if known.is_file() else None


def _require_signer(release: Release, expected: str | None) -> None:
    """Raises: CommandError."""
    if expected is None:
        raise CommandError(
            "usage",
            f"This release is signed by {release.signer}, whom this server does not know yet.",
            "Compare the key with the one its makers publish, then add: --signer KEY",
        )
    if release.signer != expected:
        raise CommandError(
            "export_unsafe",
            f"This release is signed by {release.signer}, not by the key you named or used before.",
            "Do not run it, unless its makers announced a new key; then add: --signer KEY",
        )


def _require_newer(release: Release) -> None:
    """A signature never ends: an old release with a known fault has a good one.

    Raises: CommandError.
    """
    own = version(PACKAGE)
    if order_of(release.version) < order_of(own):
        raise CommandError(
            "export_unsafe",
            f"This release is {release.version}, older than the program, which is {own}.",
            "Download a newer one. To go back, put pdpp.previous and its data in their places.",
        )


def _require_room(planned: Upgrade) -> None:
    """Raises: CommandError."""
    if planned.kept_data.exists():
        raise CommandError(
            "unavailable",
            f"{planned.kept_data} has the data of before an earlier upgrade to this version.",
            "Delete it, or move it away, then try again. Nothing was changed.",
        )
    if planned.data_dir.is_mount():
        raise CommandError(
            "unavailable",
            f"{planned.data_dir} is a disk of its own, and no copy of it can be put in its place.",
            "Move the data into a folder on that disk and set PDPP_DATA_DIR to it. "
            "Nothing was changed.",
        )
    needed = planned.bytes_needed()
    if shutil.disk_usage(planned.data_dir.parent).free < needed:
        raise CommandError(
            "unavailable",
            f"The disk has no room for the copies: they need {needed / 1e6:,.0f} MB.",
            "Make room, then try again. Nothing was changed.",
        )


def _shown(planned: Upgrade) -> dict[str, str]:
    return {
        "program": str(planned.installation.place),
        "new version": planned.release.version,
        "signed by": planned.release.signer,
        "copy of the data": str(planned.kept_data),
        "old program": str(planned.installation.previous),
    }
