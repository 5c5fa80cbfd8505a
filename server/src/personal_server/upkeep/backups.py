"""A backup: one file with the database, the blobs, the configuration and what proves them whole.

Rule: a backup is made beside a running server and blocks no writer; a file appears whole or not at
all and replaces none; what is restored is verified first, and nothing is restored over anything.
Shapes: a tar archive with `database.sqlite3`, `config.toml`, `blobs/<sha256>` and, last,
    `manifest.json` with the size and digest of each, and `manifest.sig`, who signed that.
Source: docs/backup.md.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import orjson
from msgspec.structs import replace

from pdpp_kernel.errors import StorageUnavailable
from personal_server.upkeep.backup_signatures import signer_of

FORMAT_VERSION = "1"
DATABASE, CONFIGURATION, MANIFEST = "database.sqlite3", "config.toml", "manifest.json"
SIGNATURE = "manifest.sig"
BLOBS = "blobs/"
CHUNK_BYTES = 1 << 20
NOBODY = ""  # who signed the backups of versions before 2026-11-27
LARGEST_MANIFEST_BYTES = 1 << 30
_LARGEST_SIGNATURE_BYTES = 4096


class BackupRefused(StorageUnavailable):
    """A backup that cannot be written, read or restored."""


class BackupFile(msgspec.Struct, frozen=True):
    """A file in a backup."""

    name: str
    size_bytes: int
    sha256: str


class BackupManifest(msgspec.Struct, frozen=True):
    """What a backup holds.

    Shapes: `streams` are (connection, stream, records); `vanished` are blobs that were erased
        while it was made, `damaged` those whose bytes are not what their name says; `signer` is
        the public key of whoever signed the manifest, and not in it.
    """

    backup_id: str
    made_at: str
    version: str
    epoch: str
    sequence: int
    grants: int
    streams: tuple[tuple[str, str, int], ...]
    files: tuple[BackupFile, ...] = ()
    vanished: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    format_version: str = FORMAT_VERSION
    signer: str = ""

    @property
    def records(self) -> int:
        """How many records."""
        return sum(count for _, _, count in self.streams)

    @property
    def blobs(self) -> int:
        """How many blobs."""
        return sum(file.name.startswith(BLOBS) for file in self.files)

    def counts(self) -> dict[str, int]:
        """What commands end with."""
        return {"records": self.records, "blobs": self.blobs, "grants": self.grants}


@dataclass
class BackupWriter:
    """Writes an archive to an open file, and notes what it wrote."""

    out: IO[bytes]
    files: list[BackupFile] = field(default_factory=list[BackupFile])

    def __post_init__(self) -> None:
        self._tar = tarfile.open(fileobj=self.out, mode="w|", format=tarfile.PAX_FORMAT)  # noqa: SIM115 (closed by `close`)

    def add(self, name: str, content: IO[bytes]) -> BackupFile:
        """Add the bytes of an open file."""
        size_bytes = content.seek(0, os.SEEK_END)
        content.seek(0)
        reader = _Digesting(content)
        self._tar.addfile(_member(name, size_bytes), reader)
        self.files.append(BackupFile(name, size_bytes, reader.digest.hexdigest()))
        return self.files[-1]

    def close(self, manifest: dict[str, Any], sign: Callable[[bytes], bytes]) -> None:
        """End with the manifest, and what `sign` gives for it."""
        text = orjson.dumps(manifest, option=orjson.OPT_INDENT_2)
        for name, content in ((MANIFEST, text), (SIGNATURE, sign(text))):
            self._tar.addfile(_member(name, len(content)), io.BytesIO(content))
        self._tar.close()


def render_manifest(manifest: BackupManifest) -> dict[str, Any]:
    """As it stands in the archive."""
    members: dict[str, Any] = msgspec.to_builtins(manifest)
    del members["signer"]
    return {"object": "backup", **members}


def unpack(archive: IO[bytes], folder: Path | None, signer: str | None = None) -> BackupManifest:
    """Verify a whole archive and, with a folder, lay its files out there.

    Shapes: `signer` is the public key of who must have made it; without one anybody may have who
        signed it, and with `NOBODY` it may lack a signature, as those of earlier versions do.
    Raises: BackupRefused; what was laid out is then worth nothing.
    """
    found: dict[str, BackupFile] = {}
    manifest: BackupManifest | None = None
    text, made_by = b"", ""
    try:
        with tarfile.open(fileobj=archive, mode="r|") as tar:
            for member in tar:
                content = tar.extractfile(member)
                # one with holes says in few bytes that it is of any size
                if content is None or made_by or not _is_plain(member):
                    raise _damaged()
                if manifest is not None:
                    made_by = _signer(member, text, content, signer)
                    continue
                if not _is_ours(member.name):
                    raise _damaged()
                if member.name == MANIFEST:
                    text = content.read(LARGEST_MANIFEST_BYTES)
                    manifest = _parse_manifest(text)
                    continue
                target = None if folder is None else folder / _place(member.name)
                found[member.name] = _copied(member.name, content, target)
    except (tarfile.TarError, EOFError):
        raise _damaged() from None
    except OSError:
        raise BackupRefused(
            "The backup cannot be read, or the disk has no space to read it."
        ) from None
    if manifest is None or {each.name: each for each in manifest.files} != found:
        raise _damaged()
    if not made_by and signer != NOBODY:
        raise _unsigned()
    if any(
        found[name].sha256 != name.removeprefix(BLOBS)
        for name in found
        if name.startswith(BLOBS) and name not in manifest.damaged
    ):
        raise _damaged()
    return replace(manifest, signer=made_by)


def _signer(member: tarfile.TarInfo, text: bytes, content: IO[bytes], wanted: str | None) -> str:
    """Who signed the manifest.  Raises: BackupRefused."""
    if member.name != SIGNATURE:
        raise _damaged()
    found = signer_of(text, content.read(_LARGEST_SIGNATURE_BYTES))
    if found is None:
        raise _unsigned()
    if wanted not in (None, NOBODY, found):
        raise BackupRefused(
            "Another server than the one you named made this backup.",
            next_step="Compare the key with what `pdpp backup status` prints on your server.",
        )
    return found


def _unsigned() -> BackupRefused:
    return BackupRefused(
        "Nothing proves who made this backup: its signature is missing or wrong.",
        next_step=(
            "Use another backup. If an earlier version made it, and nobody else can have changed "
            "it, add --unsigned; what signs you in then stays out."
        ),
    )


def publish(scratch: Path, target: Path) -> None:
    """Give a finished file its name, durably.  Raises: BackupRefused if the name is taken."""
    try:
        with scratch.open("rb") as file:
            os.fsync(file.fileno())
        # the name is taken first, since a rename would replace what has it
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        scratch.replace(target)
        fsync_folder(target.parent)
    except FileExistsError:
        raise BackupRefused(f"{target.name} exists already; choose another name.") from None
    except OSError:
        raise BackupRefused(
            "The backup cannot be written to the file or folder that you named."
        ) from None


def fsync_folder(folder: Path) -> None:
    """Make names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Digesting:
    """A file that is digested as it is read."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        chunk = self._content.read(size)
        self.digest.update(chunk)
        return chunk


def _member(name: str, size_bytes: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size_bytes, 0o600
    return member


def _is_plain(member: tarfile.TarInfo) -> bool:
    return member.type == tarfile.REGTYPE and not member.issparse()


def _is_ours(name: str) -> bool:
    """Names are fixed, so that none leads out of a folder."""
    if name in (DATABASE, CONFIGURATION, MANIFEST):
        return True
    digest = name.removeprefix(BLOBS)
    return name.startswith(BLOBS) and len(digest) == 64 and set(digest) <= set("0123456789abcdef")


def _place(name: str) -> Path:
    digest = name.removeprefix(BLOBS)
    return Path(name) if digest == name else Path("blobs") / digest[:2] / digest


def _copied(name: str, content: IO[bytes], target: Path | None) -> BackupFile:
    digest, size_bytes = hashlib.sha256(), 0
    out: IO[bytes] | None = None
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        out = os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    try:
        for chunk in _chunks(content):
            digest.update(chunk)
            size_bytes += len(chunk)
            if out is not None:
                out.write(chunk)
        if out is not None:
            out.flush()
            os.fsync(out.fileno())
    finally:
        if out is not None:
            out.close()
    return BackupFile(name, size_bytes, digest.hexdigest())


def _chunks(content: IO[bytes]) -> Iterable[bytes]:
    while chunk := content.read(CHUNK_BYTES):
        yield chunk


def _parse_manifest(text: bytes) -> BackupManifest:
    with suppress(orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raw = cast("dict[str, Any]", orjson.loads(text))
        if raw.pop("object") != "backup" or raw["format_version"] != FORMAT_VERSION:
            raise BackupRefused("A newer version of pdpp made this backup.")
        raw["files"] = tuple(BackupFile(**each) for each in raw["files"])
        raw["streams"] = tuple((str(a), str(b), int(c)) for a, b, c in raw["streams"])
        raw["vanished"], raw["damaged"] = tuple(raw["vanished"]), tuple(raw["damaged"])
        return BackupManifest(**raw)
    raise _damaged()


def _damaged() -> BackupRefused:
    return BackupRefused(
        "This backup is not complete: something in it is missing, changed or foreign."
    )
