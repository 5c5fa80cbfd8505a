"""`pdpp skills`: what is written for the hosts of this machine, and what is left alone."""

from __future__ import annotations

import json
import os
import re
from importlib.resources import files
from pathlib import Path

import pytest

from pdpp_mcp_server.commands.exits import run_app
from pdpp_mcp_server.commands.skills import FOLDERS, skills
from pdpp_mcp_server.shipped_skills import Skill, shipped_skills

TOOLS = json.loads(files("pdpp_mcp_server").joinpath("mcp-tools.json").read_text())["tools"]
SCREEN = 40


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def page(home: Path, host: str, name: str) -> Path:
    folder = next(parts for known, parts in FOLDERS.items() if known == host)
    return home.joinpath(*folder, name, "SKILL.md")


def outcomes(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert run_app(skills, ["install", *arguments, "--json"]) == 0
    return [line["outcome"] for line in json.loads(capsys.readouterr().out)]


def test_each_host_gets_every_skill_once(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcomes(capsys) == ["written"] * 2 * len(shipped_skills())
    for host in FOLDERS:
        for skill in shipped_skills():
            assert page(home, host, skill.name).read_text(encoding="utf-8") == skill.text
    assert outcomes(capsys) == ["unchanged"] * 2 * len(shipped_skills())


def test_one_host_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcomes(capsys, "codex") == ["written"] * len(shipped_skills())
    assert not (home / ".claude").exists()


def test_what_a_person_changed_stays(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes(capsys, "codex")
    changed = page(home, "codex", shipped_skills()[0].name)
    changed.write_text("mine", encoding="utf-8")
    assert outcomes(capsys, "codex")[0] == "changed_by_you"
    assert run_app(skills, ["remove", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(shipped_skills()) - 1
    assert changed.read_text(encoding="utf-8") == "mine"
    assert outcomes(capsys, "codex", "--replace")[0] == "written"


def test_a_skill_of_another_release_is_not_taken_for_one_that_a_person_changed(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    older = tuple(Skill(each.name, f"{each.text}\nAs it was.\n") for each in shipped_skills())
    with monkeypatch.context() as patch:
        patch.setattr("pdpp_mcp_server.commands.skills.shipped_skills", lambda: older)
        assert outcomes(capsys, "codex") == ["written"] * len(older)
    changed = page(home, "codex", older[0].name)
    changed.write_text(f"{older[0].text}Mine.\n", encoding="utf-8")
    assert outcomes(capsys, "codex") == ["changed_by_you"] + ["written"] * (len(older) - 1)
    assert (
        page(home, "codex", older[1].name).read_text(encoding="utf-8") == shipped_skills()[1].text
    )
    changed.unlink()
    with monkeypatch.context() as patch:
        patch.setattr("pdpp_mcp_server.commands.skills.shipped_skills", lambda: older)
        assert run_app(skills, ["remove", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(older) - 1
    left = [path for path in home.rglob("*") if path.is_file()]
    assert [path.parent.name for path in left] == [older[0].name]  # who wrote it is still known


def test_what_a_person_wrote_in_another_encoding_stays(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes(capsys, "codex")
    changed = page(home, "codex", shipped_skills()[0].name)
    changed.write_bytes("schön".encode("latin-1"))
    assert outcomes(capsys, "codex")[0] == "changed_by_you"
    assert run_app(skills, ["remove"]) == 0
    assert changed.read_bytes() == "schön".encode("latin-1")


def test_a_folder_that_cannot_be_written_is_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".claude").write_text("a file")
    assert run_app(skills, ["install", "claude-code", "--json"]) != 0
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "storage"


@pytest.mark.parametrize("written", ["mine", None])
def test_a_link_is_replaced_on_demand_and_nothing_is_written_where_it_leads(
    home: Path, capsys: pytest.CaptureFixture[str], written: str | None
) -> None:
    linked = page(home, "codex", shipped_skills()[0].name)
    linked.parent.mkdir(parents=True)
    target = home / "elsewhere"
    if written is not None:
        target.write_text(written, encoding="utf-8")
    linked.symlink_to(target)
    assert outcomes(capsys, "codex")[0] == "changed_by_you"
    assert linked.is_symlink()
    assert outcomes(capsys, "codex", "--replace")[0] == "written"
    assert not linked.is_symlink()
    assert (target.read_text(encoding="utf-8") if target.exists() else None) == written


def test_nobody_else_may_write_what_agents_obey(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = os.umask(0)
    try:
        outcomes(capsys)
    finally:
        os.umask(usual)
    assert [str(each) for each in home.rglob("*") if each.stat().st_mode & 0o022] == []


@pytest.mark.parametrize("skill", shipped_skills(), ids=lambda skill: skill.name)
def test_a_skill_is_one_screen_with_the_head_that_hosts_read(skill: Skill) -> None:
    name, text = skill.name, skill.text
    head = re.fullmatch(r"---\nname: (.+)\ndescription: (.+)\n---\n.*", text, re.DOTALL)
    assert head is not None
    assert head[1] == name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", name)
    assert len(head[2]) <= 1024
    assert text.count("\n") <= SCREEN


def test_a_skill_names_tools_and_arguments_that_are_there() -> None:
    texts = "".join(skill.text for skill in shipped_skills())
    words = set(re.findall(r"`([a-z_]+)[`(:]", texts))
    tools = {tool["name"] for tool in TOOLS}
    arguments = {name for tool in TOOLS for name in tool["inputSchema"]["properties"]}
    answered = {
        "next", "next_call", "other_count", "unavailable_connections", "next_changes_since", "url",
        "field_not_granted", "grant_stream_not_allowed", "insufficient_scope",
    }  # fmt: skip
    assert words <= tools | arguments | answered
    assert tools <= words | {"schema"}
