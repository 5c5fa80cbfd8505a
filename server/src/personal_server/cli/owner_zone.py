"""The owner's time zone, in which times are read that name none: asked for once, then kept.

Rule: it stays the same wherever the machine travels, so that the same export says the same again.
It is kept once a time was read in it, or as soon as the owner answers.
"""

from __future__ import annotations

import sys
from typing import Protocol
from zoneinfo import ZoneInfo, available_timezones

from tzlocal import get_localzone_name

from pdpp_mcp_server.commands.failures_shown import CommandError
from personal_server.cli.server_settings import settings_or_exit
from personal_server.configuration_file import keep_time_zone, read_configuration


class OwnerZone(Protocol):
    """Where the owner's zone comes from."""

    def known(self) -> str | None:
        """The one that was set or kept."""
        ...

    def machine(self) -> str:
        """That of this machine."""
        ...

    def ask(self, default: str) -> str | None:
        """What the owner answers; None where nobody can be asked."""
        ...

    def keep(self, name: str) -> None:
        """Know it from now on."""
        ...


class ConfiguredZone:
    """The zone of the settings, else of `config.toml`."""

    def known(self) -> str | None:
        """The setting counts before the file."""
        settings = settings_or_exit()
        if settings.time_zone is not None:
            return settings.time_zone
        file = read_configuration(settings.data_dir)
        return None if file is None else file.time_zone

    def machine(self) -> str:
        """UTC, where the system does not say it."""
        try:
            return zone_named(get_localzone_name() or "UTC")
        except (CommandError, LookupError, ValueError, OSError):
            return "UTC"

    def ask(self, default: str) -> str | None:
        """On a terminal only."""
        if not sys.stdin.isatty():
            return None
        from personal_server.cli.zone_question import asked_zone  # noqa: PLC0415 (at a terminal)

        return asked_zone(default, zone_meant)

    def keep(self, name: str) -> None:
        """In `config.toml`, once the data directory has one."""
        keep_time_zone(settings_or_exit().data_dir, name)


def zone_for(zone_name: str | None, owner: OwnerZone, *, may_ask: bool) -> tuple[str, bool]:
    """The zone of one import, and whether the owner just answered it. Raises: CommandError."""
    zone = owner.known() if zone_name is None else zone_name
    if zone is not None:
        return zone_named(zone), False
    answer = owner.ask(owner.machine()) if may_ask else None
    return zone_named(answer or owner.machine()), answer is not None


def zone_named(name: str) -> str:
    """The name of a zone that there is. Raises: CommandError (`usage`)."""
    zone = zone_meant(name)
    if zone is None:
        raise CommandError(
            "usage", "No time zone has this name.", "Write the time zone like Europe/Rome."
        )
    return zone


def zone_meant(text: str) -> str | None:
    """The zone of that name, or of that city where only one is called so; `None` if none is."""
    try:
        return ZoneInfo(text).key
    except (ValueError, KeyError, OSError):
        wanted = text.strip().replace(" ", "_").lower()
        zones = sorted(available_timezones())
        same = [name for name in zones if name.lower() == wanted]
        cities = [name for name in zones if name.lower().rpartition("/")[2] == wanted]
        matches = same or cities
        return matches[0] if len(matches) == 1 else None
