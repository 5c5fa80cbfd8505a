"""What a record comes to at least is told without rendering it, and never more than it comes to."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from adapter.tests.faces.test_page_table import payment
from adapter.tests.seed import world
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.faces.page_layout import LONG, Measure
from pdpp_mcp_server.faces.page_table import NO_TABLE, PageTable
from pdpp_mcp_server.faces.record_identity import RecordPlace
from pdpp_mcp_server.faces.records import RowItem
from pdpp_mcp_server.faces.truncation import least_chars
from pdpp_mcp_server.safe_text import clean
from pdpp_mcp_server.tool_runs import draw_nonce

CALL = ToolCall("query_records", cast("Any", world()), "http://127.0.0.1:7662", draw_nonce)
SCOPE = RecordPlace("payments")
texts = st.text(st.sampled_from("ab \n\u200b\u200d\u0301é😀\x07<[]("), max_size=60)


@given(st.lists(texts, min_size=2, max_size=3), st.integers(1, 60), st.booleans())
def test_no_face_of_a_record_is_shorter_than_what_is_told(
    said: list[str], times: int, is_table: bool
) -> None:
    rows = [payment(number, payee=text * times) for number, text in enumerate(said)]
    table = PageTable.of(CALL, rows, SCOPE) if is_table else NO_TABLE
    for number, row in enumerate(rows, 1):
        item = RowItem(CALL, row, SCOPE, str(number), table)
        seen = [(len(text), len(clean(text))) for text in item.texts]
        for measure in (*LONG, Measure.of(40)):
            block = item.at(measure)
            told = least_chars(seen, measure.preview)
            assert told <= min(block.structured_chars, block.text_chars)
