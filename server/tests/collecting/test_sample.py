from __future__ import annotations

import secrets

import pytest

from pdpp_kernel.errors import InvalidState
from pdpp_sources.bank.reader import DECLARATION as BANK
from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.collecting.sample import NAMES, bring_sample
from tests.oracle.memory import MemoryStore

NOW_NS = 1_795_000_000 * 10**9


def test_made_up_records_come_in_as_any_do_and_only_where_nothing_is_kept() -> None:
    store = MemoryStore("own_test")
    bring_sample(store, (MAIL, BANK), NOW_NS, secrets.token_bytes)
    with store.snapshot() as snapshot:
        counts = {each.stream: each.record_count for each in snapshot.stored_streams()}
        held = snapshot.connections()
    assert counts == {"messages": 15, "transactions": 115}
    assert {each.display_name for each in held} == set(NAMES.values())
    assert [store.rejections(each.connection_id, 1, None) for each in held] == [(), ()]
    with pytest.raises(InvalidState):
        bring_sample(store, (MAIL, BANK), NOW_NS, secrets.token_bytes)
