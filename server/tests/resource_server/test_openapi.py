"""The document and the routes agree: generated calls, with each kind of token."""

from __future__ import annotations

from functools import cache
from typing import Any

import anyio
import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings

from personal_server.domain.grant import StreamGrant
from personal_server.web.routes import Route
from server.tests.resource_server.living import Living, since

ENTRIES: list[dict[str, Any]] = [
    {"id": f"e{n}", "title": f"Rain {n}", "created_at": f"2026-03-{n:02d}T21:40:00Z"}
    for n in range(1, 9)
]


@cache
def living() -> Living:
    made = Living(checked=False)

    async def fill() -> None:
        await made.declare_journal()
        first, second = await made.connect(name="Paper diary"), await made.connect()
        await made.ingest(first, "entries", ENTRIES)
        await made.ingest(second, "entries", ENTRIES[:3])
        made.grant(
            "client",
            StreamGrant(
                "entries",
                (first, second),
                ("id", "title", "created_at"),
                since("2026-03-02T00:00:00Z"),
            ),
        )
        made.package(
            "package", made.grant("member", StreamGrant("volumes", (first,), ("id",))), "client"
        )

    anyio.run(fill)
    return made


# A schema cannot say which cursors, fields and keys exist, so 400 is an answer to good data too.
UNHURRIED: Any = list(HealthCheck)
CONFIG: Any = schemathesis.Config.from_dict(  # pyright: ignore[reportUnknownMemberType]
    {
        "checks": {
            "positive_data_acceptance": {"expected-statuses": ["2xx", "3xx", "4xx", "5xx"]},
            "negative_data_rejection": {"expected-statuses": ["4xx"]},
        }
    }
)


@schemathesis.serializer("application/x-ndjson", "application/octet-stream")
def raw(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@cache
def described() -> Any:
    return schemathesis.openapi.from_asgi("/v1/openapi.json", app=living().app, config=CONFIG)


ROUTES = [route for route in living().table.routes if route.advertised]


# What is wrong in a call is refused before anybody asks for the members of a package.
CALLS = [
    pytest.param(
        mode, token, marks=pytest.mark.long if mode.is_negative and token == "package" else ()
    )
    for mode in schemathesis.GenerationMode
    for token in ("client", "package", "owner")
]


@pytest.mark.parametrize(("mode", "token"), CALLS)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_generated_calls_get_described_answers(
    route: Route, mode: schemathesis.GenerationMode, token: str
) -> None:
    operation = described()[route.pattern][route.method]
    if mode.is_negative and not (route.parameters or route.body):
        return

    @settings(max_examples=4, database=None, suppress_health_check=UNHURRIED)
    @given(case=operation.as_strategy(generation_mode=mode))
    def calls(case: Any) -> None:
        # an empty value of a name that is wrong is not sent, and then nothing is wrong
        sent: dict[str, Any] = case.query or {}
        assume(all(value not in ([], {}, None) for value in sent.values()))
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"})

    calls()
