"""What pages load beside themselves: the stylesheet, the icon, the scripts.

Rule: a name changes with its content, so that browsers keep what they have.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files

import msgspec

_STATIC = files("personal_server.console") / "static"
STYLESHEET = (_STATIC / "console.css").read_bytes()
ICON = (_STATIC / "icon.svg").read_bytes()


class Script(msgspec.Struct, frozen=True):
    """A script of ours under a name that changes with its content.

    Shapes: `asks` says that it asks this server by itself, `installs` that it has a worker, on a
        page that can be installed.
    """

    content: bytes
    path: str
    asks: bool = False
    installs: bool = False


def _script(*names: str, asks: bool = False, installs: bool = False) -> Script:
    content = b"".join((_STATIC / f"{name}.js").read_bytes() for name in names)
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Script(content, f"/assets/{names[0]}-{digest}.js", asks, installs)


PASSKEYS, ZONE = _script("passkeys"), _script("zone")
LIVE, UPLOADS = _script("live", "asking", asks=True), _script("uploads", "asking", asks=True)
ASKING, ARRIVING = _script("asking", asks=True), _script("arriving")
ARRIVING_PASSKEYS = _script("arriving", "passkeys")
DECIDING = _script("consent", "passkeys", asks=True)
NOTICES = _script("notices", installs=True)
SCRIPTS = (PASSKEYS, LIVE, UPLOADS, ZONE, DECIDING, NOTICES, ASKING, ARRIVING, ARRIVING_PASSKEYS)
NOTICES_WORKER = (_STATIC / "notices-worker.js").read_bytes()
MANIFEST = (_STATIC / "manifest.webmanifest").read_bytes()
STYLESHEET_PATH = f"/assets/console-{hashlib.sha256(STYLESHEET).hexdigest()[:12]}.css"
