"""What a host pays before the first call: tokens of o200k, by a tokenizer that is locked."""

from __future__ import annotations

import json

import pytest

from bench.result_sizes import tokens
from pdpp_mcp_server.contract import published_contract
from tests.conformance.suite import INSTALLED, needs_suite

MOST_TOKENS = 2_900


@needs_suite
@pytest.mark.conformance
def test_names_descriptions_inputs_and_instructions_cost_little() -> None:
    published = published_contract()
    listed = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in published.tools.values()
    ]
    written = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    tokenizer = INSTALLED / "node_modules" / "gpt-tokenizer"
    assert sum(tokens([written, published.instructions], tokenizer)) <= MOST_TOKENS
