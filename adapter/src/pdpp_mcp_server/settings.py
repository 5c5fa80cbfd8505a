"""What a client reads of its environment, and how a person calls our programs.

Rule: a value that cannot be used is refused here, in one sentence that names the variable.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")


def one_file_program() -> str | None:
    """Where the program that is one file lies, if this runs out of it."""
    return os.environ.get("PDPP_PROGRAM")  # noqa: TID251 (set by that file)


def own_program(name: str) -> str:
    """Where one of our programs stands, whole, so that it is found from every folder."""
    path = Path(sysconfig.get_path("scripts"), name)
    return str(path) if path.exists() else one_file_program() or name


def has_desktop() -> bool:
    """Whether a browser has a screen to open on; one of the terminal would take it over."""
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, _SCREENS))  # noqa: TID251 (the one reader)


def own_command(*, from_here: bool = True) -> str:
    """How a person calls `pdpp`, by its name if that is this program; from this folder or any."""
    program = Path(own_program("pdpp"))
    found = shutil.which("pdpp")
    if found is not None and Path(found).resolve() == program.resolve():
        return "pdpp"
    near = from_here and program.is_relative_to(Path.cwd())
    return shlex.quote(str(program.relative_to(Path.cwd()) if near else program))


class InvalidSetting(Exception):
    """A variable with a value that cannot be used; the process ends with 78."""


class Environment:
    """Typed look-ups in one environment; an empty value counts as unset."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def text(self, name: str) -> str:
        """The value, or an empty string."""
        return self._environ.get(name, "").strip()

    def path(self, name: str) -> Path | None:
        """A path, with `~` understood."""
        text = self.text(name)
        return Path(text).expanduser() if text else None

    def parsed(self, name: str, parse: Callable[[str], T], default: T) -> T:
        """The value as `parse` reads it.  Raises: InvalidSetting."""
        text = self.text(name)
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise InvalidSetting(f"{name} is not usable: {error}") from None

    def each(
        self, name: str, parse: Callable[[str], T], default: tuple[T, ...] = ()
    ) -> tuple[T, ...]:
        """Values with commas between them.  Raises: InvalidSetting."""

        def all_of(text: str) -> tuple[T, ...]:
            return tuple(parse(part.strip()) for part in text.split(",") if part.strip())

        return self.parsed(name, all_of, default)

    def integer(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number within bounds.  Raises: InvalidSetting."""

        def within(text: str) -> int:
            if not text.isdecimal() or not least <= int(text) <= most:
                raise ValueError(f"a whole number from {least} to {most} is needed.")
            return int(text)

        return self.parsed(name, within, default)

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of the words allowed, the first where none is set.  Raises: InvalidSetting."""

        def one(text: str) -> str:
            if text not in allowed:
                raise ValueError(f"one of {', '.join(allowed)} is needed.")
            return text

        return self.parsed(name, one, allowed[0])

    def switch(self, name: str) -> bool:
        """`on` or `off`, on where nothing is set.  Raises: InvalidSetting."""
        return self.choice(name, ("on", "off")) == "on"


class StdioSettings(msgspec.Struct, frozen=True):
    """What the stdio adapter reads from the environment; flags win over it.

    `owner_variables` names the owner credentials present there (never their values).
    """

    provider_url: str | None = None
    cache_root: Path = Path(".pdpp")
    server_name: str = "pdpp-mcp-server"
    resource_links: str = "auto"
    max_blob_bytes: int = 5 * 1024**2
    log_level: str = "warning"
    owner_variables: tuple[str, ...] = ()


def adapter_from_env(environ: Mapping[str, str] = os.environ) -> StdioSettings:  # noqa: TID251
    """Settings of the stdio adapter.  Raises: InvalidSetting."""
    read = Environment(environ)
    owner = ("PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE")
    return StdioSettings(
        provider_url=read.text("PDPP_PROVIDER_URL") or None,
        cache_root=read.path("PDPP_CACHE_ROOT") or Path(".pdpp"),
        server_name=read.text("PDPP_MCP_SERVER_NAME") or "pdpp-mcp-server",
        resource_links=read.choice("PDPP_MCP_RESOURCE_LINKS", ("auto", "always", "never")),
        max_blob_bytes=read.integer("PDPP_MCP_MAX_BLOB_BYTES", 5 * 1024**2, 1, 2**30),
        log_level=read.choice("PDPP_LOG_LEVEL", ("warning", "debug", "info", "error")),
        owner_variables=tuple(name for name in owner if read.text(name)),
    )
