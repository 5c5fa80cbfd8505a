from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import KeySet

from personal_server.granting.consent_receipts import ConsentReceipt, ConsentReceipts
from personal_server.storage.authorization_rows import GrantRow
from server.tests.console.browsing import allow
from server.tests.console.household import Household, mail_request

VERIFIER = Path(__file__).parent.parent.parent.parent / "docs" / "verify_receipt.py"


@dataclass
class Agreed:
    """A decision of the page, and its receipt."""

    house: Household
    grant_id: str
    receipt: ConsentReceipt

    @property
    def keys(self) -> dict[str, Any]:
        return {"keys": self.house.store.receipts.public_keys()}

    @property
    def said(self) -> dict[str, Any]:
        keys: Any = KeySet.import_key_set(self.keys)  # type: ignore[arg-type]
        found = jws.deserialize_compact(self.receipt.signed, keys, algorithms=["Ed25519"])
        return json.loads(found.payload)


def receipt_of(house: Household, held_id: str) -> ConsentReceipt | None:
    with house.store.authorization.read() as reader:
        return house.store.receipts.of(reader, held_id, house.clock())


@pytest.fixture(scope="module")
def agreed() -> Agreed:
    house = Household()
    allow(house.signed_in(), house.ask(mail_request()))
    with house.store.authorization.read() as reader:
        [row] = reader.rows(GrantRow)
    receipt = receipt_of(house, row.grant_id)
    assert receipt is not None
    return Agreed(house, row.grant_id, receipt)


def test_a_receipt_says_what_was_agreed_and_with_whom(agreed: Agreed) -> None:
    said = agreed.said
    assert (said["access"], said["iss"]) == (agreed.grant_id, agreed.house.origin)
    assert said["decided_by"] == "page"
    [grant] = said["grants"]
    assert grant["grant_id"] == agreed.grant_id
    assert [stream["name"] for stream in grant["details"]["streams"]] == ["messages"]


def test_it_is_the_same_each_time_and_another_server_makes_another(agreed: Agreed) -> None:
    assert receipt_of(agreed.house, agreed.grant_id) == agreed.receipt
    with agreed.house.store.authorization.read() as reader:
        other = ConsentReceipts(lambda: bytes([1]) * 32).of(
            reader, agreed.grant_id, agreed.house.clock()
        )
    assert other is not None
    assert (other.signed, other.salt) != (agreed.receipt.signed, agreed.receipt.salt)
    assert receipt_of(agreed.house, "grt_unknown") is None


@pytest.mark.parametrize(
    ("tamper", "holds"),
    [(None, True), ("signed", False), ("shown", False)],
)
def test_the_script_of_the_docs_verifies_it(
    agreed: Agreed, tmp_path: Path, tamper: str | None, holds: bool
) -> None:
    kept = {
        "receipt": agreed.receipt.signed,
        "salt": agreed.receipt.salt.hex(),
        "shown": agreed.receipt.shown.decode(),
    }
    if tamper == "signed":
        head, _, signature = agreed.receipt.signed.split(".")
        kept["receipt"] = f"{head}.e30.{signature}"
    if tamper == "shown":
        kept["shown"] += " "
    receipt, keys = tmp_path / "receipt.json", tmp_path / "keys.json"
    receipt.write_text(json.dumps(kept))
    keys.write_text(json.dumps(agreed.keys))
    done = subprocess.run([sys.executable, VERIFIER, receipt, keys], capture_output=True)
    assert (done.returncode == 0) is holds
    assert (agreed.grant_id in done.stdout.decode()) is holds


def test_a_clients_receipt_verifies_without_what_was_shown(agreed: Agreed, tmp_path: Path) -> None:
    receipt, keys = tmp_path / "receipt.json", tmp_path / "keys.json"
    receipt.write_text(json.dumps({"receipt": agreed.receipt.signed}))
    keys.write_text(json.dumps(agreed.keys))
    done = subprocess.run([sys.executable, VERIFIER, receipt, keys], capture_output=True)
    assert done.returncode == 0
