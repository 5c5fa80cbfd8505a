"""Introspection credentials are shown once and kept as a hash."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_kernel.errors import InvalidState
from personal_server.consent.credentials import secret_hash
from personal_server.granting.clients import add_introspection_client
from personal_server.storage.authorization_rows import IntrospectionClientRow


def test_the_secret_is_known_by_its_hash(bench: Any) -> None:
    made = add_introspection_client(bench.store, "Backup server", bench.random, bench.now_ns)
    row = bench.rows(IntrospectionClientRow)[0]
    assert (made.caller_id, row.caller_id) == ("rs_backup-server", "rs_backup-server")
    assert row.secret_hash == secret_hash(made.secret)
    assert made.secret not in repr(made)
    with pytest.raises(InvalidState):
        add_introspection_client(bench.store, "backup server", bench.random, bench.now_ns)
