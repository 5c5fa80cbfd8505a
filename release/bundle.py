"""The adapter as a bundle (`.mcpb`) that desktop hosts install with a click.

Rule: a host starts it without a shell, so nothing may be looked for in PATH: the bundle carries the
program that starts Python (uv), and the locked packages for each Python that a machine may have.
Source: the MCPB manifest, version 0.3; `mcpb validate` is asked by `make dist-test`.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from release.archives import write_zip

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_PARTS = ("pdpp_kernel-", "pdpp_mcp_server-")
_TOOLS = ROOT / "adapter" / "src" / "pdpp_mcp_server" / "mcp-tools.json"


def bundle_name(version: str) -> str:
    """What the file is called."""
    return f"pdpp-mcp-server-{version}-linux-{platform.machine()}.mcpb"


def write_bundle(
    target: Path, wheels: Sequence[Path], version: str, work: Path, seconds: int
) -> None:
    """Make the bundle.  Shapes: the parts' wheels; a folder to work in.  Units: Unix seconds."""
    tree = work / "bundle"
    packages = tree / "packages"
    packages.mkdir(parents=True)
    for wheel in wheels:
        if wheel.name.startswith(_PARTS):
            shutil.copy2(wheel, packages)
    fetch_packages(packages)
    (tree / "bin").mkdir()
    shutil.copy2(Path(sys.executable).with_name("uv"), tree / "bin" / "uv")
    shutil.copy2(ROOT / "LICENSE", tree / "LICENSE")
    (tree / "manifest.json").write_text(json.dumps(manifest(version), indent=2) + "\n", "utf-8")
    write_zip(tree, target, seconds)


def fetch_packages(folder: Path) -> None:
    """The locked packages of the adapter, for every Python; a hash decides what is one of them."""
    lock = str(ROOT / "requirements" / "adapter.txt")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    for python in PYTHONS:
        wanted = [f"--python-version={python}", "--only-binary=:all:", "--require-hashes"]
        subprocess.run([*pip, *wanted, f"--dest={folder}", "-r", lock], check=True)


def manifest(version: str) -> dict[str, object]:
    """What the bundle says of itself."""
    tools = json.loads(_TOOLS.read_text(encoding="utf-8"))["tools"]
    words = ["tool", "run", "--no-config", "--no-index", "--find-links", "${__dirname}/packages"]
    return {
        "manifest_version": "0.3",
        "name": "pdpp-mcp-server",
        "display_name": "Personal server",
        "version": version,
        "description": "Reads the records that their owner granted, and nothing else.",
        "author": {"name": "The maintainers of the personal server"},
        "license": "Apache-2.0",
        "server": {
            "type": "binary",
            "entry_point": "bin/uv",
            "mcp_config": {
                "command": "${__dirname}/bin/uv",
                "args": [
                    *words,
                    f"pdpp-mcp-server@{version}",
                    "--cache-root",
                    "${user_config.folder}",
                ],
                "env": {"PDPP_PROVIDER_URL": "${user_config.server}"},
            },
        },
        "user_config": {
            "server": {
                "type": "string",
                "title": "Address of the personal server",
                "description": "Where `pdpp connect` was given access, as https://me.example.",
                "required": True,
                "default": "http://127.0.0.1:7662",
            },
            "folder": {
                "type": "directory",
                "title": "Folder of the access",
                "description": "Where `pdpp connect --cache-root` saved it.",
                "required": True,
                "default": "${HOME}/.pdpp",
            },
        },
        "tools": [{"name": tool["name"], "description": tool["description"]} for tool in tools],
        "compatibility": {"platforms": ["linux"], "runtimes": {"python": ">=3.11"}},
    }
