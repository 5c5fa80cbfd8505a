"""What of the file system a process may still read (Linux 5.13 and later).

The kernel gives such a process no other file, no memory of a process outside (`/proc/PID/mem`), and
where it is newer no connection and no signal either.  It cannot be taken back, only narrowed.
Source: the kernel's `Documentation/userspace-api/landlock.rst`.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
import zoneinfo
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every machine
_ASK_VERSION, _PATH_BENEATH = 1, 1
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
# How many kinds of access to files each version of Landlock knows, from the first on; later
# versions know as many as the last.
_KINDS_OF_ACCESS = (13, 14, 15, 15, 16)
_CONNECTIONS_SINCE, _SCOPES_SINCE = 4, 6
_BIND_AND_CONNECT, _SOCKETS_AND_SIGNALS = 0b11, 0b11
# Where programs and their libraries lie, and what libraries read without being asked.
_SYSTEM = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store", "/gnu/store"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/dev/null", "/dev/urandom"),
)


def version() -> int:
    """Which Landlock this system has; 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(_CREATE_RULESET, None, 0, _ASK_VERSION))


def read_only(places: Iterable[Path]) -> bool:
    """From now on read these files and folders, and the program itself; whether that holds.

    Shapes: what is not there is passed over; links are followed once, now.
    """
    known = version()
    if not known:
        return False
    kinds = _KINDS_OF_ACCESS[min(known, len(_KINDS_OF_ACCESS)) - 1]
    handled = [(1 << kinds) - 1]
    if known >= _CONNECTIONS_SINCE:
        handled.append(_BIND_AND_CONNECT)
    if known >= _SCOPES_SINCE:
        handled.append(_SOCKETS_AND_SIGNALS)
    attributes = struct.pack(f"={len(handled)}Q", *handled)
    rules = _call(_CREATE_RULESET, attributes, len(attributes), 0)
    if rules < 0:
        return False
    try:
        for path in (*_program(), *places):
            with suppress(OSError):
                _add(rules, path)
        return _call(_RESTRICT_SELF, rules, 0) == 0
    finally:
        os.close(rules)


def _program() -> Iterator[Path]:
    """Where this program, its language and its libraries lie."""
    yield from map(Path, (*_SYSTEM, *sys.path, *zoneinfo.TZPATH))
    for prefix in {sys.prefix, sys.base_prefix}:
        yield Path(prefix, sys.platlibdir)
        yield Path(prefix, "lib")


def _add(rules: int, path: Path) -> None:
    """Raises: OSError, where it is not there."""
    file = os.open(path, os.O_PATH | os.O_CLOEXEC)  # pyright: ignore[reportAttributeAccessIssue]  # Linux
    try:
        is_folder = stat.S_ISDIR(os.fstat(file).st_mode)
        reading = _READ_FILE | _READ_FOLDER if is_folder else _READ_FILE
        _call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", reading, file), 0)
    finally:
        os.close(file)


def _call(number: int, *arguments: bytes | int | None) -> int:
    """What the kernel answers; less than 0 where it refuses or knows no such call."""
    return ctypes.CDLL(None).syscall(number, *arguments)
