"""Where the owner lives, as the file and the environment say."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from personal_server.configuration_file import write_configuration
from personal_server.owner_locale import LocaleFile, OwnerLocale
from personal_server.settings import Settings


def test_the_owners_locale_is_kept_beside_what_the_file_holds(tmp_path: Path) -> None:
    made = write_configuration(tmp_path, "own_1")
    path = tmp_path / "config.toml"
    path.write_text(path.read_text() + 'note = "mine"\n\n[[clients]]\nlanguage = "theirs"\n')
    locale = LocaleFile(Settings(data_dir=tmp_path), made)
    assert locale() == OwnerLocale()
    for zone, language in (("Europe/Rome", "de"), ("Asia/Tokyo", None), ("UTC", "en")):
        locale.keep(zone, language)
        os.utime(path, ns=(0, len(zone)))  # as long after as clocks tell apart
        assert locale() == OwnerLocale(zone, language)
    content = tomllib.loads(path.read_text())
    assert content["clients"] == [{"language": "theirs"}]
    assert content["note"] == "mine"
    path.write_text("half a li")
    assert locale() == OwnerLocale("UTC", "en")


def test_what_the_environment_sets_goes_before_what_is_kept(tmp_path: Path) -> None:
    made = write_configuration(tmp_path, "own_1")
    locale = LocaleFile(Settings(data_dir=tmp_path, time_zone="Asia/Tokyo"), made)
    locale.keep("Europe/Rome", "de")
    assert locale() == OwnerLocale("Asia/Tokyo", "de", frozenset({"time_zone"}))
