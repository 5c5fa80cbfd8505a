"""The documentation as a site: `python -m pages.site FOLDER` writes it to that folder.

PYTHONPATH names this repository as a whole path, since the builder runs in a folder of its own.

A link to a page or heading that is not there fails the build.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# GitHub opens a folder with its README, a site with its index: there the owner's guide comes first.
_FIRST = {"guide.md": "index.md"}
_LEFT_OUT = ("README.md", "*.py")
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")


def heading_anchor(heading: str, separator: str) -> str:
    """The anchor that GitHub gives a heading: `10. Tokens, families` has `10-tokens-families`.

    The pages are read there too, so their links are written for these anchors.
    """
    return re.sub(r"\s", separator, re.sub(r"[^\w\s-]", "", heading.lower().strip()))


def page_of_site(markdown: str, folder: Path) -> str:
    """A page of `docs/` with its links as the site needs them; `folder` is the page's.

    `[mcp-tools.json](../../adapter/…)` becomes `mcp-tools.json`: a file of the repository that is
    not in `docs/` has no address that a page could know.
    """

    def link_of_site(link: re.Match[str]) -> str:
        target = link["target"]
        if "://" in target or target.startswith("mailto:"):
            return link[0]
        path = (folder / target).resolve()
        if path.is_dir() or not path.is_relative_to(DOCS):
            return link["text"]
        named = _FIRST.get(target, target)
        return f"[{link['text']}]({named}{link['anchor'] or ''})"

    return _LINK.sub(link_of_site, markdown)


def site_pages() -> dict[str, str]:
    """The pages of the site by their paths, with their links as the site needs them."""
    pages: dict[str, str] = {}
    for page in sorted(DOCS.rglob("*.md")):
        if page.name not in _LEFT_OUT:
            path = page.relative_to(DOCS).as_posix()
            text = page.read_text(encoding="utf-8")
            pages[_FIRST.get(path, path)] = page_of_site(text, page.parent)
    return pages


def write_pages(folder: Path) -> None:
    """Write what the site is built from: the pages, their pictures, and the settings."""
    others = shutil.ignore_patterns("*.md", *_LEFT_OUT)
    shutil.copytree(DOCS, folder / "docs", ignore=others)
    for path, text in site_pages().items():
        (folder / "docs" / path).write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "pages" / "site.yml", folder / "mkdocs.yml")


def main(folder: Path) -> int:
    """Build it; the exit code of the builder, which is not 0 where a link leads nowhere."""
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    with tempfile.TemporaryDirectory() as working:
        write_pages(Path(working))
        built = subprocess.run(command, cwd=working, check=False).returncode
        if not built:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(Path(working) / "site", folder)
    return built


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
