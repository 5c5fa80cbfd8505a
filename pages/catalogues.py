"""Catalogues of the owner's pages: what templates and code say, and each language's file of it.

`python -m pages.catalogues` brings every file up to date and lists what has no translation.  Where
only the wording of an English text changed, `--renamed OLD NEW` keeps its translation; several such
pairs stand in a file, `--table FILE`, one a line, with a tab between old and new.  `--check`
changes nothing and fails when a file is not up to date or lacks a translation.
"""

from __future__ import annotations

import ast
import io
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po
from jinja2 import nodes

from pages.parts import PACKAGES, SERVER, modules, named_file
from pdpp_kernel import errors, failures, oauth_errors
from pdpp_kernel.operators import Operator
from pdpp_kernel.source_item import Data
from pdpp_kernel.texts import counted_texts
from pdpp_sources.common import errors as export_errors
from pdpp_sources.recipes.recipe_shelf import shipped_recipes
from pdpp_sources.registry import SOURCES
from personal_server.collecting.persons import DECLARATION as PERSONS
from personal_server.consent.unusual_reading import SENTENCES
from personal_server.console.application import NO_SUCH_PAGE
from personal_server.console.languages import CATALOGUES, catalogue_tags, lacking
from personal_server.console.pages import environment
from personal_server.console.words import field_words
from personal_server.domain.hosts import FIRST_OF_ALL, FIRST_QUESTIONS, host_connections

TEMPLATES = SERVER / "console" / "templates"
SHOWING = ("console", "web", "authorization_server/authorization_endpoint.py")
"""What answers with pages."""
REFUSING = (
    *SHOWING,
    "consent",
    "domain",
    "pdpp_kernel/record.py",
    "pdpp_kernel/refused_writes.py",
    "enforcement",
    "granting",
    "reading",
    "upkeep",
)
"""Rooms whose refusals a page shows, where it imports the module; others answer programs alone."""
BEHIND_PORTS = (
    "app/account_sign_ups.py",
    "app/feed_sign_ins.py",
    "app/own_exports.py",
    "app/restored_exports.py",
    "collecting",
    "pdpp_sources",
    "storage",
)
"""Rooms whose refusals reach a page, and that no page imports."""
TERMINAL = ("cli",)
"""What speaks to a terminal, in English alone; of its texts a page shows only the `message` of an
import's report."""
Found = tuple[str, ...]
"""An English text, with that for several where it counts."""


@cache
def _jinja() -> Any:  # what the extension adds is no attribute that types know
    return environment()


def of_template(text: str) -> Iterator[Found]:
    """What a template says by `trans`, `_()`, `ngettext()` and `counted`."""
    read: Iterator[tuple[int, str, str | Found]] = _jinja().extract_translations(text)
    for _, _, said in read:
        yield (said,) if isinstance(said, str) else tuple(filter(None, said))
    for each in _jinja().parse(text).find_all(nodes.Filter):
        if each.name == "counted":
            yield counted_texts(*(arg.as_const() for arg in each.args))


@cache
def calls_and_imports(text: str) -> Sequence[ast.Call | ast.ImportFrom]:
    """What is looked at in code, which is read once."""
    found = ast.walk(ast.parse(text))
    return [each for each in found if isinstance(each, ast.Call | ast.ImportFrom)]


def of_code(text: str) -> Iterator[Found]:
    """What code says by `message`, `plural` and `counted`."""
    takes = {"message": (0, 1), "plural": (0, 2), "counted": (1, 3)}
    for each in calls_and_imports(text):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
            begin, end = takes.get(each.func.id, (0, 0))
            given = [a.value for a in each.args[begin:end] if isinstance(a, ast.Constant)]
            texts = [str(value) for value in given]
            if texts and each.func.id == "counted":
                yield counted_texts(*texts)
            elif texts:
                yield tuple(texts)


SENTENCES_OF = {
    **{
        name: (0,)
        for module in (errors, failures, oauth_errors)
        for name, each in vars(module).items()
        if isinstance(each, type)
    },
    **{name: (0, 1) for name, each in vars(export_errors).items() if isinstance(each, type)},
    "BadRecord": (1,),
    "LineRefused": (1,),
    "Skipped": (2,),
    "DatabaseUnreadable": (0,),
    "Likeness": (1, 3),
}
"""Which arguments of a refusal are sentences."""


def of_refusals(text: str) -> Iterator[Found]:
    """What code says when it refuses, where no value stands in it."""
    for each in calls_and_imports(text):
        if not isinstance(each, ast.Call) or not isinstance(each.func, ast.Name):
            continue
        places = SENTENCES_OF.get(each.func.id, ())
        steps = (named.value for named in each.keywords if named.arg == "next_step")
        for given in (*(each.args[n] for n in places if n < len(each.args)), *steps):
            if isinstance(given, ast.Constant) and isinstance(given.value, str) and given.value:
                yield (given.value,)


def files_of(rooms: Sequence[str]) -> set[Path]:
    """The modules of rooms, each a folder or a file."""
    places = [named_file(room) for room in rooms]
    return {file for place in places for file in [*place.rglob("*.py"), place] if file.is_file()}


def imported(files: set[Path]) -> set[Path]:
    """These modules, and all of this program that they import, by whatever way."""
    known, new = set[Path](), files
    while new:
        known |= new
        new = {each for path in new for each in _imports_of(path)} - known
    return known


