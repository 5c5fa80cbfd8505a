"""A small export: a vault of notes, with something broken in it."""

from __future__ import annotations

from sources.tests.specimens.files import Files

NOTE = b"""\
---
title: Sourdough
tags: [bread, baking]
created: 2024-01-02
---
# Not the title

Feed it twice, see [[Rye starter|rye]] and ![loaf](images/loaf.png). #kitchen/oven
`#not-a-tag`
"""

FILES: Files = {
    "Vault/Bread/Sourdough.md": NOTE,
    "Vault/Bread/Rye starter.md": b"No front matter\n---\nbut a rule",
    "Vault/Bread/Broken.md": b"---\na: [1\n---\n# Broken front matter",
    "Vault/Bread/images/loaf.png": b"\x89PNG",
}
