"""The Skills extension over `/mcp`: declared, listed, read, and unseen by whoever does not ask."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import yaml

from tests.requirements.doors import RpcError, World, eras, http_door

pytestmark = pytest.mark.anyio

EXTENSION = "io.modelcontextprotocol/skills"
STATELESS = next(name for name, era in eras.items() if era == "2026-07-28")


async def test_every_skill_is_listed_with_what_is_read_at_its_address() -> None:
    async with http_door(STATELESS, World()) as door:
        assert door.greeting["capabilities"]["extensions"] == {EXTENSION: {}}
        assert "resources" in door.greeting["capabilities"]
        listed = await door.wire.request("skills/list")
        assert (listed["resultType"], listed["cacheScope"]) == ("complete", "public")
        assert listed["ttlMs"] > 0
        for skill in listed["skills"]:
            (content,) = await door.read(skill["uri"])
            page = content["text"].encode()
            digest = f"sha256:{hashlib.sha256(page).hexdigest()}"
            assert skill["resources"] == [
                {"uri": skill["uri"], "digest": digest, "size": len(page)}
            ]
            assert skill["frontmatter"] == yaml.safe_load(page.split(b"---\n")[1])
            assert skill["uri"] == f"skill://{skill['frontmatter']['name']}/SKILL.md"
            assert content["mimeType"] == "text/markdown"
            got = await door.wire.request("skills/get", {"uri": skill["uri"]})
            assert (got["skill"], got["resultType"]) == (skill, "complete")
        assert len(listed["skills"]) == 3


async def test_a_host_of_an_earlier_revision_is_told_nothing_of_it() -> None:
    for name in eras.keys() - {STATELESS}:
        async with http_door(name, World()) as door:
            assert "extensions" not in door.greeting["capabilities"]


@pytest.mark.parametrize("era", eras)
@pytest.mark.parametrize("method", ["resources/list", "resources/templates/list", "prompts/list"])
async def test_no_list_names_a_skill(era: str, method: str) -> None:
    async with http_door(era, World()) as door:
        assert "skill" not in str(await door.wire.request(method))


@pytest.mark.parametrize(
    "params",
    [
        {"uri": "skill://personal-data-ask"},
        {"uri": "skill://personal-data-ask/../personal-data-cite/SKILL.md"},
        {"uri": "skill://another/SKILL.md"},
        {"uri": "pdpp://schema"},
        {"uri": 7},
        {},
    ],
)
async def test_what_is_no_skill_is_refused_with_their_addresses(params: dict[str, Any]) -> None:
    async with http_door(STATELESS, World()) as door:
        with pytest.raises(RpcError) as refused:
            await door.wire.request("skills/get", params)
        assert refused.value.code == -32602
