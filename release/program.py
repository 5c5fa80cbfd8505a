"""The program as one file for Linux: a script that carries a Python, its libraries and the parts.

Rule: the Python inside is a real one, started as `python -m`, since the readers are processes of
the same Python that give up every other right (an archive that is unpacked while it runs cannot be
read any more after that). It is the Python that makes the file, with the system's libraries that it
needs; of the C library it takes the one that is there, of the same version or a newer one.

    pdpp-0.1.0-linux-x86_64 import inbox.mbox
      -> HOME/.local/share/pdpp/programs/4f1c…/bin/python3 -P -s -m pdpp_mcp_server.commands …
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from release.archives import packed_tar

ROOT = Path(__file__).parents[1]
STUB = Path(__file__).with_name("program.sh")
_LEFT_OUT = (
    *("test", "tests", "idlelib", "tkinter", "turtledemo", "turtle.py", "lib2to3", "pydoc_data"),
    *("ensurepip", "site-packages", "dist-packages", "config-*", "_tkinter*", "__pycache__"),
)
"""Of the standard library: what nobody asks of a server."""
_OF_THE_SYSTEM = re.compile(r"(ld-linux|libc|libm|libdl|librt|libpthread|libutil|libresolv)[.-]")
"""The C library, which comes with every system and fits its kernel."""
_LDD = "/usr/bin/ldd"
_NEEDED = re.compile(r"=> (/\S+)")


def file_name(version: str) -> str:
    """What the file is called."""
    return f"pdpp-{version}-linux-{platform.machine()}"


def write_program(target: Path, wheels: Sequence[Path], work: Path, seconds: int) -> None:
    """Make the file.  Shapes: wheels of the parts; work: an empty folder.  Units: Unix seconds."""
    tree = work / "program"
    python = copy_python(tree)
    add_packages(python, wheels, work)
    compile_modules(tree)
    content = packed_tar(tree, seconds)
    target.write_bytes(stub_of(content) + content)
    target.chmod(0o755)


def copy_python(tree: Path) -> Path:
    """Put the Python that runs this into a folder that can be moved; its executable there."""
    base = Path(sys.executable).resolve()
    python = tree / "bin" / "python3"
    python.parent.mkdir(parents=True)
    shutil.copy2(base, python)
    # the landmark by which it finds its own prefix, wherever that is moved
    library = tree / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    shutil.copytree(
        sysconfig.get_path("stdlib"), library, ignore=shutil.ignore_patterns(*_LEFT_OUT)
    )
    extensions = sorted(library.glob("lib-dynload/*.so"))
    for path in sorted({path for binary in (base, *extensions) for path in needed_by(binary)}):
        shutil.copy2(path, tree / "lib" / path.name)
    # Found from where they stand, also by a process that gets no variables; each says so itself,
    # since what a library says counts for it in the place of what the executable says.
    look_in(tree / "lib", python, *extensions, *(tree / "lib").glob("*.so*"))
    return python


def needed_by(binary: Path) -> list[Path]:
    """The shared libraries that a binary is linked with, without the C library's."""
    asked = subprocess.run([_LDD, str(binary)], capture_output=True, text=True, check=False)
    found = (Path(path) for path in _NEEDED.findall(asked.stdout))
    return [path for path in found if not _OF_THE_SYSTEM.match(path.name)]


def look_in(folder: Path, *binaries: Path) -> None:
    """Let binaries look for their libraries in a folder, wherever both are moved together."""
    patchelf = Path(sys.executable).with_name("patchelf")
    for binary in binaries:
        binary.chmod(0o755)
        where = Path("$ORIGIN") / os.path.relpath(folder, binary.parent)
        subprocess.run([str(patchelf), "--set-rpath", str(where), str(binary)], check=True)


def add_packages(python: Path, wheels: Sequence[Path], work: Path) -> None:
    """Install the locked libraries and the parts where that Python looks for packages."""
    # Debian's Python looks elsewhere than others, so it is asked.
    ask = "import site; print(site.getsitepackages()[-1])"
    asked = subprocess.run(
        [str(python), "-B", "-c", ask], capture_output=True, text=True, check=True
    )
    packages = Path(asked.stdout.strip())
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    into = ["--no-compile", f"--target={work / 'packages'}"]
    lock = str(ROOT / "requirements" / "run.txt")
    locked = ["--require-hashes", "--only-binary=:all:", "-r", lock]
    # Scripts name the Python that installed them, and so do their digests in the lists of files.
    for named in (locked, ["--no-deps", "--no-index", *map(str, wheels)]):
        subprocess.run([*pip, *into, *named], check=True)
        shutil.rmtree(work / "packages" / "bin", ignore_errors=True)
    for listed in (work / "packages").glob("*.dist-info/RECORD"):
        listed.unlink()
    for told in (work / "packages").glob("*.dist-info/direct_url.json"):
        told.unlink()
    packages.parent.mkdir(parents=True, exist_ok=True)
    (work / "packages").rename(packages)


def compile_modules(tree: Path) -> None:
    """Compile every module once, so that a start only reads; nothing of it is checked again."""
    words = ["-B", "-m", "compileall", "-qf", "--invalidation-mode", "unchecked-hash"]
    environ = {"PYTHONHASHSEED": "0"}  # a set of constants is written in the order of its hashes
    python = str(tree / "bin" / "python3")
    subprocess.run([python, *words, "-s", str(tree), str(tree)], env=environ, check=True)


def stub_of(content: bytes) -> bytes:
    """The script before the content: it unpacks what follows it, once, and starts it."""
    text = STUB.read_text(encoding="utf-8").replace("@DIGEST@", hashlib.sha256(content).hexdigest())
    # `tail -c +N` counts from 1; the number is as long as its mark, so that its place is certain
    length = len(text.encode()) + 1
    return text.replace("@START@", str(length).rjust(len("@START@"), "0")).encode()
