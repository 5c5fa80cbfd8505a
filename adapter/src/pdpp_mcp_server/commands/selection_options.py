"""What a command line asks for: options that become a selection request.

Rule: options are only words; parsing and resolution judge them as they judge any client's request.
Source: docs/contract/authorization-server.md 4.1, 14.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pdpp_mcp_server.commands.failures_shown import CommandError

DATA_ACCESS = "https://pdpp.dev/data-access"
AGENT_CONTEXT = "https://pdpp.dev/purpose/agent_context"
MAX_REQUEST_BYTES = 64 * 1024

Details = list[dict[str, object]]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionOptions:
    """What to ask for.

    Parameters
    ----------
    source
        The source: its URI, or its short name such as `mail`.
    stream
        A kind of records (stream), perhaps with fields: `messages` or `messages:id,subject`.
        Repeatable. Default: all streams of the source.
    view
        A view (a set of fields that the source defines) instead of single fields.
    preset
        A preset (a selection that the source defines) instead of streams.
    connection
        Only this account, by connection id. Repeatable.
    since
        Only records from this time on: `2026-08-01`, or a time with offset.
    until
        Only records before this time.
    only
        Only records whose field has this value: `from_email=ada@example.org`. Repeatable; values of
        one field are alternatives. Needs --stream.
    purpose
        The purpose, as a URI. Default: context for an AI agent.
    why
        The purpose, in your words.
    single_use
        One-time access instead of ongoing access.
    retention
        How long the app may keep the data: `P30D` (the app then deletes the data) or
        `P30D:anonymize`.
    events
        Also ask for notifications that something changed (without content).
    request
        A file with the whole request (a JSON array of selections) instead of the options above.
    """

    source: str | None = None
    stream: list[str] | None = None
    view: str | None = None
    preset: str | None = None
    connection: list[str] | None = None
    since: str | None = None
    until: str | None = None
    only: list[str] | None = None
    purpose: str | None = None
    why: str | None = None
    single_use: bool = False
    retention: str | None = None
    events: Annotated[bool, Parameter(negative="")] = False
    request: Annotated[Path | None, Parameter(name=["--request", "--from"])] = None

    def details(self, source_uri: Callable[[str], str]) -> Details | None:
        """The request; `None` if nothing in particular is asked for.

        Shapes: `source_uri` turns the short name of a source into its URI.
        Raises: CommandError (`usage`).
        """
        named = {name: value for name, value in self._shaping().items() if value}
        if self.request is not None:
            if named:
                raise _usage(
                    f"--from already contains the whole request, so do not add {_flags(named)}."
                )
            return _read_request(self.request)
        if self.source is None:
            if named:
                raise _usage(f"{_flags(named)} needs --source.")
            return None
        return [self._entry(source_uri(self.source))]

    def _shaping(self) -> dict[str, object]:
        return {
            "source": self.source,
            "stream": self.stream,
            "view": self.view,
            "preset": self.preset,
            "connection": self.connection,
            "since": self.since,
            "until": self.until,
            "only": self.only,
            "purpose": self.purpose,
            "why": self.why,
            "retention": self.retention,
            "events": self.events,
        }

    def _entry(self, source_id: str) -> dict[str, object]:
        entry: dict[str, object] = {
            "type": DATA_ACCESS,
            "source": {"id": source_id},
            "purpose_code": self.purpose or AGENT_CONTEXT,
            "access_mode": "single_use" if self.single_use else "continuous",
        }
        if self.why:
            entry["purpose_description"] = self.why
        if self.retention:
            duration, _, then = self.retention.partition(":")
            entry["retention"] = {"max_duration": duration, "on_expiry": then or "delete"}
        if self.events:
            entry["events"] = True
        if self.preset:
            if self.stream or self.view or self.connection or self.since or self.until or self.only:
                raise _usage(
                    "--preset cannot be combined with --stream or with options that "
                    "narrow a stream."
                )
            return {**entry, "selection_preset": self.preset}
        if self.only and not self.stream:
            raise _usage("--only works only with --stream: name the stream that has the field.")
        return {**entry, "streams": [self._stream(text) for text in self.stream or ["*"]]}

    def _stream(self, text: str) -> dict[str, object]:
        name, _, fields = text.partition(":")
        stream: dict[str, object] = {"name": name}
        if fields:
            stream["fields"] = [field.strip() for field in fields.split(",") if field.strip()]
        elif self.view:
            stream["view"] = self.view
        if self.connection:
            stream["instance_ids"] = list(self.connection)
        bounds = {"since": self.since, "until": self.until}
        if self.since or self.until:
            stream["time_range"] = {name: value for name, value in bounds.items() if value}
        if self.only:
            stream["only"] = self._limits()
        return stream

    def _limits(self) -> dict[str, list[str]]:
        limits: dict[str, list[str]] = {}
        for text in self.only or ():
            field, equals, value = text.partition("=")
            if not field or not equals or not value:
                raise _usage("--only needs a field and a value: --only from_email=ada@example.org.")
            limits.setdefault(field, []).append(value)
        return limits


def _read_request(path: Path) -> Details:
    try:
        raw = path.read_bytes()
    except OSError:
        raise _usage(f"The file {path} cannot be read.") from None
    try:
        value: object = json.loads(raw) if len(raw) <= MAX_REQUEST_BYTES else None
    except ValueError:
        value = None
    if not isinstance(value, list) or not value:
        raise _usage(
            f"The file {path} is not a JSON array of selections (what may be read), "
            "or is larger than 64 KiB."
        )
    return value  # pyright: ignore[reportUnknownVariableType] -- judged by the request parser


def _flags(names: dict[str, object]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def _usage(message: str) -> CommandError:
    return CommandError("usage", message, "See `pdpp grant create --help`.")
