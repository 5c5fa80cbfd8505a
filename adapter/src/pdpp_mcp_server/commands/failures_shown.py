"""What is printed of an error, and the exit code that it has: one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TextIO, cast

import cyclopts
import msgspec

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.failures import places_of
from pdpp_kernel.refused_writes import REASON_OF_ERRNO, refusal_of
from pdpp_mcp_server.commands.spelled_commands import spelled
from pdpp_mcp_server.rs_client.credentials import CredentialError
from pdpp_mcp_server.settings import InvalidSetting

EXIT_OF_CODE: Mapping[str, int] = {
    "internal_error": 1,
    "token_rejected": 3,
    "approval_denied": 4,
    "grant_revoked": 4,
    "grant_expired": 4,
    "grant_invalid": 4,
    "grant_paused": 4,
    "permission_error": 4,
    "not_found": 5,
    "connection_not_found": 5,
    "unknown_account": 5,
    "ambiguous_connection": 6,
    "ambiguous_account": 6,
    "approval_expired": 7,
    "usage": 64,
    "export_not_found": 5,
    "export_unreadable": 65,
    "export_truncated": 65,
    "export_unsafe": 65,
    "export_too_costly": 65,
    "export_reader_failed": 65,
    "export_not_recognized": 65,
    "invalid_provider_url": 64,
    "metadata_failure": 69,
    "connect_not_supported": 69,
    "unavailable": 69,
    "owner_token_refused": 77,
    "not_connected": 78,
    "credential_invalid": 78,
    "credential_insecure": 78,
    "credential_mismatch": 78,
    "credential_expired": 78,
    "config": 78,
}
EVERY_VARIABLE = "docs/settings.md lists every variable."
EXIT_OF_STATUS: Mapping[int, int] = {401: 3, 403: 4, 404: 5, 409: 6, 410: 4, 429: 69}


class CommandError(Exception):
    """A command that cannot go on; `code` is a word of the exit-code table, or a server's own.

    Shapes: `status` is that of the answer, where a server's code is passed on.
    """

    def __init__(
        self, code: str, message: str, next_step: str = "", status: int | None = None
    ) -> None:
        super().__init__(message)
        self.failure = Failure(code, message, next_step, status)


def unknown_source(keys: Iterable[str]) -> CommandError:
    """There is no source of the name given."""
    return CommandError(
        "usage",
        "No source has this name.",
        f"Choose one of {', '.join(keys)}; `pdpp sources` describes them.",
    )


class Failure(msgspec.Struct, frozen=True):
    """What is printed of an error; `connector_key` is the source that it is about, if it is.

    Shapes: `errors` are all that is wrong with a document, each with its place.
    """

    code: str
    message: str
    next_step: str = ""
    status: int | None = None
    connector_key: str = ""
    errors: tuple[Mapping[str, str], ...] = ()

    @property
    def exit_code(self) -> int:
        """By the code; a wire error that the table does not name, by its status."""
        if self.code in EXIT_OF_CODE or self.status is None:
            return EXIT_OF_CODE.get(self.code, 1)
        return EXIT_OF_STATUS.get(self.status, 69 if self.status >= 500 else 64)


def failure_of(error: Exception) -> Failure:
    """What an error means to the person at the terminal."""
    match error:
        case CommandError():
            return error.failure
        case CredentialError():
            return Failure(error.code, error.message, error.next_step)
        case PersonalServerError():
            about = str(error.members.get("connector_key") or "")
            step, errors = _next_step(error), _errors(error)
            return Failure(error.code, error.text, step, error.status, about, errors)
        case cyclopts.CycloptsError():
            return _misused(error)
        case InvalidSetting():
            return Failure("config", str(error), EVERY_VARIABLE)
        case OSError() if error.errno in REASON_OF_ERRNO:
            return failure_of(refusal_of(error))
        case _:
            return Failure(
                "internal_error",
                f"Something unexpected happened ({type(error).__name__} at {places_of(error)}).",
                "Please report this line; the line contains none of your data.",
            )


def _misused(error: cyclopts.CycloptsError) -> Failure:
    """A command line that does not fit its command, whose help is named."""
    from pdpp_mcp_server.commands.quiet_texts import quiet_line  # noqa: PLC0415 (help)

    command = " ".join(("pdpp", *(error.command_chain or ())))
    sentence = quiet_line(str(error))
    lacking = error.argument if isinstance(error, cyclopts.MissingArgumentError) else None
    if lacking is not None and lacking.index is not None:  # it has a place, and needs no name
        sentence = f"{lacking.name.removeprefix('--').upper()} is missing."
    return Failure("usage", sentence, f"See `{command} --help`.")


def _errors(error: PersonalServerError) -> tuple[Mapping[str, str], ...]:
    """All that an error lists as `{path, message}`."""
    listed = error.members.get("errors")
    return tuple(cast("list[Mapping[str, str]]", listed)) if isinstance(listed, list) else ()


def _next_step(error: PersonalServerError) -> str:
    """The error's own next step, or what there is to choose from."""
    step = error.members.get("next_step")
    if isinstance(step, str):
        return step
    connections = error.members.get("available_connections")
    if not isinstance(connections, list):
        return ""
    from pdpp_mcp_server.commands.quiet_texts import quiet_line  # noqa: PLC0415 (help)

    named = cast("list[dict[str, object]]", connections)
    shown = [f"{one.get('connection_id')} ({one.get('display_name') or '–'})" for one in named]
    return quiet_line(f"Choose one of {', '.join(shown)}.")


def print_failure(failure: Failure, *, as_json: bool, out: TextIO, err: TextIO) -> None:
    """`pdpp: CODE: sentence` and the next step on `err`; with `--json` an object on `out`."""
    from pdpp_mcp_server.commands.quiet_texts import quiet_json, quiet_lines  # noqa: PLC0415 (help)

    if as_json:
        members: dict[str, object] = {"code": failure.code, "message": failure.message}
        if failure.next_step:
            members["next_step"] = failure.next_step
        if failure.connector_key:
            members["connector_key"] = failure.connector_key
        if failure.errors:
            members["errors"] = failure.errors
        print(quiet_json({"error": members}), file=out)
        return
    print(quiet_lines(f"pdpp: {failure.code}: {failure.message}"), file=err)
    for each in failure.errors:
        print(quiet_lines(f"  {each['path'] or '/'}: {each['message']}"), file=err)
    if failure.next_step:
        print(quiet_lines(f"  {spelled(failure.next_step)}"), file=err)
