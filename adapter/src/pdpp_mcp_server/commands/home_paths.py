"""A `~` that no shell replaced, quoted or behind `=`, in the paths that a command is given.

Rule: every path of every command goes through here, so no command does it by itself.
Source: docs/contract/authorization-server.md 14.1.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from inspect import BoundArguments
from pathlib import Path
from typing import cast


def from_home(bound: BoundArguments) -> BoundArguments:
    """The arguments, each path in them from the home directory on; what is no path stays."""
    for name, value in bound.arguments.items():
        bound.arguments[name] = _from_home(value)
    return bound


def _from_home(value: object) -> object:
    if isinstance(value, Path):
        return _expanded(value)
    if isinstance(value, (list, tuple)):
        items = [_from_home(item) for item in cast("list[object]", value)]
        return items if isinstance(value, list) else tuple(items)
    if is_dataclass(value) and not isinstance(value, type):
        given = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        expanded = {name: _from_home(member) for name, member in given.items()}
        changed = {name: new for name, new in expanded.items() if new != given[name]}
        return replace(value, **changed) if changed else value
    return value


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:  # `~somebody`, whom this machine does not know: a file may be called so
        return path
