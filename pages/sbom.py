"""`python -m pages.sbom FOLDER`: what is in the program, as CycloneDX, beside its wheel.

Made from `requirements/run.txt` alone, so that it names what an installation by the lock gets.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def bill_of_materials(lock: str) -> dict[str, object]:
    """The document for the text of a lock file."""
    project = tomllib.loads((ROOT / "server" / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    name, version = project["name"], project["version"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(name, version) | {"type": "application"}},
        "components": components(lock),
    }


def component(name: str, version: str) -> dict[str, object]:
    """A package by its name in the package index."""
    reference = f"pkg:pypi/{name.lower()}@{version}"
    return {"type": "library", "bom-ref": reference, "name": name, "version": version}


def components(lock: str) -> list[dict[str, object]]:
    """Every pinned package; the hashes are those of the files that may be installed for it."""
    found: list[dict[str, object]] = []
    for entry in re.split(r"\n(?=[A-Za-z0-9])", lock):
        pinned = PINNED.match(entry)
        if pinned is None:
            continue
        name, version = pinned.groups()
        one = component(name, version)
        # `hashes` of a component are of one file; a package has one for each platform.
        files = [
            {"type": "distribution", "url": one["bom-ref"], "hashes": [sha256(digest)]}
            for digest in HASH.findall(entry)
        ]
        found.append({**one, "purl": one["bom-ref"], "externalReferences": files})
    return found


def sha256(digest: str) -> dict[str, str]:
    """A hash as CycloneDX writes it."""
    return {"alg": "SHA-256", "content": digest}


def main() -> None:
    """Write the document into the folder that is named."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    folder.mkdir(parents=True, exist_ok=True)
    lock = (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
    text = json.dumps(bill_of_materials(lock), indent=2) + "\n"
    (folder / "sbom.cdx.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
