"""A release as it was downloaded: which of its files this machine runs, and who made it.

Rule: nothing of it is run before its digest stands in a list whose signature holds; whether the
signer is the right one, the owner says once.
Source: docs/releasing.md.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from personal_server.consent.credentials import base64url

DIGESTS, SIGNATURE, SIGNER = "SHA256SUMS", "SHA256SUMS.sig", "signer.pem"
_PROGRAM = re.compile(r"pdpp-(?P<version>[0-9][\w.+]*)-linux-(?P<machine>\w+)")
_WHEEL = re.compile(r"pdpp_\w+-(?P<version>[0-9][\w.+]*)-py3-none-any\.whl")
_MOST_BYTES = 1024 * 1024
_STAGES = {"dev": -4, "a": -3, "b": -2, "rc": -1}
_STAGE = re.compile(r"(\d)(a|b|rc)|\.(dev)")
_LINE = re.compile(r"(?P<digest>[0-9a-f]{64})  (?P<name>[\w.+-]+)")


class ReleaseRefused(Exception):
    """The files are no release that this machine may run; the text says what to do."""


class Release(msgspec.Struct, frozen=True):
    """What this machine needs of a version that somebody signed.

    Shapes: `files` with the digest of each; `signer` is the public key, as commands take it.
    """

    version: str
    files: Mapping[Path, str]
    signer: str

    @property
    def size(self) -> int:
        """Of all files.  Units: bytes."""
        return sum(file.stat().st_size for file in self.files)

    def copy_of(self, file: Path, to: Path) -> Path:
        """Copy one of the files, and see that the copy is what was signed: it may have changed.

        Raises: ReleaseRefused, OSError.
        """
        shutil.copyfile(file, to)
        _require_whole(to, self.files[file])
        return to


def downloaded(path: Path, machine: str) -> Release:
    """The program of a folder, or the one that is named, if its digest and signature hold.

    Shapes: `machine` is the processor, as in the names of programs.
    Raises: ReleaseRefused, OSError.
    """
    folder = path if path.is_dir() else path.parent
    signer, digests = _signed_digests(folder)
    if path.is_dir():
        names = [name for name in digests if _is_for(name, machine)]
        if len(names) != 1:
            raise ReleaseRefused(f"The release has no program for {machine}.")
        path = folder / names[0]
    named = _PROGRAM.fullmatch(path.name)
    if named is None or path.name not in digests:
        raise ReleaseRefused(f"{DIGESTS} beside the file does not name it. Keep its own name.")
    if named["machine"] != machine:
        raise ReleaseRefused(f"This program is for {named['machine']}; this machine is {machine}.")
    return _whole(Release(named["version"], {path: digests[path.name]}, signer))


def downloaded_wheels(path: Path) -> Release:
    """The wheels of a folder, if their digests and signature hold.

    Raises: ReleaseRefused, OSError.
    """
    folder = path if path.is_dir() else path.parent
    signer, digests = _signed_digests(folder)
    named = {name: found["version"] for name in digests if (found := _WHEEL.fullmatch(name))}
    if len(set(named.values())) != 1:
        raise ReleaseRefused("The release has no wheels of one version.")
    version = next(iter(named.values()))
    return _whole(Release(version, {folder / name: digests[name] for name in named}, signer))


def _whole(release: Release) -> Release:
    for file, digest in release.files.items():
        if not file.is_file():
            raise ReleaseRefused(f"Download {file.name} of the release as well.")
        _require_whole(file, digest)
    return release


def _require_whole(file: Path, digest: str) -> None:
    with file.open("rb") as content:
        if hashlib.file_digest(content, "sha256").hexdigest() != digest:
            raise ReleaseRefused("The file is not the one that was signed. Download it again.")


def _is_for(name: str, machine: str) -> bool:
    named = _PROGRAM.fullmatch(name)
    return named is not None and named["machine"] == machine


def _signed_digests(folder: Path) -> tuple[str, Mapping[str, str]]:
    """Who signed the list of digests, and the list, by name.  Raises: ReleaseRefused, OSError."""
    missing = [name for name in (DIGESTS, SIGNATURE, SIGNER) if not (folder / name).is_file()]
    if missing:
        raise ReleaseRefused(f"Download {', '.join(missing)} of the release into the same folder.")
    text = _bytes_of(folder / DIGESTS)
    try:
        key = load_pem_public_key(_bytes_of(folder / SIGNER))
        if not isinstance(key, Ed25519PublicKey):
            raise ReleaseRefused(f"{SIGNER} is no Ed25519 key.")
        key.verify(_bytes_of(folder / SIGNATURE), text)
    except (ValueError, InvalidSignature) as error:
        raise ReleaseRefused(
            f"{SIGNATURE} does not sign {DIGESTS}. Download them again."
        ) from error
    lines = (_LINE.fullmatch(line) for line in text.decode("ascii", "replace").splitlines())
    return base64url(key.public_bytes_raw()), {
        line["name"]: line["digest"] for line in lines if line
    }


def _bytes_of(file: Path) -> bytes:
    """A small file of a release, as far as one may be long."""
    with file.open("rb") as content:
        return content.read(_MOST_BYTES)


def order_of(version: str) -> tuple[tuple[int, ...], int]:
    """What tells which of two versions is newer: its numbers, and how far a trial of them was.

    In: `0.10.0`, `0.10`, `0.10.0rc1`.  Out: `((0, 10), 0)` of the first two, `((0, 10), -1)`.
    """
    public = version.split("+")[0].lower()
    stage = _STAGE.search(public)
    numbers = _numbers_of(
        public if stage is None else public[: stage.start() + len(stage[1] or "")]
    )
    return numbers, 0 if stage is None else _STAGES[stage[2] or stage[3]]


def _numbers_of(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    numbers = [int("".join(takewhile(str.isdecimal, part)) or 0) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
