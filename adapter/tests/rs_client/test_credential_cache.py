from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pdpp_mcp_server.rs_client.credential_cache import CredentialCache, host_name
from pdpp_mcp_server.rs_client.credentials import (
    CredentialInsecure,
    CredentialInvalid,
    CredentialMismatch,
    NotConnected,
    ProviderUnavailable,
)

PROVIDER = "http://127.0.0.1:7662"


def document(**members: object) -> dict[str, Any]:
    return {
        "provider_url": PROVIDER,
        "authorization_server": PROVIDER,
        "client": {"client_id": "cli_1"},
        "credential": {"access_token": "pdpp_at_x", "token_type": "Bearer"},
        **members,
    }


def cache_at(tmp_path: Path) -> tuple[CredentialCache, list[str]]:
    warnings: list[str] = []
    return CredentialCache(tmp_path / ".pdpp", warnings.append), warnings


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_directories_are_private_whatever_the_umask(tmp_path: Path) -> None:
    cache, _ = cache_at(tmp_path)
    before = os.umask(0)
    try:
        path = cache.save(document())
    finally:
        os.umask(before)
    assert path == tmp_path / ".pdpp" / "clients" / "127.0.0.1_7662.json"
    assert (mode(path), mode(path.parent), mode(cache.root)) == (0o600, 0o700, 0o700)
    assert (cache.root / ".gitignore").read_text() == "*\n!.gitignore\n"


@pytest.mark.parametrize("made", ["!*\n", "*\n!clients/\n!clients/*\n", "", "\udcff", None])
def test_no_file_of_a_checkout_has_the_credential_committed(
    tmp_path: Path, made: str | None
) -> None:
    cache, _ = cache_at(tmp_path)
    cache.root.mkdir(mode=0o700)
    if made is None:
        (cache.root / ".gitignore").symlink_to(tmp_path / "elsewhere")
    else:
        (cache.root / ".gitignore").write_text(made, encoding="utf-8", errors="surrogateescape")
    cache.save(document())
    assert not (cache.root / ".gitignore").is_symlink()
    assert (cache.root / ".gitignore").read_text() == "*\n!.gitignore\n"
    assert not (tmp_path / "elsewhere").exists()


def test_a_directory_of_another_name_keeps_its_mode_and_its_gitignore(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir(mode=0o755)
    project.chmod(0o755)
    path = CredentialCache(project).save(document())
    assert mode(project) == 0o755
    assert not (project / ".gitignore").exists()
    assert (mode(path.parent), mode(path)) == (0o700, 0o600)
    assert (path.parent / ".gitignore").read_text() == "*\n!.gitignore\n"
    assert CredentialCache(project).providers() == (PROVIDER,)


def test_a_link_in_the_place_of_the_folder_changes_nothing_where_it_leads(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    (other / ".gitignore").write_text("build\n")
    (project / "clients").symlink_to(other)
    with pytest.raises(CredentialInsecure):
        CredentialCache(project).save(document())
    assert [(each.name, each.read_text()) for each in other.iterdir()] == [
        (".gitignore", "build\n")
    ]


def test_what_was_saved_is_loaded_and_unknown_members_stay(tmp_path: Path) -> None:
    cache, warnings = cache_at(tmp_path)
    cache.save(document(theirs=[1, {"x": "é"}]))
    assert cache.load(PROVIDER).document["theirs"] == [1, {"x": "é"}]
    assert cache.providers() == (PROVIDER,)
    assert warnings == []


def test_loose_modes_are_tightened_with_a_warning(tmp_path: Path) -> None:
    cache, warnings = cache_at(tmp_path)
    path = cache.save(document())
    path.chmod(0o644)
    path.parent.chmod(0o755)
    cache.load(PROVIDER)
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert len(warnings) == 2


def test_a_symbolic_link_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    cache, _ = cache_at(tmp_path)
    path = cache.save(document())
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(CredentialInsecure):
        cache.load(PROVIDER)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["directory", "pipe"])
def test_anything_but_a_file_in_place_of_the_file_is_refused(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    cache, _ = cache_at(tmp_path)
    path = cache.save(document())
    path.unlink()
    make(path)
    with pytest.raises(CredentialInsecure):
        cache.load(PROVIDER)


def test_a_root_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    cache, _ = cache_at(tmp_path)
    cache.root.touch()
    for attempt in (lambda: cache.load(PROVIDER), lambda: cache.save(document()), cache.prepare):
        with pytest.raises(CredentialInsecure):
            attempt()


def test_a_symbolic_link_in_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    cache, _ = cache_at(tmp_path)
    cache.save(document())
    clients = cache.root / "clients"
    clients.rename(tmp_path / "elsewhere")
    clients.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CredentialInsecure):
        cache.load(PROVIDER)
    with pytest.raises(CredentialInsecure):
        cache.save(document())


def test_a_link_called_like_the_root_is_refused_and_its_target_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "pictures"
    target.mkdir(mode=0o755)
    cache, _ = cache_at(tmp_path)
    cache.root.symlink_to(target)
    for attempt in (lambda: cache.load(PROVIDER), lambda: cache.save(document()), cache.prepare):
        with pytest.raises(CredentialInsecure):
            attempt()
    assert list(target.iterdir()) == []
    assert target.stat().st_mode & 0o777 == 0o755


def test_a_symbolic_link_in_place_of_the_lock_is_refused(tmp_path: Path) -> None:
    cache, _ = cache_at(tmp_path)
    path = cache.save(document())
    lock = path.with_suffix(".lock")
    lock.unlink()
    lock.symlink_to(tmp_path / "victim")
    with pytest.raises(CredentialInsecure):
        cache.save(document())
    assert not (tmp_path / "victim").exists()


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, _ = cache_at(tmp_path)
    cache.save(document())
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(CredentialInsecure):
        cache.load(PROVIDER)


def test_a_missing_cache_and_a_missing_file_mean_not_connected(tmp_path: Path) -> None:
    cache, _ = cache_at(tmp_path)
    with pytest.raises(NotConnected):
        cache.load(PROVIDER)
    assert cache.providers() == ()
    cache.remove(PROVIDER)
    cache.save(document())
    cache.remove(PROVIDER)
    with pytest.raises(NotConnected):
        cache.load(PROVIDER)


def test_a_file_for_another_provider_is_a_mismatch(tmp_path: Path) -> None:
    cache, _ = cache_at(tmp_path)
    path = cache.save(document())
    path.write_text(json.dumps(document(provider_url="https://other.example")))
    with pytest.raises(CredentialMismatch):
        cache.load(PROVIDER)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", "not a JSON object"),
        ('{"credential": {"access_token": 7}}', "`credential.access_token`"),
        ('{"provider_url": ["pdpp_at_x"], "credential": {}}', "`provider_url`"),
    ],
)
def test_a_damaged_file_is_named_with_its_address_and_what_is_wrong(
    tmp_path: Path, text: str, wrong: str
) -> None:
    cache, _ = cache_at(tmp_path)
    cache.save(document()).write_text(text)
    for read in (lambda: cache.load(PROVIDER), cache.providers):
        with pytest.raises(CredentialInvalid) as refused:
            read()
        assert "127.0.0.1_7662.json" in refused.value.message
        assert wrong in refused.value.message
        assert f"`pdpp connect {PROVIDER}`" in refused.value.next_step
        assert "pdpp_at_x" not in refused.value.message + refused.value.next_step


