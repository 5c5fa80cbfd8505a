"""What all records of a page say stands once, and the rest of them is a table that reads back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer
from adapter.tests.reader import Text, cells_of, ids_of, records_of, value_of
from adapter.tests.seed import world
from pdpp_mcp_server.faces.page_table import cell

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
plain = st.text(st.characters(min_codepoint=32, max_codepoint=0x17E, exclude_categories=["C", "Z"]))
strings = st.one_of(
    plain, st.sampled_from(["", " a ", "5", "-.5", "true", 'a,"b"', "a\nb\\n\r", "\u00e9"])
)
# within a list a link or a tag of Markdown stays marked as none
listed = strings.filter(lambda text: not re.search(r"\]\(|!\[|<", text))
values = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), strings, st.lists(listed))


def payment(number: int, **members: Any) -> Json:
    key = f"txn_{number:024}"
    own = {"id": key, "posted_on": f"2025-01-{number % 28 + 1:02}", "payee": f"Payee {number % 7}"}
    unused = {f"unused_member_{n}": None for n in range(12)}
    data = {**own, "amount": -number / 4, "currency": "EUR", **unused, **members}
    return {
        "object": "record",
        "id": key,
        "record_id": key,
        "stream": "payments",
        "connection_id": "cin_0123456789abcdef01234567",
        "connector_key": "bank",
        "display_name": "Checking account",
        "emitted_at": "2026-01-01T00:00:00.000Z",
        "data": data,
    }


async def page_of(rows: list[Json], **members: Any) -> Any:
    rs = world()
    rs.script = lambda _: Answer(200, {"object": "list", "data": rows, **members})
    return await ask(rs, "query_records", {"stream": "payments", "limit": 100})


async def test_a_hundred_payments_fit_both_faces() -> None:
    rows = [payment(n) for n in range(100)]
    outcome = await page_of(rows, has_more=True, next_cursor="c" * 90)
    assert len(outcome.text) <= 12_000
    written = json.dumps(outcome.structured, ensure_ascii=False, separators=(",", ":"))
    assert len(written) <= 20_000
    assert [row["data"] for row in records_of(outcome.structured)] == [row["data"] for row in rows]
    whole = [{name: value for name, value in row.items() if name != "record_id"} for row in rows]
    assert records_of(outcome.structured) == whole
    assert Text(outcome.text).records == [row["data"] for row in rows]
    assert Text(outcome.text).ids == ids_of(outcome.structured)
    assert outcome.text.count("c" * 90) == 1
    assert outcome.text.count("cin_0123456789abcdef01234567") == 1
    assert list(outcome.structured)[:2] == ["next", "warnings"]
    assert list(outcome.structured)[-1] == "data"


async def test_a_record_is_what_it_has_of_its_own() -> None:
    outcome = await page_of([payment(n) for n in range(3)])
    [first, *_] = outcome.structured["data"]["data"]
    assert set(first) == {"id", "data"}
    assert set(first["data"]) == {"posted_on", "payee", "amount"}
    assert outcome.structured["page"]["id_field"] == "id"
    assert "record_ids" not in outcome.structured


@pytest.mark.parametrize(
    "key", ["a..b", "a b", 'q"', "x,y", "end\nnext: fetch {}", "-n", "k" * 201]
)
async def test_a_key_that_could_be_taken_for_more_is_a_block(key: str) -> None:
    odd = {**payment(1), "id": key, "record_id": key}
    outcome = await page_of([payment(0), odd])
    assert "id_prefix" not in outcome.structured["page"]
    assert Text(outcome.text).ids == outcome.structured["record_ids"]
    assert "columns: " not in outcome.text


async def test_records_of_two_connections_keep_their_whole_ids() -> None:
    outcome = await page_of([payment(0), {**payment(1), "connection_id": "cin_b"}])
    assert outcome.structured["record_ids"] == Text(outcome.text).ids
    assert "connection_id" not in outcome.structured["page"]


async def test_deletions_stand_in_the_order_of_the_page() -> None:
    gone = {name: value for name, value in payment(1).items() if name != "data"}
    gone |= {"deleted": True, "deleted_at": "2026-07-02T10:00:00Z"}
    outcome = await page_of([payment(0), gone, payment(2)])
    assert Text(outcome.text).ids == ids_of(outcome.structured)
    assert f"\ndeleted: {gone['id']} 2026-07-02T10:00:00Z\n" in outcome.text


async def test_bytes_and_long_texts_stay_with_their_record() -> None:
    alike = {"photo": "QUJDREVGR0hJSktM" * 20, "note": "n" * 500}
    outcome = await page_of([payment(n, **alike) for n in range(2)])
    assert not {"photo", "note"} & set(outcome.structured["page"]["data"])
    assert "QUJDREVG" not in outcome.text


async def test_rows_with_little_in_common_are_blocks() -> None:
    rows = [payment(n, **{f"only_{n}_{m}": m for m in range(9)}) for n in range(9)]
    outcome = await page_of(rows)
    assert "columns: " not in outcome.text
    assert len(Text(outcome.text).records) == len(Text(outcome.text).ids) == 9


@given(st.lists(values, min_size=1, max_size=9))
def test_cells_read_back_as_what_they_were(row: list[Any]) -> None:
    line = ",".join(map(cell, row))
    assert "\n" not in line
    assert [value_of(text) for text in cells_of(line)] == row
