"""`config.toml` in the data directory: who the owner is, the clients that the owner set up by hand,
and the owner's time zone and language.

Rule: the subject id is made once with the store and never changes; the database says it too, and
`upkeep.ownership` holds the two together.
Source: docs/contract/authorization-server.md 0, 3.
"""

from __future__ import annotations

import base64
import os
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from pdpp_kernel.errors import StorageUnavailable
from pdpp_kernel.refused_writes import refusal_of

SUBJECT_BYTES = 16


class ConfigurationFile(msgspec.Struct, frozen=True):
    """What the file says.  `clients` is what stands there, tables or else."""

    subject_id: str
    clients: object = None
    time_zone: str | None = None
    language: str | None = None


def configuration_path(data_dir: Path) -> Path:
    """Where the file lies."""
    return data_dir / "config.toml"


def new_subject_id(random_bytes: Callable[[int], bytes]) -> str:
    """The id of an owner who begins."""
    token = base64.urlsafe_b64encode(random_bytes(SUBJECT_BYTES)).rstrip(b"=").decode("ascii")
    return f"own_{token}"


def read_configuration(data_dir: Path) -> ConfigurationFile | None:
    """What the file says, `None` where there is none.  Raises: StorageUnavailable."""
    try:
        content = tomllib.loads(configuration_path(data_dir).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refusal_of(error) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise StorageUnavailable(
            "config.toml in the data directory is not valid TOML. Correct the file."
        ) from None
    subject_id = content.get("subject_id")
    if not isinstance(subject_id, str) or not subject_id.startswith("own_"):
        raise StorageUnavailable("config.toml in the data directory does not contain subject_id.")
    zone, language = (
        kept if isinstance(kept := content.get(name), str) else None
        for name in ("time_zone", "language")
    )
    return ConfigurationFile(subject_id, content.get("clients"), zone, language)


def write_configuration(data_dir: Path, subject_id: str) -> ConfigurationFile:
    """Write the file where there is none: whole or not at all.  Raises: StorageUnavailable."""
    path = configuration_path(data_dir)
    scratch = _scratch(path)
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            scratch.write_text(f'subject_id = "{subject_id}"\n', encoding="utf-8")
            scratch.chmod(0o600)
            with suppress(FileExistsError):  # another process was first, with the same owner
                os.link(scratch, path)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise refusal_of(error) from None
    return ConfigurationFile(subject_id)


def keep_time_zone(data_dir: Path, name: str) -> None:
    """Write the owner's time zone into the file, if there is one and it names none.

    Raises: StorageUnavailable.
    """
    found = read_configuration(data_dir)
    if found is not None and found.time_zone is None:
        keep_values(data_dir, {"time_zone": name})


def keep_values(data_dir: Path, values: Mapping[str, str | None]) -> None:
    """Say so in the file, in the place of what it said of these names."""
    path = configuration_path(data_dir)
    scratch = _scratch(path)
    try:
        head, table, tables = path.read_text(encoding="utf-8").partition("\n[")
        kept = [line for line in head.splitlines() if line.partition("=")[0].strip() not in values]
        # At the top: what follows the tables below would belong to them.
        new = [f'{name} = "{value}"' for name, value in values.items() if value is not None]
        text = "\n".join([*new, *kept, ""])
        try:
            scratch.write_text(text + (table + tables).lstrip("\n"), encoding="utf-8")
            scratch.chmod(0o600)
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise refusal_of(error) from None


def _scratch(path: Path) -> Path:
    return path.with_name(f".config-{os.getpid()}.toml")
