"""`config.toml` in the data directory: who the owner is, and the clients set up by hand.

Rule: the subject id is made once with the store and never changes.  Source: AS contract 0, 3.
"""

from __future__ import annotations

import base64
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from personal_server.errors import StorageUnavailable

SUBJECT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the file says.  `clients` are the `[[clients]]` tables as they stand."""

    subject_id: str
    clients: tuple[dict[str, Any], ...] = ()


def load_configuration(data_dir: Path, random_bytes: Callable[[int], bytes]) -> Configuration:
    """Read the file; the first start writes it.  Raises: StorageUnavailable."""
    path = data_dir / "config.toml"
    try:
        _make_private(data_dir)
        _write_once(path, random_bytes)
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise StorageUnavailable(
            "The data directory cannot be used. Check that PDPP_DATA_DIR is yours and writable."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise StorageUnavailable(
            "config.toml in the data directory is not TOML; mend it."
        ) from None
    subject_id = content.get("subject_id")
    if not isinstance(subject_id, str) or not subject_id.startswith("own_"):
        raise StorageUnavailable("config.toml in the data directory names no subject_id.")
    return Configuration(subject_id, tuple(content.get("clients", ())))


def _make_private(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _write_once(path: Path, random_bytes: Callable[[int], bytes]) -> None:
    """The file appears whole or not at all, and only one process makes it."""
    if path.exists():
        return
    token = base64.urlsafe_b64encode(random_bytes(SUBJECT_BYTES)).rstrip(b"=").decode("ascii")
    scratch = path.with_name(f".config-{os.getpid()}.toml")
    scratch.write_text(f'subject_id = "own_{token}"\n', encoding="utf-8")
    scratch.chmod(0o600)
    try:
        os.link(scratch, path)
    except FileExistsError:
        return
    finally:
        scratch.unlink()
