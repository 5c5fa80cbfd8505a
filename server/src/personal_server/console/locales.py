"""Time and language: in which zone and language the owner reads their pages, asked once.

Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from zoneinfo import available_timezones

import msgspec
from starlette.responses import Response

from pdpp_kernel.errors import InvalidRequest, InvalidState
from personal_server.console.pages import Templates
from personal_server.console.session import OWNER_HOME, PageRequest, PageRoute
from personal_server.console.static_files import ZONE
from personal_server.owner_locale import OwnerLocale

REGIONS = (
    "Africa",
    "America",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Europe",
    "Indian",
    "Pacific",
)


class OwnerLocales(Protocol):
    """Where the owner's locale is known from, and kept."""

    def __call__(self) -> OwnerLocale:
        """What it is now."""
        ...

    def keep(self, time_zone: str, language: str | None) -> None:
        """Know it from now on; without a language each browser gets its own."""
        ...


class UnsetLocale:
    """Nothing is known, and nothing is kept: a server without a data directory."""

    def __call__(self) -> OwnerLocale:
        """UTC, in the language of each browser."""
        return OwnerLocale()

    def keep(self, time_zone: str, language: str | None) -> None:
        """Raise: InvalidState."""
        del time_zone, language
        raise InvalidState("This server cannot save settings.")


class LocalePages(msgspec.Struct, frozen=True):
    """`/owner/locale`."""

    locale: OwnerLocales
    pages: Templates

    def routes(self) -> tuple[PageRoute, ...]:
        """The route of this page: path, methods, and who may open it."""
        return (
            PageRoute("GET", "/owner/locale", self.show),
            PageRoute("POST", "/owner/locale", self.keep),
        )

    def show(self, visit: PageRequest) -> Response:
        """What can be chosen, and what is."""
        known = self.locale()
        values = {
            "zone": known.zone,
            "regions": zones_by_region(),
            "languages": list(self.pages.offered().values()),
            "csrf": visit.owner().csrf,
        }
        script = ZONE if known.time_zone is None else None
        return self.pages.show(visit, "locale.html", values, script=script)

    def keep(self, visit: PageRequest) -> Response:
        """Keep what was chosen, and go home.  Raises: InvalidRequest, StorageUnavailable."""
        known = self.locale()
        zone, language = visit.value("time_zone"), visit.value("language") or None
        if "time_zone" in known.fixed:
            zone = known.zone
        if "language" in known.fixed:
            language = known.language
        elif language is not None and language not in self.pages.offered():
            raise InvalidRequest("Choose one of these languages.", param="language")
        if zone is None or (zone not in _names() and zone != known.zone):
            raise InvalidRequest("Choose one of these time zones.", param="time_zone")
        self.locale.keep(zone, language)
        return self.pages.go(visit, OWNER_HOME)


def zones_by_region() -> Mapping[str, list[tuple[str, str]]]:
    """Every zone that a person would name, by region: its name, and how it reads."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name in _names():
        region, _, city = name.partition("/")
        if region in REGIONS:
            found.setdefault(region, []).append((name, city.replace("_", " ")))
    return found


def _names() -> list[str]:
    return ["UTC", *sorted(each for each in available_timezones() if each != "UTC")]
