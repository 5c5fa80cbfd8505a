"""A host with one view of results, and the walk through a long field that every host can make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.journeys.views import SmallWindow, View
from tests.requirements.doors import Door, World

Json = dict[str, Any]
large = "".join(f"{n} \U0001f6eb\u00e9 a line of text\n" for n in range(9_000))
"""More than 200,000 characters, some of them astral."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host with one view of results, connected to a server."""

    door: Door
    view: type[View]

    @property
    def world(self) -> World:
        return self.door.world

    async def call(self, tool: str, arguments: Json) -> View:
        return self.view(tool, arguments, await self.door.call(tool, arguments))

    async def page(self, tool: str, arguments: Json) -> View:
        """A page that is wholly in sight."""
        page = await self.call(tool, arguments)
        while not page.is_whole():
            page = await self.call(tool, {**arguments, "limit": max(1, len(page.ids()) - 1)})
        return page

    async def all_ids(self, arguments: Json, count: str) -> list[str]:
        """The ids of a list paged to its end; every page states the count."""
        ids: list[str] = []
        while True:
            page = await self.page("query_records", arguments)
            assert page.fact("count") == count
            ids += page.ids()
            following = page.following()
            if following is None:
                return ids
            arguments = following.arguments


def limit_chars(host: Host) -> int:
    """A window that the host shows whole."""
    return 3_000 if host.view is SmallWindow else 16_384


async def walk(host: Host, seen: View) -> str:
    """All windows from a first one to the end."""
    parts = [seen.window()]
    following = seen.following()
    while following is not None:
        seen = await host.call(following.tool, following.arguments)
        parts.append(seen.window())
        following = seen.following()
    return "".join(parts)
