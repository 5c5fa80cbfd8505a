"""Names that run from right to left take nothing apart: each stands in an element of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from personal_server.collecting.connections import rename_connection
from personal_server.console.isolation import IsolatingEnvironment, attribute_values
from personal_server.console.pages import environment
from personal_server.storage.authorization_rows import GrantRow
from server.tests.cli.test_disclosures import entry
from server.tests.console.browsing import Page, allow
from server.tests.console.household import CHECKING, HOME, Household, mail_request

NAME = "דנה כהן"
PLAIN = ("title", "option", "textarea")
APART = ("bdi", *PLAIN)


def unapart(page: Page) -> Iterator[str]:
    """The texts with such a name that run into what stands beside them."""
    tree: Any = LexborHTMLParser(page.html)
    for node in tree.root.traverse(include_text=True):
        text = str(node.text_content or "")
        if node.tag == "-text" and NAME in text and not any(map(_is_apart, around(node))):
            yield text


def _is_apart(node: LexborNode) -> bool:
    return node.tag in APART or node.attributes.get("dir") == "auto"


def around(node: LexborNode) -> Iterator[LexborNode]:
    """The elements that a text stands in."""
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


@pytest.fixture
def renamed(house: Household) -> Household:
    """A house in which a sender, two accounts and an app are called so."""
    row = {"subject": NAME, "from_name": NAME, "body": f"{NAME} zzyzx", "recipients": NAME}
    house.fill(HOME, "messages", [{"id": "m900", "sent_at": "2026-11-18T09:30:00Z", **row}])
    paid = {"posted_on": "2026-11-18", "payee": NAME, "account_id": "a", "direction": "out"}
    money = {"amount": -1.5, "amount_minor": -150, "currency": "EUR"}
    house.fill(CHECKING, "transactions", [{"id": "t900", **paid, **money}])
    for connection_id in (HOME, CHECKING):
        rename_connection(house.records, connection_id, NAME, house.clock.now_ns)
    house.client(name=NAME)
    return house


def test_no_page_shows_a_name_outside_an_element_of_its_own(renamed: Household) -> None:
    browser = renamed.signed_in()
    asked = renamed.ask(mail_request())
    assert NAME in browser.get(asked).text
    assert list(unapart(browser.get(asked))) == []
    allow(browser, asked)
    renamed.collect()
    (grant,) = renamed.rows(GrantRow)
    line = entry(1, client_id="cli_notes", grant_id=grant.grant_id, connection_id=HOME)
    renamed.disclosures.append_disclosures([line])
    access, records = f"/owner/access/{grant.grant_id}", f"/owner/records/{HOME}/messages"
    wanted = [
        "/owner/",
        "/owner/access",
        access,
        f"{access}/records",
        f"{access}/records/{HOME}/messages/m900",
        "/owner/clients",
        f"/owner/sources/{HOME}",
        "/owner/records",
        "/owner/days",
        "/owner/people",
        records,
        f"{records}?as=table",
        f"{records}?as=text",
        f"{records}?filter[from_name]={NAME}",
        f"{records}/m900",
        f"{records}/m900/text/body",
        f"/owner/records/{CHECKING}/transactions",
        f"/owner/records/{CHECKING}/transactions/t900",
        "/owner/search?q=zzyzx",
        "/owner/disclosures",
        "/owner/canaries",
    ]
    for path in wanted:
        page = browser.get(path)
        assert page.status == 200, path
        assert list(unapart(page)) == [], path


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("<p>{{ x }}, 14 Mar</p>", "<p><isolated>, 14 Mar</p>"),
        ('<a href="{{ x }}">{{ x }}</a>', '<a href="<plain>"><isolated></a>'),
        ("<option>{{ x }}</option>{{ x }}", "<option><named></option><isolated>"),
        ("<textarea>{{ x }}</textarea>", "<textarea><plain></textarea>"),
        ("<p{% if x %} id={{ x }}{% endif %}>{{ x }}", "<p id=<plain>><isolated>"),
        ("{% block title %}{{ x }}{% endblock %}{{ x }}", "<named><isolated>"),
        ('<i title="a > {{ x }}">{{ x }}</i>', '<i title="a > <plain>"><isolated></i>'),
        ("{% macro m(x) %}<b>{{ x }}</b>{% endmacro %}<i {{ m(1) }}>", "<i <plain>>"),
    ],
)
def test_a_value_is_shown_as_its_place_allows(template: str, shown: str) -> None:
    found = IsolatingEnvironment(extensions=["jinja2.ext.i18n"])
    for name in ("isolated", "plain", "named"):
        found.filters[name] = lambda _, name=name: f"<{name}>"
    assert found.from_string(template).render(x=1) == shown


def test_values_in_tags_of_a_text_are_told_from_others() -> None:
    assert attribute_values('<a href="/owner/%(id)s">of %(name)s</a>') == {"id"}


def test_a_template_lets_no_value_stand_as_markup() -> None:
    loader = environment().loader
    assert loader is not None
    for name in loader.list_templates():
        source = loader.get_source(environment(), name)[0]
        assert "|safe" not in source.replace(" ", ""), name
        assert "|piece" not in source or 'dir="auto"' in source, name
