"""A post office with notes in it, on both databases."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from personal_server.reading.tokens import TokenHolder
from server.tests.delivery.notes import furnish, grant_of
from server.tests.delivery.post_office import PostOffice, post_office


@pytest.fixture(params=["sqlite", "postgres"])
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[PostOffice, None, None]:
    with post_office(request.param, tmp_path) as found:
        furnish(found)
        found.many = 100 if request.param == "sqlite" else 10
        yield found


@pytest.fixture
def app(office: PostOffice) -> TokenHolder:
    return office.grant(grant_of("grt_app"))
