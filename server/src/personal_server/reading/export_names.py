"""What documents in an export are called, for who only looks whether a file is one."""

from __future__ import annotations

MANIFEST = "manifest.json"
