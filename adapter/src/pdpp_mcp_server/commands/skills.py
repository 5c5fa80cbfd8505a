"""`pdpp skills`: the skills of this package, written for the hosts here."""

from __future__ import annotations

import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import cyclopts
from cyclopts import Parameter

from pdpp_kernel.system.own_folders import make_folders
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import words
from pdpp_mcp_server.shipped_skills import PAGE, Skill, shipped_skills

SkillHost: TypeAlias = Literal["claude-code", "codex"]
FOLDERS: dict[SkillHost, tuple[str, str]] = {
    "claude-code": (".claude", "skills"),
    "codex": (".agents", "skills"),
}
"""Where a host looks for the skills of a person, below the home directory."""
MARK = ".as-written"
"""Beside a skill: the digest of the page that this command wrote, perhaps of another release."""

skills = cyclopts.App(name="skills", help="Teach the agents here to ask well.")


@skills.command
def install(
    *hosts: SkillHost,
    replace: Annotated[bool, Parameter(negative="")] = False,
    json: bool = False,
) -> int:
    """Write the skills for Claude Code and Codex into your home directory.

    A skill that you changed stays as it is, unless you say --replace.

    Parameters
    ----------
    hosts
        Only for these hosts.
    replace
        Replace skills that you changed.
    json
        Print JSON.
    """
    named: tuple[SkillHost, ...] = hosts or tuple(FOLDERS)
    written = [
        {"host": host, "skill": skill.name, "outcome": _write(skill, host, replace=replace)}
        for host in named
        for skill in shipped_skills()
    ]
    if json:
        print_json(written)
        return 0
    for host in named:
        words().print(f"{host}: ~/{'/'.join(FOLDERS[host])}", soft_wrap=True)
        for line in written:
            if line["host"] == host:
                words().print(f"  {line['skill']}: {line['outcome']}", soft_wrap=True)
    if any(line["outcome"] == "changed_by_you" for line in written):
        words().print(
            "Skills that you changed were not replaced: `pdpp skills install --replace` does it.",
            soft_wrap=True,
        )
    return 0


@skills.command
def remove(*hosts: SkillHost, json: bool = False) -> int:
    """Remove the skills again; those that you changed stay.

    Parameters
    ----------
    hosts
        Only for these hosts.
    json
        Print JSON.
    """
    removed: list[dict[str, str]] = []
    for host in hosts or tuple(FOLDERS):
        for skill in shipped_skills():
            page = _page(skill, host)
            if _is_ours(page, skill):
                page.unlink()
                page.with_name(MARK).unlink(missing_ok=True)
                if not any(page.parent.iterdir()):
                    page.parent.rmdir()
                removed.append({"host": host, "skill": skill.name})
    if json:
        print_json(removed)
    else:
        words().print(f"Removed: {len(removed)}.")
    return 0


def _page(skill: Skill, host: SkillHost) -> Path:
    return Path.home().joinpath(*FOLDERS[host], skill.name, PAGE)


def _is_as_shipped(page: Path, skill: Skill) -> bool:
    return page.read_text(encoding="utf-8", errors="replace") == skill.text


def _is_ours(page: Path, skill: Skill) -> bool:
    """Whether nobody changed it since it was written, by this release or another."""
    if not page.is_file():
        return False
    if _is_as_shipped(page, skill):
        return True
    mark = page.with_name(MARK)
    return (
        mark.is_file()
        and not page.is_symlink()
        and mark.read_text(encoding="utf-8", errors="replace") == _digest(page)
    )


def _digest(page: Path) -> str:
    return sha256(page.read_bytes()).hexdigest()


def _write(skill: Skill, host: SkillHost, *, replace: bool) -> str:
    """Write it, and say what became of it.  Raises: CommandError (`storage`)."""
    page = _page(skill, host)
    try:  # agents obey what lies there
        if page.is_file() and _is_as_shipped(page, skill):
            return "unchanged"
        if os.path.lexists(page) and not replace and not _is_ours(page, skill):
            return "changed_by_you"
        make_folders(page.parent)
        _put(page, skill.text)
        _put(page.with_name(MARK), _digest(page))
    except OSError:
        path = f"~/{page.relative_to(Path.home())}"
        message = f"{path} cannot be written."
        step = "Check who owns the folder and whether the disk has room, then repeat."
        raise CommandError("storage", message, step) from None
    return "written"


def _put(page: Path, text: str) -> None:
    """Whole or not at all, in the place of a link and not where it leads."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=page.parent, delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            Path(file.name).replace(page)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
