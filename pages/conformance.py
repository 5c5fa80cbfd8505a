"""The page about the public MCP suite, from what its tests expect."""

from __future__ import annotations

from tests.conformance.expected import (
    EXPECTED,
    REASONS,
    VERSION,
    figures,
    needs_fixture,
    not_applicable,
    passing,
)

REVISIONS = ("2025-11-25", "2026-07-28")
BUILDS = {
    "real": "the whole server, as `pdpp serve` composes it",
    "fixtures": "the same door, admission and machinery, offering the suite's own fixtures",
}

HEAD = f"""# The public MCP suite

`make conformance` installs `@modelcontextprotocol/conformance` {VERSION} (locked by hash in `tests/conformance`) and runs it as
tests; CI does so too. A test fails when a check that is not listed below does not pass, when a listed one passes, when a message is
invalid by the wire schema of the protocol, or when the figures differ. Last change of the figures: {EXPECTED["measured"]}.

Its client scenarios test MCP clients, of which there is none here. Its server scenarios send no bearer, so each server listens on
loopback behind a door that adds one; they are run against two builds:

"""  # noqa: E501 (lines of Markdown)

FIGURES = """
## Server scenarios

Scenarios are those that the suite requires or runs unscored for a revision. Those that exchange no message that the suite records
have no verdict by the wire schema.

| revision | build | scenarios | passed in full | checks passed | not applicable | valid on the wire | invalid |
|---|---|---|---|---|---|---|---|
"""  # noqa: E501 (lines of Markdown)

AUTHORIZATION = """
## Authorization server scenarios

Discovery and the authorization code grant (PKCE, resource indicator, `iss`): all checks pass. The client registers dynamically, and the owner signs in, chooses and allows in a real Chromium with scripts switched off.

| revision | scenarios | checks passed | not passed |
|---|---|---|---|
"""  # noqa: E501 (lines of Markdown)

WITHOUT = """
## Checks that do not apply

A scenario that has such a check passes all its others.

"""

OWN = """
## Calls to our own tools, resources and prompts

The suite calls fixtures that only its own test server has. To judge the answers of this server too, a proxy replaces those calls by
calls to every tool, every kind of resource, every prompt, an error and a completion. All pass, with valid messages, on both revisions:

"""  # noqa: E501 (lines of Markdown)

PASSES = """
## Scenarios that pass in full

Against the whole server:

"""

FIXTURES = """
With the suite's fixtures added (this server has six tools, four prompts and its own resources and no others, docs/decisions.md C1, so without the
fixtures these end at "unknown tool", "unknown prompt" or "no such resource"):

"""  # noqa: E501 (lines of Markdown)

CHECKS = """
Checks of other scenarios that need a fixture:

"""


def conformance_page() -> str:
    """The page, whole."""
    builds = "".join(f"- **{name}**: {about};\n" for name, about in BUILDS.items())
    return (
        HEAD
        + builds.removesuffix(";\n")
        + ".\n"
        + FIGURES
        + "".join(_row(revision, build) for revision in REVISIONS for build in BUILDS)
        + OWN
        + ", ".join(f"`{name}` × {times}" for name, times in EXPECTED["own_answers"].items())
        + ".\n"
        + AUTHORIZATION
        + "".join(map(_authorization_row, EXPECTED["figures"]["authorization"]))
        + PASSES
        + "".join(f"- {revision}: {_named(passing('real', revision))}\n" for revision in REVISIONS)
        + FIXTURES
        + "".join(f"- {revision}: {_named(_besides(revision))}\n" for revision in REVISIONS)
        + CHECKS
        + "".join(map(_other_checks, REVISIONS))
        + WITHOUT
        + "".join(map(_reason, REASONS))
    )


def _besides(revision: str) -> list[str]:
    return [name for name in passing("fixtures", revision) if name not in passing("real", revision)]


def _other_checks(revision: str) -> str:
    others = [c for c in needs_fixture(revision) if c.split(":")[0] not in _besides(revision)]
    return f"- {revision}: {_shown(others)}\n" if others else ""


def _named(scenarios: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in scenarios)


def _row(revision: str, build: str) -> str:
    found = figures(build, revision)
    cells = (
        revision,
        build,
        found["scenarios"],
        len(passing(build, revision)),
        found["checks_passed"],
        found["checks_not_passed"],
        found["scenarios_valid_on_the_wire"],
        0,
    )
    return f"| {' | '.join(map(str, cells))} |\n"


def _authorization_row(revision: str) -> str:
    found = figures("authorization", revision)
    cells = (revision, found["scenarios"], found["checks_passed"], found["checks_not_passed"])
    return f"| {' | '.join(map(str, cells))} |\n"


def _reason(reason: str) -> str:
    lines = [f"- {REASONS[reason]}\n"]
    for revision in REVISIONS:
        checks = not_applicable(revision).get(reason)
        if checks:
            lines.append(f"  - {revision}: {_shown(checks)}\n")
    return "".join(lines)


def _shown(checks: list[str]) -> str:
    """Scenarios, each with its checks where they have names of their own."""
    by_scenario: dict[str, list[str]] = {}
    for check in checks:
        scenario, _, name = check.partition(":")
        by_scenario.setdefault(scenario, []).append(name)
    return "; ".join(_scenario(name, found) for name, found in by_scenario.items())


def _scenario(name: str, checks: list[str]) -> str:
    if checks == [name]:
        return f"`{name}`"
    return f"`{name}` ({', '.join(f'`{check}`' for check in checks)})"
