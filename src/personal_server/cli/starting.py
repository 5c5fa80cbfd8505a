"""Settings as commands get them: what cannot be used ends the command with 78."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from personal_server.cli.exits import CommandError
from personal_server.settings import (
    AdapterSettings,
    InvalidSetting,
    Settings,
    adapter_from_env,
    from_env,
)

T = TypeVar("T")


def settings_or_exit() -> Settings:
    """The server's settings.  Raises: CommandError (`config`)."""
    return _usable(from_env)


def adapter_settings_or_exit() -> AdapterSettings:
    """The adapter's settings.  Raises: CommandError (`config`)."""
    return _usable(adapter_from_env)


def _usable(read: Callable[[], T]) -> T:
    try:
        return read()
    except InvalidSetting as error:
        raise CommandError("config", str(error), "docs/settings.md lists every variable.") from None
