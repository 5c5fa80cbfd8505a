"""The skills of this package: short instructions that an agent loads when it needs them.

A skill is a folder with a `SKILL.md`, whose head says when it helps.  Hosts find it in a person's
home directory (`pdpp skills install`), or over MCP as the Skills extension describes it.
Source: docs/contract/mcp-adapter.md 11.2; agentskills.io/specification; SEP-2640.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec

from pdpp_mcp_server.rs_client.json_values import Json

PAGE = "SKILL.md"
SCHEME = "skill://"
EXTENSION = "io.modelcontextprotocol/skills"
LIST_METHOD = "skills/list"
GET_METHOD = "skills/get"


class Skill(msgspec.Struct, frozen=True):
    """A skill of this package: its name, and the text of its `SKILL.md`, which is all it holds."""

    name: str
    text: str

    @property
    def uri(self) -> str:
        """Where its `SKILL.md` is read."""
        return f"{SCHEME}{self.name}/{PAGE}"

    @property
    def head(self) -> dict[str, str]:
        """The names and values between the two lines of hyphens; each stands on one line."""
        _, head, _ = self.text.split("---\n", 2)
        pairs = (line.partition(": ") for line in head.splitlines())
        return {name: value for name, _, value in pairs}

    @property
    def entry(self) -> Json:
        """The skill as `skills/list` and `skills/get` tell it, with the digest of its one file."""
        page = self.text.encode()
        digest = f"sha256:{sha256(page).hexdigest()}"
        files = [{"uri": self.uri, "digest": digest, "size": len(page)}]
        return {"uri": self.uri, "frontmatter": self.head, "resources": files}


@cache
def shipped_skills() -> tuple[Skill, ...]:
    """The skills of this package, by name."""
    pages = sorted((Path(__file__).parent / "skills").glob(f"*/{PAGE}"))
    return tuple(Skill(page.parent.name, page.read_text(encoding="utf-8")) for page in pages)


def skill_at(uri: str) -> Skill | None:
    """The skill whose page is read at an address."""
    return next((skill for skill in shipped_skills() if skill.uri == uri), None)
