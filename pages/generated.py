"""Generated pages: errors, commands, tools.  A test compares them with what is committed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path

from personal_server import errors
from personal_server.cli.main import command_line

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


def errors_page() -> str:
    """Every code, from its class."""
    family = [
        error
        for _, error in inspect.getmembers(errors, inspect.isclass)
        if issubclass(error, errors.PersonalServerError) and error is not errors.PersonalServerError
    ]
    rows = sorted((e.status, e.code, (inspect.getdoc(e) or "").splitlines()[0]) for e in family)
    return ERRORS_HEAD + "".join(f"| {s} | `{code}` | {about} |\n" for s, code, about in rows)


def commands_page() -> str:
    """Every command and option, from the command line itself."""
    page = command_line().generate_docs(heading_level=2, usage_name="pdpp")
    return f"# Commands\n\n{page}\n"


PAGES: Mapping[str, Callable[[], str]] = {"errors.md": errors_page, "commands.md": commands_page}
