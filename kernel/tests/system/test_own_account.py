"""The account under which this process runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pdpp_kernel.system.own_account import is_own, own_name, own_number


def test_what_it_makes_is_its_own(tmp_path: Path) -> None:
    assert is_own(tmp_path.stat())
    assert own_number() == os.geteuid()


def test_an_account_without_a_name_has_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    assert own_name() == "4000000000"