def _imports_of(path: Path) -> Iterator[Path]:
    for each in calls_and_imports(path.read_text(encoding="utf-8")):
        if isinstance(each, ast.ImportFrom) and each.module:
            package, *inner = each.module.split(".")
            if package not in PACKAGES:
                continue
            place = PACKAGES[package].joinpath(*inner)
            named = (place / f"{alias.name}.py" for alias in each.names)
            yield from (file for file in (place.with_suffix(".py"), *named) if file.is_file())


def of_other_rooms() -> Iterator[Found]:
    """What rooms below the pages say in English alone, and pages look up as it stands."""
    yield (NO_SUCH_PAGE,)
    yield from ((sentence,) for sentence in SENTENCES.values())
    yield from ((operator.label,) for operator in Operator)
    yield from ((question,) for question in (FIRST_OF_ALL, *FIRST_QUESTIONS.values()))
    yield from ((name,) for name in declared_names())
    for origin in ("http://localhost", "https://example.org"):
        for host in host_connections(origin):
            yield from ((text,) for text in (host.instruction, host.then) if text)


def declared_names() -> Iterator[str]:
    """What the sources that come with the program call themselves, their kinds and fields."""
    shipped = (*SOURCES, *shipped_recipes())
    for declared in (*(source.declaration for source in shipped), cast("Data", PERSONS)):
        yield declared["display"]["name"]
        for stream in declared["streams"]:
            named = (*stream.get("views", ()), stream["display"])
            yield from (str(each["label"]).replace("%", "%%") for each in named)
            relations = (each["name"] for each in stream.get("relationships", ()))
            for name in (*stream["schema"]["properties"], *relations, *_measures(stream)):
                yield str(field_words(name))


def _measures(stream: Data) -> Iterator[str]:
    """What a stream measures, as far as it is declared to add up."""
    for each in stream["schema"]["properties"].values():
        total = each.get("x_pdpp_total")
        yield from total if isinstance(total, list) else ()


@cache
def extracted() -> Mapping[str, Found]:
    """Every text of the pages, by its English.  Raises: ValueError for one that counts and not."""
    found: dict[str, Found] = {}
    files = [*sorted(TEMPLATES.glob("*.html")), *modules()]
    terminal = files_of(TERMINAL)
    for path in files:
        text = path.read_text(encoding="utf-8")
        read = of_template if path.suffix == ".html" else of_code
        if path.suffix == ".py" and "pdpp_kernel.texts import" not in text:
            continue
        for texts in read(text):
            english, *further = texts
            if path in terminal and further:
                continue
            if found.setdefault(english, texts) != texts:
                raise ValueError(f"{path.name}: {english!r} has two plurals")
    for path in sorted(files_of(REFUSING) & imported(files_of(SHOWING)) | files_of(BEHIND_PORTS)):
        for texts in of_refusals(path.read_text(encoding="utf-8")):
            found.setdefault(texts[0], texts)
    return found | {texts[0]: texts for texts in of_other_rooms()}


def renewed(text: str, renamed: Mapping[str, str] | None = None) -> str:
    """A catalogue file brought up to date: its head and translations stay, what is gone goes.

    Shapes: `renamed` maps old English texts to new ones, which take over their translations.
    """
    former = {new: old for old, new in (renamed or {}).items()}
    head = text.partition("\n\n")[0]
    before = read_po(io.BytesIO(text.encode()))
    now = Catalog(locale=before.locale)
    for english, texts in extracted().items():
        known = before.get(english) or before.get(former.get(english, english))
        counts = len(texts) > 1
        kept = known.string if known is not None and known.pluralizable is counts else None
        now.add(texts if counts else english, kept)
    written = io.BytesIO()
    write_po(written, now, width=0, no_location=True, omit_header=True, sort_output=True)
    return f"{head}\n\n{written.getvalue().decode().strip()}\n"


def file_of(tag: str) -> Path:
    """The file of a language."""
    return Path(str(CATALOGUES / f"{tag}.po"))


def renew(renamed: Mapping[str, str] | None = None) -> None:
    """Bring every file up to date.  Raises: ValueError for a new text that nothing says."""
    if unsaid := set((renamed or {}).values()) - extracted().keys():
        raise ValueError(f"No page says {min(unsaid)!r}: edit the text first.")
    for tag in catalogue_tags():
        path = file_of(tag)
        path.write_text(renewed(path.read_text(encoding="utf-8"), renamed), encoding="utf-8")


def untranslated(tag: str) -> list[str]:
    """The texts of the pages that a language's file, as it is, does not translate."""
    now = renewed(file_of(tag).read_text(encoding="utf-8"))
    return lacking(read_po(io.BytesIO(now.encode())))


def unused(tag: str) -> list[str]:
    """The texts of a language's file that no page says any more."""
    said = (each.id for each in read_po(io.BytesIO(file_of(tag).read_bytes())) if each.id)
    ids = (text if isinstance(text, str) else text[0] for text in said)
    return [text for text in ids if text not in extracted()]


def _main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m pages.catalogues", description=__doc__)
    parser.add_argument("--renamed", nargs=2, action="append", default=[], metavar=("OLD", "NEW"))
    parser.add_argument("--table", type=Path, metavar="FILE")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    pairs: list[tuple[str, str]] = [(old, new) for old, new in options.renamed]
    if options.table is not None:
        lines = options.table.read_text(encoding="utf-8").splitlines()
        split = (line.partition("\t") for line in lines)
        pairs += [(old, new) for old, tab, new in split if tab]
    if not options.check:
        renew(dict(pairs))
    wrong = [f"{tag}: {text}" for tag in catalogue_tags() for text in untranslated(tag)]
    wrong += [f"{tag}, unused: {text}" for tag in catalogue_tags() for text in unused(tag)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if options.check and wrong else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