def test_a_file_with_nothing_but_a_credential_is_of_the_server_it_is_named_after(
    tmp_path: Path,
) -> None:
    cache, _ = cache_at(tmp_path)
    path = cache.save(document())
    for members in ({}, {"client": None}):
        path.write_text(json.dumps({"credential": {"access_token": "pdpp_at_x"}, **members}))
        assert cache.providers() == (PROVIDER,)
        assert cache.load(PROVIDER).access_token == "pdpp_at_x"


@pytest.mark.parametrize("text", ["", "{", "[]", '"pdpp_at_x"'])
def test_a_file_that_is_no_json_object_is_malformed(tmp_path: Path, text: str) -> None:
    cache, _ = cache_at(tmp_path)
    cache.save(document()).write_text(text)
    with pytest.raises(CredentialInvalid) as caught:
        cache.load(PROVIDER)
    assert "pdpp_at_x" not in str(caught.value)


def test_hosts_become_file_names_of_plain_characters() -> None:
    assert host_name("https://me.example") == "me.example"
    assert host_name("http://[::1]:7662") == "___1__7662"


def test_a_second_holder_of_the_lock_gives_up_in_words(tmp_path: Path) -> None:
    cache, _ = cache_at(tmp_path)
    cache.save(document())
    with (
        cache.locked(PROVIDER),
        pytest.raises(ProviderUnavailable),
        cache.locked(PROVIDER, wait_seconds=0),
    ):
        pass


WRITER = """
import sys
from collections.abc import Callable
from pathlib import Path
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
cache = CredentialCache(Path(sys.argv[1]))
n = 0
while True:
    n += 1
    token = f"pdpp_at_{n}"
    cache.save({"provider_url": sys.argv[2], "client": {"client_id": "c"},
                "credential": {"access_token": token, "pad": token * 5000}})
    if n == 3:
        print("writing", flush=True)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    cache, _ = cache_at(tmp_path)
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(cache.root), PROVIDER], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        for _ in range(50):
            cache.load(PROVIDER)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        credential = cache.load(PROVIDER)
        inner = credential.document["credential"]
        assert isinstance(inner, dict)
        assert inner["pad"] == credential.access_token * 5000
    cache.save(document())
    assert not [name for name in os.listdir(cache.root / "clients") if ".json." in name]


def test_the_file_that_keeps_git_away_is_private_whatever_the_mask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        CredentialCache(tmp_path / ".pdpp").prepare()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / ".pdpp" / ".gitignore").stat().st_mode) == 0o600
