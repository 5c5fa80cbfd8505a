from __future__ import annotations

import json
from typing import Any

from personal_server.consent.credentials import secret_hash
from personal_server.storage.authorization_rows import IntrospectionClientRow


def test_credentials_for_introspection_are_printed_once(terminal: Any) -> None:
    assert terminal.run("admin", "add-introspection-client", "Backup", "--json") == 0
    made = json.loads(terminal.out)
    with terminal.house.store.authorization.read() as reader:
        row = reader.rows(IntrospectionClientRow)[0]
    assert (row.caller_id, row.secret_hash) == ("rs_backup", secret_hash(made["client_secret"]))
    assert terminal.run("admin", "add-introspection-client", "Backup") == 6
