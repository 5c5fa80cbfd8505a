"""The bill of materials names every locked package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pages.sbom import bill_of_materials

LOCK = Path(__file__).resolve().parents[2] / "requirements" / "run.txt"


def test_every_locked_package_is_named_with_version_and_hashes() -> None:
    text = LOCK.read_text(encoding="utf-8")
    made: Any = bill_of_materials(text)
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    named = {f"{one['name']}=={one['version']}" for one in made["components"]}
    pinned = {line.split()[0] for line in text.splitlines() if line[:1].isalnum()}
    assert named == pinned
    digests = [
        found["content"]
        for one in made["components"]
        for file in one["externalReferences"]
        for found in file["hashes"]
    ]
    assert len(digests) == text.count("--hash=sha256:")
    assert all(f"--hash=sha256:{digest}" in text for digest in digests)
    assert all(one["externalReferences"] for one in made["components"])


def test_a_marker_or_an_extra_is_no_part_of_name_or_version() -> None:
    digest = "0" * 64
    lock = f"uvicorn[standard]==1.2.3 ; python_version > '3' \\\n    --hash=sha256:{digest}\n"
    made: Any = bill_of_materials(lock)
    (one,) = made["components"]
    assert (one["name"], one["version"]) == ("uvicorn", "1.2.3")
