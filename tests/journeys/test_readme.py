"""What README and the owner's guide tell a newcomer to type works as it is written."""

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
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
ORIGIN = "http://127.0.0.1:7662"
MAIL = """\
From ada@example.org Mon Mar 14 06:30:00 2022
Message-ID: <1@example.org>
Date: Mon, 14 Mar 2022 07:30:00 +0100
From: ada@example.org
To: bob@example.org
Subject: A line

For Bob.
"""


def typed(program: str, page: str) -> list[list[str]]:
    """What a page says to type that begins with a program: lines of blocks, and between words."""
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    lines = [shlex.split(line, comments=True) for each in blocks for line in each.splitlines()]
    text = re.sub(r"```sh\n.*?```", "", page, flags=re.DOTALL)
    between = [shlex.split(command) for command in re.findall(rf"`({program} [^`{{]+)`", text)]
    return [words for words in (*lines, *between) if words[:1] == [program]]


@pytest.mark.parametrize("page", [README, GUIDE], ids=["README", "guide"])
def test_every_target_of_make_is_there(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {words[1] for words in typed("make", page)}
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


ASKING = ("add-mailbox", "add-calendar", "add-contacts")
"""Words of commands that are named without the address and the name that they need."""
# These are met elsewhere: they wait, sign in, or change the machine's own service.
ELSEWHERE = ("serve", "connect", "mcp", "owner", "service")


@pytest.mark.parametrize(
    "page",
    [README, pytest.param(GUIDE, marks=pytest.mark.long)],  # the guide's are README's and a few
    ids=["README", "guide"],
)
def test_every_command_works(site: Site, page: str) -> None:
    commands = [words for words in typed("pdpp", page) if words[1] not in ELSEWHERE]
    imports = [words for words in commands if words[1] == "import"]
    assert imports
    assert all("messages" in type_in(site, words) for words in imports)
    site.grant("agent", "--source", "mail", "--stream", "messages")
    (grant_id,) = re.findall(r"grt_[\w-]+", type_in(site, ["pdpp", "grant", "list"]))
    meant = {"ID": grant_id, "FOLDER": "Downloads", "NAME": "mail"}
    with site.serving():
        for words in commands:
            if words[1] != "import" and words[-1] not in ASKING:
                type_in(site, [meant.get(word, word) for word in words])
    assert grant_id not in type_in(site, ["pdpp", "grant", "list"])
