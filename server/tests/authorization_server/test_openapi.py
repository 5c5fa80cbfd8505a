"""The description of the endpoints agrees with the endpoints."""

from __future__ import annotations

from typing import Any, cast

import pytest

from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.openapi import described_answers, described_paths
from personal_server.web.forms import FORM
from server.tests.authorization_server.application.endpoints import ENDPOINTS, Endpoint
from server.tests.authorization_server.conftest import Server

PATHS = cast("dict[str, Any]", described_paths())


@pytest.mark.parametrize("registration", [True, False])
def test_each_endpoint_is_described_and_no_other(server: Server, registration: bool) -> None:
    server.configuration = Configuration(dynamic_registration=registration)
    described = described_paths(dynamic_registration=registration)
    pairs = {(m.upper(), path) for path, methods in described.items() for m in methods}
    assert server.app().endpoints == pairs


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=str)
def test_each_parameter_of_an_endpoint_is_described(endpoint: Endpoint) -> None:
    names = {parameter.name for parameter in endpoint.parameters}
    (operation,) = PATHS[endpoint.path].values()
    if "requestBody" in operation:
        described = set(operation["requestBody"]["content"][FORM]["schema"]["properties"])
    else:
        described = {parameter["name"] for parameter in operation["parameters"]}
    assert names <= described


def test_each_answer_that_is_named_is_described() -> None:
    named = {
        answer["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        for methods in PATHS.values()
        for operation in methods.values()
        for answer in operation["responses"].values()
        if "application/json" in answer.get("content", {})
    }
    assert named - {"Error"} <= set(described_answers())
