"""`server.json`: what a registry of MCP servers is told of the adapter.

Rule: no address stands here that only a publisher can know; without one, the bundle is not named.
Source: the registry's `server.schema.json` of 2025-12-11.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import jsonschema_rs

from pages.parts import ADAPTER

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_MARK = "<!-- mcp-name: "
_ABOUT = "Reads the records that their owner granted from a personal server, and nothing else."
_VARIABLES = (
    ("PDPP_PROVIDER_URL", "Address of the personal server, as https://me.example."),
    ("PDPP_CACHE_ROOT", "Folder in which `pdpp connect` saved the access."),
)


def entry_name() -> str:
    """The name in the registry, which the package repeats as proof that both have one publisher."""
    readme = ADAPTER.parents[1].joinpath("README.md").read_text(encoding="utf-8")
    return readme.partition(_MARK)[2].partition(" ")[0]


def entry(version: str, bundle: Path, address: str | None) -> dict[str, object]:
    """The document.  Shapes: `address` is the folder on the web where the bundle will lie."""
    variables = [{"name": name, "description": text} for name, text in _VARIABLES]
    stdio = {"transport": {"type": "stdio"}, "environmentVariables": variables}
    package: dict[str, object] = {
        "registryType": "pypi",
        "identifier": "pdpp-mcp-server",
        "version": version,
        "runtimeHint": "uvx",
        **stdio,
    }
    packages = [package]
    if address is not None:
        digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
        where = f"{address.rstrip('/')}/{bundle.name}"
        packages.append(
            {"registryType": "mcpb", "identifier": where, "fileSha256": digest, **stdio}
        )
    about = {"name": entry_name(), "title": "Personal server", "description": _ABOUT}
    return {"$schema": SCHEMA, **about, "version": version, "packages": packages}


def faults(document: Mapping[str, object], schema: Path) -> list[str]:
    """Where a document does not hold to the registry's schema, a line each."""
    validator = jsonschema_rs.validator_for(json.loads(schema.read_bytes()))
    return [
        f"/{'/'.join(map(str, fault.instance_path))}: {fault.message}"
        for fault in validator.iter_errors(dict(document))
    ]


def write_entry(target: Path, version: str, bundle: Path, address: str | None) -> None:
    """Write the document."""
    text = json.dumps(entry(version, bundle, address), indent=2) + "\n"
    target.write_text(text, encoding="utf-8")
