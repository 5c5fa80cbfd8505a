"""Records of every source, filled with what nobody expects, on every page that shows them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from pdpp_kernel.values import MAX_INTEGER
from pdpp_sources.recipes.recipe_shelf import shipped_recipes
from pdpp_sources.registry import SOURCES
from personal_server.domain.declaration_document import parse_declaration
from server.tests.console.browsing import Browser
from server.tests.console.household import Household
from server.tests.console.test_presentations import put

OUT = "\u202e\"'><x-evil onload=alert(1)>{{7*7}}%(a)s"
TEXTS = (OUT, "", " ", "a" * 5_000, "EUR", "javascript:alert(1)", "%", "../../x", "#", "?a=b&c")
WHOLE = (0, -1, MAX_INTEGER, -MAX_INTEGER, 10**15)
NUMBERS = (1.7e308, -1.7e308, 5e-324, 0.0, 89.99999, -180.0, 1e22)
INSTANTS = ("1678-01-01T00:00:00Z", "2261-12-31T23:59:59Z", "2026-11-18T23:59:59.999999999Z")
DAYS = ("1678-01-01", "2261-12-31", "2026-11-18", "2024-02-29")
ROWS, MOST_PAGES, MOST_LINKS = 12, 110, 12
BEGINNINGS = ("/owner/", "/owner/days", "/owner/days/2026-11-18", "/owner/people", "/owner/sources")
DECLARATIONS = {
    source.connector_key: source.declaration
    for source in (*SOURCES, *shipped_recipes())
    if source.declaration["streams"]
}


def drawn(rng: random.Random, schema: Mapping[str, Any]) -> object:
    """A value that fits the schema; None where nothing is drawn for it."""
    kinds = schema.get("type", "string")
    kind = next((k for k in ([kinds] if isinstance(kinds, str) else kinds) if k != "null"), None)
    bounds = (schema.get("minimum", -1e999), schema.get("maximum", 1e999))
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if kind == "string" and not {"pattern", "const"} & schema.keys():
        of_format = {None: TEXTS, "date-time": INSTANTS, "date": DAYS}.get(schema.get("format"))
        return of_format and rng.choice(of_format)[: schema.get("maxLength")]
    if kind in ("integer", "number"):
        return max(bounds[0], min(bounds[1], rng.choice(WHOLE if kind == "integer" else NUMBERS)))
    if kind == "array":
        return [v for v in (drawn(rng, schema.get("items", {})) for _ in range(3)) if v is not None]
    return rng.random() < 0.5 if kind == "boolean" else None


def row(rng: random.Random, properties: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A record, in which now and then a field is missing."""
    shown = {n: s for n, s in properties.items() if s.get("x_pdpp_type") != "blob"}
    values = {n: drawn(rng, s) for n, s in shown.items() if rng.random() > 0.15}
    made = {name: value for name, value in values.items() if value is not None}
    return made | {"id": f"k{number}" if number else OUT}


@pytest.mark.long
@pytest.mark.parametrize("key", DECLARATIONS)
def test_no_record_breaks_a_page_or_puts_an_element_into_it(
    house: Household, browser: Browser, key: str
) -> None:
    rng, account = random.Random(key), "cin_hostile"
    raw = DECLARATIONS[key]
    declared = parse_declaration(raw)
    house.declare(raw)
    house.connect(account, declared.connector_key, declared.source_id, OUT)
    waiting = [*BEGINNINGS, "/owner/search?q=evil"]
    for each in raw["streams"]:
        properties = each["schema"]["properties"]
        rows = [row(rng, properties, number) for number in range(ROWS)]
        put(house, declared.streams[each["name"]], account, rows)
        waiting.append(f"/owner/records/{account}/{each['name']}")
    seen: set[str] = set()
    while waiting and len(seen) < MOST_PAGES:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        page = browser.get(path)
        assert page.status < 500, path
        if not page.headers.get("content-type", "").startswith("text/html"):
            continue
        shown = LexborHTMLParser(page.html)
        assert shown.css("x-evil, [onload]") == [], path
        for link in shown.css("[href], [src], [action]"):
            targets = (link.attributes.get(name) or "" for name in ("href", "src", "action"))
            assert not any(target.lower().startswith("javascript:") for target in targets), path
        links = [str(link.attributes["href"]) for link in shown.css("a[href]")]
        further = [link for link in links if link.startswith("/owner/") and link not in seen]
        waiting += rng.sample(further, min(MOST_LINKS, len(further)))
