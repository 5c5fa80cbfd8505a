"""What README tells a newcomer to type works as it is written, from a folder of their own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest

from bench.site import Site
from personal_server.domain.hosts import host_connections

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ORIGIN = "http://127.0.0.1:7662"
LINES = [
    words
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if (words := shlex.split(line, comments=True))
]
MAIL = """\
From ada@example.org Mon Mar 14 06:30:00 2022
Message-ID: <1@example.org>
Date: Mon, 14 Mar 2022 07:30:00 +0100
From: ada@example.org
To: bob@example.org
Subject: A line

For Bob.
"""


def typed(program: str) -> list[list[str]]:
    """The lines that begin with a program, and those between the words."""
    between = [shlex.split(each) for each in re.findall(rf"`({program} [^`{{]+)`", README)]
    return [words for words in (*LINES, *between) if words[0] == program]


def test_every_target_of_make_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {words[1] for words in typed("make")}
    assert asked
    assert asked <= targets


def test_each_host_is_connected_by_the_one_spelling() -> None:
    told = {each.host: each.text for each in host_connections(ORIGIN)}
    rows = re.findall(r"^\| ([^|]+) \| `([^`]+)` \|", README, re.MULTILINE)
    assert {name for name, _ in rows} == {"Claude Code", "Codex", "VS Code"}
    for name, command in rows:
        assert command == told[name]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A newcomer's machine: an export in ~/Downloads, `pdpp` on the path."""
    (tmp_path / "Downloads").mkdir()
    (tmp_path / "Downloads" / "takeout.mbox").write_text(MAIL)
    return Site(tmp_path)


def type_in(site: Site, words: list[str]) -> str:
    """The line in a shell, at the port of this test; what it prints.

    Only the port differs from what is written, so that tests can run beside each other.
    """
    line = shlex.join(words).replace("'~'", "~").replace(ORIGIN, site.origin)
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.defpath}"
    environment = {"HOME": str(site.folder), "PATH": path}
    environment |= {"PDPP_DATA_DIR": str(site.data_dir), "PDPP_BIND": site.origin[7:]}
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=site.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    return done.stdout


def test_every_command_works(site: Site) -> None:
    commands = typed("pdpp")
    bring, *others = commands
    assert bring[1] == "import"
    assert "messages" in type_in(site, bring)
    site.grant("agent", "--source", "mail", "--stream", "messages")
    (grant_id,) = re.findall(r"grt_[\w-]+", type_in(site, ["pdpp", "grant", "list"]))
    meant = {"ID": grant_id, "FOLDER": "Downloads"}
    with site.serving():
        for words in others:
            if words[1] not in ("serve", "connect", "mcp", "owner"):  # those are met elsewhere
                type_in(site, [meant.get(word, word) for word in words])
    assert grant_id not in type_in(site, ["pdpp", "grant", "list"])
