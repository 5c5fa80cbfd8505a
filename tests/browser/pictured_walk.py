"""A walk with the keyboard alone, pictured: a numbered picture of every step, and a page of them.

Two ways are walked, with scripts and without, each into a folder of its name; `index.html` shows
the pictures beside each other.
"""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from tests.browser.keyboard import Keyboard

HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>The owner's walk</title>
<style>body{font:15px system-ui;margin:2rem}td{vertical-align:top;padding:.5rem}
img{width:38rem;max-width:100%;border:1px solid #999}th{text-align:left;padding:.5rem}</style>
<h1>The owner's walk, with the keyboard alone</h1>
"""
WAYS = {"script": "With scripts", "no-script": "Without scripts"}


@dataclass(frozen=True, slots=True)
class Step:
    """What was just done, and its picture."""

    words: str
    picture: str


@dataclass
class Walk:
    """One way through, named by its folder; `steps` grows as it goes."""

    keyboard: Keyboard
    folder: Path
    steps: list[Step] = field(default_factory=list[Step])

    def step(self, words: str) -> None:
        """Keep a picture of the window as it is now."""
        name = f"{len(self.steps) + 1:02}.png"
        (self.folder / name).write_bytes(self.keyboard.driver.get_screenshot_as_png())
        self.steps.append(Step(words, name))


@contextmanager
def pictured(walk: Walk) -> Generator[None]:
    """A walk from its begin to its end; where it stops before, that is pictured, too."""
    walk.folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        walk.step("Here it stopped")
        raise
    finally:
        write_page(walk.folder.parent, {walk.folder.name: walk.steps})


def write_page(folder: Path, walks: Mapping[str, Sequence[Step]]) -> None:
    """The pictures of a walk beside those of the other way, a row for each step."""
    rows = itertools.zip_longest(*walks.values())
    cells = "".join("<tr>" + "".join(map(_cell, walks, row)) + "</tr>\n" for row in rows)
    heads = "".join(f"<th>{WAYS[way]}</th>" for way in walks)
    (folder / "index.html").write_text(
        f"{HEAD}<table><tr>{heads}</tr>\n{cells}</table>\n", encoding="utf-8"
    )


def _cell(way: str, step: Step | None) -> str:
    if step is None:
        return "<td></td>"
    place = f"{way}/{step.picture}"
    words = f"{step.picture[:2]} {escape(step.words)}"
    return f'<td><p>{words}</p><a href="{place}"><img src="{place}" alt="{words}"></a></td>'


def walk_both_ways(walked: Callable[[Path, str], Sequence[Step]]) -> None:
    """Both ways, into the folder that the command names."""
    folder = Path(sys.argv[1])
    walks = {way: walked(folder, way) for way in WAYS}
    write_page(folder, walks)
    print(f"{sum(map(len, walks.values()))} pictures: {folder / 'index.html'}")
