"""Where the server calls for others, and what it says of where it does not."""

from __future__ import annotations

import pytest

from pdpp_kernel.errors import InvalidCallback
from personal_server.delivery.callbacks import Callbacks


def nowhere(host: str) -> list[str]:
    raise OSError(host)


def inside(host: str) -> list[str]:
    return ["10.0.0.1"] if host else []


def test_no_app_learns_which_names_there_are_inside() -> None:
    told: list[str] = []
    for resolver in (nowhere, inside):
        with pytest.raises(InvalidCallback) as refused:
            Callbacks(resolver=resolver).check("https://printer.lan/")
        told.append(str(refused.value))
    assert len(set(told)) == 1
