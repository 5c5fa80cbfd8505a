"""Generated pages: errors, commands, tools.  A test compares them with what is committed."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import cyclopts

from pages.conformance import conformance_page
from pages.sources import recipe_schema, sources_page
from pages.typescript import types_page
from pdpp_kernel import errors, oauth_errors
from pdpp_mcp_server.commands.main import command_line

DOCS = Path(__file__).resolve().parent.parent / "docs"

ERRORS_HEAD = """# Errors

Every answer of 400 or above has one shape:

```json
{"error": {"type": "permission_error", "code": "field_not_granted", "message": "…", "param": "fields", "request_id": "req_…"}}
```

`type` follows from the status, `code` is stable, `message` is for people. `param` names the argument at fault; `allowed_values`,
`suggestions`, `retry_with` and `recovery` say what would work. Messages never contain stored values or tokens.

| status | code | meaning |
|---|---|---|
"""  # noqa: E501 (a line of Markdown)


OAUTH_HEAD = """
## OAuth endpoints

`/oauth/*` answers in the OAuth family; `reason` (a stable word) and `param` stand beside where there is more to say. Errors that are
shown before a redirect is safe are pages; later ones go back to the app, reason and place first in `error_description`.

```json
{"error": "invalid_grant", "error_description": "…", "request_id": "req_…"}
```

`reason` of `invalid_authorization_details`: `malformed`, `unsupported_type`, `not_a_uri`, `exclusive_members`, `wildcard_not_alone`,
`duplicate_stream`, `invalid_time_range`, `invalid_retention`, `mixed_access_mode`, `duplicate_source`, `ai_training_not_alone`,
`source_kind_mismatch`, `unknown_preset`, `unknown_stream`, `unknown_view`, `unknown_field`, `unsupported_selection`,
`invalid_resource`. What would tell an app which sources you keep is answered `access_denied`. A defect of ours is `server_error`.

| status | error | meaning |
|---|---|---|
"""  # noqa: E501 (lines of Markdown)

PAGES_HEAD = """
## Consent pages

| status | code | meaning |
|---|---|---|
"""

Errors = Sequence[type[errors.PersonalServerError]]


def errors_page() -> str:
    """Every code, from its class."""
    redirected = _family(oauth_errors.OAuthRefusal)
    shown = _family(oauth_errors.DecisionRefusal)
    elsewhere = {*redirected, *shown, oauth_errors.OAuthRefusal, oauth_errors.DecisionRefusal}
    server = [e for e in _family(errors.PersonalServerError) if e not in elsewhere]
    return ERRORS_HEAD + _rows(server) + OAUTH_HEAD + _rows(redirected) + PAGES_HEAD + _rows(shown)


def _family(root: type[errors.PersonalServerError]) -> Errors:
    modules = (errors, oauth_errors)
    classes = {found for each in modules for _, found in inspect.getmembers(each, inspect.isclass)}
    return [found for found in classes if issubclass(found, root) and found is not root]


def _rows(family: Errors) -> str:
    rows = sorted((e.status, e.code, (inspect.getdoc(e) or "").splitlines()[0]) for e in family)
    return "".join(f"| {s} | `{code}` | {about} |\n" for s, code, about in rows)


def commands_page() -> str:
    """Every command and option, from the command line itself."""
    line = command_line()
    for command in every_command(line):
        # what a command inherits of its parameters where it runs, it does not where it is described
        command.default_parameter = line.default_parameter
    started_as = sys.argv[0]
    sys.argv[0] = "pdpp"  # else the usage of commands below others names what runs this
    try:
        page = line.generate_docs(heading_level=2, usage_name="pdpp")
    finally:
        sys.argv[0] = started_as
    return f"# Commands\n\n{page}\n"


def every_command(app: cyclopts.App) -> Iterator[cyclopts.App]:
    """A command, and those below it."""
    yield app
    for name in app:
        if not name.startswith("-"):
            yield from every_command(app[name])


PAGES: Mapping[str, Callable[[], str]] = {
    "errors.md": errors_page,
    "commands.md": commands_page,
    "source-list.md": sources_page,
    "recipe.schema.json": recipe_schema,
    "mcp-conformance.md": conformance_page,
    "types.md": types_page,
}
