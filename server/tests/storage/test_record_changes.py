from __future__ import annotations

from pdpp_kernel.record import FieldChange
from personal_server.storage.record_changes import changed_fields, latest_change


def test_a_field_changed_if_its_json_did() -> None:
    before = {"a": 1, "b": {"x": 1, "y": 2}, "c": None, "d": "s", "e": True}
    after = {"a": 1.0, "b": {"y": 2, "x": 1}, "d": "s", "e": 1, "f": None}
    assert changed_fields(before, after) == {"a", "c", "e", "f"}


def test_the_latest_change_is_of_granted_fields() -> None:
    created = FieldChange(3, 30)
    changes = {"a": FieldChange(5, 10), "b": FieldChange(9, 90)}
    assert latest_change(created, changes, ("a", "c")) == FieldChange(5, 10)
    assert latest_change(created, changes, ()) == created
