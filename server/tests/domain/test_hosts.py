import json
from datetime import date

import pytest

from pdpp_sources.registry import SOURCES
from personal_server.domain.hosts import (
    DOCUMENT_DAYS,
    FIRST_OF_ALL,
    FIRST_QUESTIONS,
    PUBLISHED,
    PublishedDocument,
    first_question,
    host_connections,
    mcp_url,
)

ORIGIN = "https://me.example"


def test_every_host_is_given_the_one_address() -> None:
    assert all(mcp_url(ORIGIN) in connection.text for connection in host_connections(ORIGIN))


def test_hosts_are_named_once() -> None:
    names = [connection.host for connection in host_connections(ORIGIN)]
    assert len(names) == len(set(names))
    assert {"Claude Code", "Codex", "VS Code", "ChatGPT"} <= set(names)


def test_configurations_are_json() -> None:
    *_, other = host_connections(ORIGIN)
    assert json.loads(other.text)["mcpServers"]["personal-data"]["url"] == mcp_url(ORIGIN)


def test_nothing_asks_for_a_token_or_a_choice_of_surface() -> None:
    words = " ".join(c.instruction + c.text for c in host_connections(ORIGIN)).lower()
    assert not {"profile", "toolset", "token", "bearer"} & set(words.split())


def test_no_text_is_marked_up_which_a_terminal_and_a_page_would_show() -> None:
    texts = [part for c in host_connections(ORIGIN) for part in (c.instruction, c.text, c.then)]
    assert not [text for text in texts if "`" in text]


def test_hosts_in_a_cloud_are_told_that_a_loopback_address_does_not_reach() -> None:
    told = [c.host for c in host_connections("http://127.0.0.1:7662") if "public" in c.instruction]
    assert told == ["Claude", "ChatGPT"]
    assert not [c for c in host_connections(ORIGIN) if "public" in c.instruction]
    local = {c.host for c in host_connections("http://127.0.0.1:7662") if "127.0.0.1" in c.text}
    assert local.isdisjoint(told)  # an address that cannot work is not one to paste


@pytest.mark.parametrize(("url", "document"), PUBLISHED.items())
def test_a_document_that_was_published_is_known_by_its_address(
    url: str, document: PublishedDocument
) -> None:
    said = json.loads(document.body)
    assert said["client_id"] == document.url == url
    assert said["token_endpoint_auth_method"] == "none"
    assert said["redirect_uris"]
    assert (date(2027, 3, 7) - document.published_on).days == DOCUMENT_DAYS


def test_an_agent_is_first_asked_what_the_sources_can_answer() -> None:
    assert first_question(["bank", "mail"]) == FIRST_QUESTIONS["mail"]
    assert first_question(["notes"]) == first_question([]) == FIRST_OF_ALL
    assert set(FIRST_QUESTIONS) <= {str(source.declaration["connector_key"]) for source in SOURCES}
