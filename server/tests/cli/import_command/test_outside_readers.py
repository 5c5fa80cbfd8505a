"""A reader of another package imports a file, from the command to the stored records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sources.tests.outside_package import CONFINED, TEMPLATE, VIEWINGS, install

ROOT = Path(__file__).parents[4]
PDPP = (sys.executable, "-m", "personal_server.cli")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    packages = install(tmp_path / "packages", CONFINED)
    return {
        "PATH": os.environ["PATH"],  # noqa: TID251
        "PYTHONPATH": str(packages),
        "PDPP_DATA_DIR": str(tmp_path / "data"),
        "COLUMNS": "120",
    }


def run(environ: dict[str, str], *arguments: str | Path) -> str:
    done = subprocess.run(
        [*PDPP, *arguments], env=environ, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def run_json(environ: dict[str, str], *arguments: str | Path) -> Any:
    return json.loads(run(environ, *arguments, "--json"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux refuses the network")
def test_it_imports_a_file_end_to_end(environ: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "ViewingActivity.csv"
    path.write_bytes(VIEWINGS)
    (report,) = run_json(environ, "import", path)["imports"]
    assert report["connector_key"] == "viewings"
    assert report["streams"]["viewings"]["new"] == 2
    again = run_json(environ, "import", path, "--as", "viewings")["imports"][0]
    assert again["streams"]["viewings"]["unchanged"] == 2
    assert "Secrets" in run(environ, "search", "secrets")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux refuses the network")
def test_it_is_listed_with_its_package(environ: dict[str, str]) -> None:
    (source,) = [each for each in run_json(environ, "sources") if "package" in each]
    assert (source["connector_key"], source["package"]) == ("viewings", "viewings_reader 1.0")
    assert "Its files are read by the installed package viewings_reader 1.0" in run(
        environ, "sources", "viewings"
    )


WRONG = f"""{TEMPLATE}

ViewingsSource.declaration["streams"][0]["relationships"] = [
    {{"name": "more", "stream": "viewings", "foreign_key": "nowhere", "cardinality": "has_many"}}
]
"""


@pytest.fixture
def environ_of_wrong(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return environ | {"PYTHONPATH": str(install(tmp_path / "wrong", WRONG))}


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_what_is_wrong_with_its_declaration_is_listed_with_the_package(
    environ_of_wrong: dict[str, str], tmp_path: Path, dry: tuple[str, ...]
) -> None:
    path = tmp_path / "ViewingActivity.csv"
    path.write_bytes(VIEWINGS)
    shown = tried(environ_of_wrong, "import", path, *dry)
    assert "/streams/0/relationships: more" in shown.stderr
    assert "viewings_reader 1.0" in shown.stderr
    error = json.loads(tried(environ_of_wrong, "import", path, *dry, "--json").stdout)["error"]
    assert error["code"] == "invalid_declaration"
    assert [each["path"] for each in error["errors"]] == ["/streams/0/relationships"]
    assert "viewings_reader 1.0" in error["next_step"]


@pytest.mark.parametrize("asked", [("sources",), ("sources", "viewings")])
def test_one_whose_declaration_is_refused_is_named_and_not_offered(
    environ_of_wrong: dict[str, str], asked: tuple[str, ...]
) -> None:
    shown = tried(environ_of_wrong, *asked)
    assert "/streams/0/relationships: more" in shown.stderr
    assert "viewings_reader 1.0" in shown.stderr
    assert "What you watched." not in shown.stdout


def tried(environ: dict[str, str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PDPP, *arguments], env=environ, cwd=ROOT, capture_output=True, text=True, check=False
    )
