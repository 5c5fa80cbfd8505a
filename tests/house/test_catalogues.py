"""Every language translates the texts of the owner's pages, with the same values and marks.

Rule: what is wrong in a translation fails; a text without one is only listed here, so that an
English text can be edited without waiting for other languages.  `make release-check` decides.
"""

from __future__ import annotations

import re
import warnings
from typing import cast

import pytest

from pages.catalogues import (
    extracted,
    of_code,
    of_refusals,
    of_template,
    renewed,
    untranslated,
    unused,
)
from pages.parts import named_file
from personal_server.console.languages import catalogue, catalogue_tags, languages

HELD = re.compile(r"%\(\w+\)s|<[^>]+>|%(?!\()")
HEAD = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'


class CatalogueBehind(UserWarning):
    """A language has not followed an English text yet."""


@pytest.mark.filterwarnings("default::tests.house.test_catalogues.CatalogueBehind")
@pytest.mark.parametrize("tag", catalogue_tags())
def test_a_catalogue_that_is_behind_is_listed(tag: str) -> None:
    """`python -m pages.catalogues` brings it up to date."""
    for text in untranslated(tag):
        warnings.warn(f"{tag} does not translate: {text}", CatalogueBehind, stacklevel=1)
    for text in unused(tag):
        warnings.warn(f"{tag} translates what no page says: {text}", CatalogueBehind, stacklevel=1)


@pytest.mark.parametrize("tag", catalogue_tags())
def test_a_language_with_a_catalogue_is_offered(tag: str) -> None:
    assert tag in languages()


@pytest.mark.parametrize("tag", catalogue_tags())
def test_a_translation_has_the_values_and_marks_of_its_text(tag: str) -> None:
    for each in catalogue(tag):
        if not each.id:
            continue
        texts = (each.id,) if isinstance(each.id, str) else each.id
        said = (each.string,) if isinstance(each.string, str) else cast("tuple[str]", each.string)
        held = {tuple(sorted(HELD.findall(text))) for text in texts}
        for text in said:
            assert tuple(sorted(HELD.findall(text))) in held, each.id


def test_texts_are_found_in_templates_and_code() -> None:
    template = (
        "{% trans name=x %}\n Back to\n {{ name }}{% endtrans %}{{ _('Yes') }}"
        "{% trans num=n %}one{% pluralize %}{{ num }} of them{% endtrans %}"
        "{{ n|counted('try', 'tries') }}"
    )
    assert set(of_template(template)) == {
        ("Back to %(name)s",),
        ("Yes",),
        ("one", "%(num)s of them"),
        ("%(num)s try", "%(num)s tries"),
    }
    code = 'message("a" "b", day=1), plural("one", "two", n), counted(n, "record"), other("c")'
    assert set(of_code(code)) == {
        ("ab",),
        ("one", "two"),
        ("%(num)s record", "%(num)s records"),
    }


def test_a_file_brought_up_to_date_keeps_its_head_and_translations_and_drops_the_rest() -> None:
    old = f'# words\n{HEAD}msgid "Sign in"\nmsgstr "Anmelden"\n\nmsgid "gone"\nmsgstr "weg"\n'
    new = renewed(old)
    assert new.startswith(f"# words\n{HEAD}")
    assert 'msgid "Sign in"\nmsgstr "Anmelden"\n' in new
    assert 'msgid "gone"' not in new
    moved = renewed(old.replace("Sign in", "Log in"), {"Log in": "Sign in"})
    assert 'msgid "Sign in"\nmsgstr "Anmelden"\n' in moved
    begun = renewed(HEAD)
    assert begun.count("msgid ") == len(extracted()) + 1
    assert renewed(begun) == begun


@pytest.mark.parametrize(
    ("module", "sentence", "is_shown"),
    [
        ("granting/codes.py", "The code cannot be redeemed. Authorize again.", False),
        ("granting/decisions.py", "The request for access expired.", True),
    ],
)
def test_what_programs_alone_are_told_is_no_text_of_the_pages(
    module: str, sentence: str, is_shown: bool
) -> None:
    assert (sentence,) in set(of_refusals(named_file(module).read_text(encoding="utf-8")))
    assert (sentence in extracted()) is is_shown
