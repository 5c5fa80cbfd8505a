from __future__ import annotations

import tomllib

import jsonschema_rs
import pytest

from pdpp_sources.common.errors import RecipeError
from pdpp_sources.recipes.recipe_file import parse_recipe
from pdpp_sources.recipes.recipe_members import json_schema

GOOD = """\
recipe = 1
key = "rides"
name = "Rides"
detail = "Where you rode."
how_to_export = "Ask the shop."

[[stream]]
name = "rides"
label = "Rides"
detail = "Each ride."
has = ["Start"]
time = "at"

[stream.fields]
at = { from = "Start", is = "instant" }
fee = { is = "amount", unit = "EUR" }

[[stream]]
name = "stops"
label = "Stops"
detail = "Each stop."
within = "rides"
rows = "/stops"

[stream.fields]
place = { from = "name" }
"""
WRONG = {
    "recipe_unreadable": ('key = "rides"', "key = rides", 2),
    "recipe_version": ("recipe = 1", "recipe = 2", 1),
    "recipe_unknown_key": ('time = "at"', 'tmie = "at"', 12),
    "recipe_missing_key": ('label = "Stops"\n', "", 18),
    "recipe_wrong_type": ('has = ["Start"]', "has = 3", 11),
    "recipe_unknown_value": ('is = "instant"', 'is = "moment"', 15),
    "recipe_unknown_field": ('time = "at"', 'time = "when"', 12),
}


@pytest.mark.parametrize(("code", "change"), WRONG.items(), ids=WRONG)
def test_a_fault_has_a_code_and_names_its_line(code: str, change: tuple[str, str, int]) -> None:
    good, wrong, line = change
    with pytest.raises(RecipeError) as caught:
        parse_recipe(GOOD.replace(good, wrong, 1), "rides.toml")
    assert caught.value.code == code
    assert f"line {line}" in str(caught.value.sentence)
    assert "rides.toml" in str(caught.value.sentence)
    assert caught.value.next_step


FURTHER = {
    "a key that must be lower case": ('key = "rides"', 'key = "My Rides"'),
    "a pointer without a slash": ('rows = "/stops"', 'rows = "stops"'),
    "a stream that is not there": ('within = "rides"', 'within = "tours"'),
    "a stream within itself": ('within = "rides"', 'within = "stops"'),
    "two streams of a name": ('name = "stops"', 'name = "rides"'),
    "a zone that is none": ('is = "instant"', 'is = "instant", zone = "Rome"'),
    "a zone that leads out": ('is = "instant"', 'is = "instant", zone = "../../etc/passwd"'),
    "a form that is none": ('is = "instant"', 'is = "instant", format = "iso"'),
    "a directive that is none": ('is = "instant"', 'is = "instant", format = "%Y-%q"'),
    "a directive twice": ('is = "instant"', 'is = "instant", format = "%Y %Y"'),
    "a form of what is no time": ('unit = "EUR"', 'unit = "EUR", format = "seconds"'),
    "an id that is no URI": ('name = "Rides"', 'name = "Rides"\nid = "my rides"'),
    "a name beyond its length": ('name = "Rides"', f'name = "{"R" * 201}"'),
    "streams within each other": (
        'has = ["Start"]',
        'within = "stops"\nrows = "/rides"\nhas = ["Start"]',
    ),
    "a relation of another name": ('time = "at"', 'parents = { "My Stop" = RELATION }'),
    "a relation called as a stream within": ('time = "at"', "parents = { stops = RELATION }"),
    "an amount without a currency": (', unit = "EUR"', ""),
    "a time that is none": ('is = "instant"', 'is = "word"'),
    "no word on which rows are meant": ('has = ["Start"]\n', ""),
    "a field that is called id": ("place = {", "id = {"),
    "a field that names a stranger": ('unit = "EUR"', 'unit_field = "money"'),
    "text in place of tables": ("[[stream]]", "[stream]"),
    "a file that lies outside": ('time = "at"', 'time = "at"\nfile = "../{at}"'),
    "a field of a file twice": (
        'time = "at"',
        'time = "at"\nfile = "a/{at}"\n[stream.fields.text]',
    ),
    "letters that are no text": ('name = "Rides"', 'name = ""'),
}


@pytest.mark.parametrize("change", FURTHER.values(), ids=FURTHER)
def test_what_does_not_fit_together_is_refused(change: tuple[str, str]) -> None:
    relation = '{ stream = "rides", field = "at" }'
    with pytest.raises(RecipeError):
        parse_recipe(GOOD.replace(*change, 1).replace("RELATION", relation), "rides.toml")


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%b %d, %Y %I:%M %p", "%Y-%m-%dT%H:%M:%S.%f%z"])
def test_patterns_of_strptime_are_taken(form: str) -> None:
    text = GOOD.replace('is = "instant"', f'is = "instant", format = "{form}"', 1)
    assert parse_recipe(text, "rides.toml").streams[0].fields[0].form == form


def test_a_line_of_text_or_of_a_list_is_not_taken_for_a_table() -> None:
    texts = 'detail = """\n[…]\n"""\nfiles = [\n  ["Stop", "Halt"]\n]\n'
    text = GOOD.replace('detail = "Each stop."\n', texts)
    with pytest.raises(RecipeError) as caught:
        parse_recipe(text.replace('files = [\n  ["Stop", "Halt"]\n]\n', "tmie = 1\n"), "r.toml")
    assert "line 24" in str(caught.value.sentence)
    with pytest.raises(RecipeError) as caught:
        parse_recipe(text.replace('rows = "/stops"', 'rwos = "/stops"'), "r.toml")
    assert "line 28" in str(caught.value.sentence)


def test_the_published_schema_takes_the_same_members() -> None:
    validator = jsonschema_rs.validator_for(json_schema())
    validator.validate(tomllib.loads(GOOD))
    for code in (
        "recipe_version",
        "recipe_unknown_key",
        "recipe_missing_key",
        "recipe_wrong_type",
        "recipe_unknown_value",
    ):
        good, wrong, _ = WRONG[code]
        assert not validator.is_valid(tomllib.loads(GOOD.replace(good, wrong, 1))), code
