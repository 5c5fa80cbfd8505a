"""A release: equal twice, named as the parts say, signed so that a stranger can check it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from personal_server.settings import DEFAULT_ORIGIN
from release.archives import packed_tar, write_zip
from release.bundle import manifest
from release.program import stub_of
from release.registry_entry import entry, entry_name, faults
from release.signed_digests import write_digests


def tree(folder: Path, names: tuple[str, ...], seconds: int) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"of {name}")
        os.utime(path, (seconds, seconds))
    (folder / names[0]).chmod(0o700)
    return folder


def test_archives_do_not_tell_when_or_in_which_order_files_were_made(tmp_path: Path) -> None:
    names = ("bin/start", "b.txt", "a/b.txt")
    first = tree(tmp_path / "first", names, 1_700_000_000)
    other = tree(tmp_path / "other", (names[0], *reversed(names[1:])), 1_800_000_000)
    assert packed_tar(first, 1_790_000_000) == packed_tar(other, 1_790_000_000)
    for folder in (first, other):
        write_zip(folder, folder.with_suffix(".zip"), 1_790_000_000)
    assert first.with_suffix(".zip").read_bytes() == other.with_suffix(".zip").read_bytes()
    with zipfile.ZipFile(first.with_suffix(".zip")) as packed:
        modes = {entry.filename: entry.external_attr >> 16 for entry in packed.infolist()}
    assert modes == {"bin/start": 0o755, "b.txt": 0o644, "a/b.txt": 0o644}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A file as `release.program` writes it, with a Python that only says how it was called."""
    python = tmp_path / "tree" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$PDPP_PROGRAM|$*|${PYTHONPATH-}"\n')
    python.chmod(0o755)
    content = packed_tar(tmp_path / "tree", 1_790_000_000)
    path = tmp_path / "one file"
    path.write_bytes(stub_of(content) + content)
    path.chmod(0o755)
    return path


def start(program: Path, home: Path) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": "/of/another"}
    words = [str(program), "import", "a file"]
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False)


def test_the_program_unpacks_itself_once_and_says_where_it_lies(
    program: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for _ in range(2):
        done = start(program, home)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{program}|-P -s -m pdpp_mcp_server.commands import a file|\n"
    (unpacked,) = (home / ".local" / "share" / "pdpp" / "programs").iterdir()
    assert unpacked.stat().st_mode & 0o077 == 0


def test_a_damaged_program_is_not_unpacked(program: Path, tmp_path: Path) -> None:
    content = bytearray(program.read_bytes())
    content[-3] ^= 1
    program.write_bytes(content)
    done = start(program, tmp_path / "home")
    assert (done.returncode, done.stdout) == (65, "")
    assert "Download it again" in done.stderr
    assert list((tmp_path / "home" / ".local" / "share" / "pdpp" / "programs").iterdir()) == []


def test_a_place_without_room_is_named_and_left_as_it_was(program: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, where a folder would be")
    done = start(program, tmp_path / "home")
    assert (done.returncode, done.stdout) == (73, "")
    assert "XDG_DATA_HOME" in done.stderr


def test_digests_are_checked_by_what_every_system_has(tmp_path: Path) -> None:
    folder = tree(tmp_path / "dist", ("a.whl", "pdpp-0.1.0"), 1_790_000_000)
    key = tmp_path / "key.pem"
    private = Ed25519PrivateKey.generate()
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    write_digests(folder, key)
    check = ["sha256sum", "--check", "SHA256SUMS"]
    assert subprocess.run(check, cwd=folder, capture_output=True).returncode == 0
    verify = ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", "signer.pem"]
    named = ["-in", "SHA256SUMS", "-sigfile", "SHA256SUMS.sig"]
    if shutil.which("openssl"):
        assert subprocess.run([*verify, *named], cwd=folder, capture_output=True).returncode == 0
    private.public_key().verify(
        (folder / "SHA256SUMS.sig").read_bytes(), (folder / "SHA256SUMS").read_bytes()
    )


def test_what_hosts_and_registries_are_told_names_what_is_there(tmp_path: Path) -> None:
    bundle = tmp_path / "adapter.mcpb"
    bundle.write_bytes(b"packed")
    document = entry("1.2.3", bundle, "https://downloads.example/1.2.3/")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry_name())
    assert document["name"] == entry_name()
    assert len(str(document["description"])) <= 100
    packages = json.loads(json.dumps(document["packages"]))
    assert packages[1]["identifier"] == "https://downloads.example/1.2.3/adapter.mcpb"
    assert len(packages[1]["fileSha256"]) == 64
    assert len(json.loads(json.dumps(entry("1.2.3", bundle, None)["packages"]))) == 1


def test_a_bundle_asks_the_address_at_which_a_server_gives_access_unless_told_otherwise() -> None:
    """Another name of this machine is another origin: no access is saved for it."""
    settings = json.loads(json.dumps(manifest("1.2.3")))["user_config"]
    assert settings["server"]["default"] == DEFAULT_ORIGIN


def test_an_entry_that_a_registry_would_refuse_is_named(tmp_path: Path) -> None:
    schema = tmp_path / "server.schema.json"
    rules = {"properties": {"packages": {"items": {"required": ["identifier"]}}}}
    schema.write_text(json.dumps(rules))
    good = {"packages": [{"identifier": "one"}]}
    assert faults(good, schema) == []
    (fault,) = faults({"packages": [*good["packages"], {}]}, schema)
    assert fault.startswith("/packages/1: ")
    tools = json.loads(json.dumps(manifest("1.2.3")))["tools"]
    assert "query_records" in [tool["name"] for tool in tools]
