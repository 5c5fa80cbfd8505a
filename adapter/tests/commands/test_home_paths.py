"""A `~` that no shell replaced."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import cyclopts
import pytest
from cyclopts import Parameter

from pdpp_mcp_server.commands.exits import run_app
from pdpp_mcp_server.settings import adapter_from_env


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Places:
    """Options of several commands."""

    within: Path | None = None
    word: str = ""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_every_path_of_a_command_is_understood_and_no_word_is_changed(home: Path) -> None:
    app, given = cyclopts.App(), list[object]()

    @app.default
    def _(
        *paths: Path,
        out: Annotated[list[Path] | None, Parameter()] = None,
        places: Places | None = None,
    ) -> None:
        given.extend((paths, out, places))

    words = ["~/a", "b", "~nobody-of-this-name/c", "--out=~/d", "--within", "~", "--word=~/e"]
    assert run_app(app, words) == 0
    paths = (home / "a", Path("b"), Path("~nobody-of-this-name/c"))
    assert given == [paths, [home / "d"], Places(home, "~/e")]


def test_a_setting_is_understood_too(home: Path) -> None:
    assert adapter_from_env({"PDPP_CACHE_ROOT": "~/cache"}).cache_root == home / "cache"
