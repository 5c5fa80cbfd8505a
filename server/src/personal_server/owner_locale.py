"""Where the owner lives and which language they read, as `config.toml` or the environment says."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import msgspec

from pdpp_kernel.errors import StorageUnavailable
from personal_server.configuration_file import (
    ConfigurationFile,
    configuration_path,
    keep_values,
    read_configuration,
)
from personal_server.settings import Settings


class OwnerLocale(msgspec.Struct, frozen=True):
    """Where the owner lives and which language they read; `None` where they were not asked yet.

    Shapes: `time_zone` is an IANA name, `language` a tag; `fixed` are those that the environment
        sets, which no page changes.
    """

    time_zone: str | None = None
    language: str | None = None
    fixed: frozenset[str] = frozenset()

    @property
    def zone(self) -> str:
        """The name of a zone that there is; UTC where none is named."""
        try:
            return ZoneInfo(self.time_zone or "UTC").key
        except (ValueError, KeyError, OSError):
            return "UTC"


class LocaleFile:
    """The owner's locale: the environment's, else what `config.toml` keeps, as it is now."""

    def __init__(self, settings: Settings, configuration: ConfigurationFile) -> None:
        self._settings, self._path = settings, configuration_path(settings.data_dir)
        self._read: tuple[int, ConfigurationFile] = (0, configuration)

    def __call__(self) -> OwnerLocale:
        """What stands there now; another process of this server may have written it."""
        set_ones = {"time_zone": self._settings.time_zone, "language": self._settings.language}
        fixed = frozenset(name for name, value in set_ones.items() if value is not None)
        kept = self._kept()
        return OwnerLocale(
            self._settings.time_zone or kept.time_zone,
            self._settings.language or kept.language,
            fixed,
        )

    def zone(self) -> str:
        """The name of the owner's zone, UTC where none is named."""
        return self().zone

    def keep(self, time_zone: str, language: str | None) -> None:
        """Know them from now on; `None` is the language of each browser.

        Raises: StorageUnavailable.
        """
        data_dir = self._settings.data_dir
        keep_values(data_dir, {"time_zone": time_zone, "language": language})

    def _kept(self) -> ConfigurationFile:
        try:
            changed_ns = self._path.stat().st_mtime_ns
            if changed_ns != self._read[0]:
                found = read_configuration(self._settings.data_dir)
                self._read = (changed_ns, found or self._read[1])
        except (OSError, StorageUnavailable):
            pass  # a file that is being mended says what it said before
        return self._read[1]
