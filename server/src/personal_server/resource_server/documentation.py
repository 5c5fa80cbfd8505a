"""The two public pages for people: the front page and the documentation.

Rule: the reference is drawn from the OpenAPI document, so it cannot disagree with the routes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from personal_server.domain.hosts import host_connections, mcp_url

METHODS = ("get", "post", "put", "patch", "delete")


class DocumentationPages:
    """Renders the pages of one server; `stylesheet` is the path of what all pages look like."""

    def __init__(self, server_name: str, stylesheet: str) -> None:
        self._name = server_name
        self._stylesheet = stylesheet
        self._templates = Environment(
            loader=PackageLoader("personal_server.resource_server"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
        )
        self._templates.filters["with_code"] = with_code

    def front(self, origin: str) -> str:
        """The page of `/`."""
        return self._templates.get_template("front.html").render(
            name=self._name, stylesheet=self._stylesheet, url=mcp_url(origin)
        )

    def docs(self, origin: str, document: Mapping[str, Any]) -> str:
        """The page of `/docs`."""
        return self._templates.get_template("docs.html").render(
            name=self._name,
            stylesheet=self._stylesheet,
            origin=origin,
            url=mcp_url(origin),
            hosts=host_connections(origin),
            groups=list(_groups(document)),
        )


def with_code(text: str) -> Markup:
    """What stands between backticks, as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    )


def _groups(document: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    for tag in document["tags"]:
        operations = [
            _operation(path, method, operation)
            for path, methods in document["paths"].items()
            for method in METHODS
            if (operation := methods.get(method)) is not None and tag["name"] in operation["tags"]
        ]
        yield {
            "id": tag["name"].lower().replace(" ", "-"),
            "title": tag["name"],
            "operations": operations,
        }


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> dict[str, object]:
    content = operation.get("requestBody", {}).get("content", {})
    return {
        "method": method.upper(),
        "path": path,
        "summary": operation["summary"],
        "tokens": operation["x-pdpp-tokens"],
        "body": ", ".join(content),
        "parameters": [p for p in operation.get("parameters", []) if p["in"] == "query"],
        "answers": [(code, a["description"]) for code, a in operation["responses"].items()],
    }
