"""Importing from folders of this machine: listed, read where it lies, and only at this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from personal_server.app.uploads import import_folders_of
from personal_server.collecting.import_folders import ImportFolders
from personal_server.collecting.uploads import Uploads, UploadState
from personal_server.settings import Settings, from_env
from server.tests.console.browsing import Browser, marked, words
from server.tests.console.household import Household
from server.tests.console.uploads.test_sending import ended, prints

ROOT = "/owner/uploads"
FOLDERS = f"{ROOT}/folders"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "Downloads"
    (made / "Takeout" / "Mail").mkdir(parents=True)
    (made / "holiday.mbox").write_bytes(b"From x")
    (made / "Takeout" / "Mail" / "all.mbox").write_bytes(b"From y")
    (tmp_path / "secret.mbox").write_bytes(b"From z")
    (made / "link.mbox").symlink_to(tmp_path / "secret.mbox")
    return made


class Commands:
    """What would import, and what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[list[Path], Path | None]] = []

    def __call__(
        self, paths: Sequence[Path], within: Path | None, account: str | None
    ) -> Sequence[str]:
        self.told.append((list(paths), within))
        return prints(paths, within, account)


@pytest.fixture
def commands() -> Commands:
    return Commands()


@pytest.fixture
def uploads(house: Household, tmp_path: Path, folder: Path, commands: Commands) -> Uploads:
    made = Uploads(tmp_path / "uploads", 1_000, commands, {}, house.clock, house.random_bytes)
    house.uploads = made
    house.folders = ImportFolders((folder, tmp_path / "gone"))
    house.recognized = lambda listing: {
        each.name: "E-mail" for each in listing.entries if not each.is_folder
    }
    house.app = house.console()
    return made


@pytest.fixture
def owner(house: Household, uploads: Uploads) -> Browser:
    del uploads
    return house.signed_in()


def pick(owner: Browser, path: str, number: str = "0") -> tuple[int, str]:
    secret = dict(owner.get(f"{ROOT}").form(f"{ROOT}/form"))["_csrf"]
    page = owner.post(FOLDERS, [("_csrf", secret), ("folder", number), ("path", path)])
    return page.status, page.headers.get("location", "").rpartition("/")[2]


def test_what_lies_there_is_listed_with_what_it_is(owner: Browser) -> None:
    assert f'href="{FOLDERS}"' in owner.get(ROOT).text
    page = owner.get(FOLDERS)
    assert "holiday.mbox E-mail" in words(page)
    assert "Takeout" in words(page)
    assert len(marked(page, "kind")) == 2
    assert len(marked(page, "problem")) == 1
    assert "secret" not in page.text
    assert "link.mbox" not in page.text
    below = owner.get(f"{FOLDERS}?folder=0&path=Takeout/Mail")
    assert "all.mbox" in words(below)
    assert marked(below, "whole-folder")


@pytest.mark.parametrize("folder", ["7", "-1", "x", "\u00b2", "9" * 30])
def test_a_folder_that_nobody_named_is_not_found(owner: Browser, folder: str) -> None:
    assert owner.get(f"{FOLDERS}?folder={quote(folder)}").status == 404


def test_a_file_and_a_folder_are_read_where_they_lie(
    owner: Browser, uploads: Uploads, commands: Commands, folder: Path
) -> None:
    for path in ("holiday.mbox", "Takeout"):
        status, upload_id = pick(owner, path)
        assert status == 303
        assert ended(uploads, upload_id) is UploadState.IMPORTED
        assert commands.told[-1] == ([folder / path], folder)
        page = owner.get(f"{ROOT}/{upload_id}")
        assert str(folder / path) in words(page)
        assert owner.submit(page, f"{ROOT}/{upload_id}/remove").status == 303
        assert (folder / path).exists()
    assert (folder / "holiday.mbox").read_bytes() == b"From x"


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("../secret.mbox", "0"),
        ("link.mbox", "0"),
        ("Takeout/../../secret.mbox", "0"),
        ("", "0"),
        ("holiday.mbox", "2"),
        ("holiday.mbox", "-1"),
        ("holiday.mbox", "9" * 400),
    ],
)
def test_nothing_else_is_read(
    owner: Browser, uploads: Uploads, commands: Commands, path: str, number: str
) -> None:
    assert pick(owner, path, number)[0] == 404
    assert owner.get(f"{FOLDERS}?folder={number}&path={path or '..'}").status == 404
    assert uploads.each() == []
    assert commands.told == []


def test_what_is_picked_twice_is_one_until_it_was_read(
    owner: Browser, uploads: Uploads, folder: Path
) -> None:
    first = uploads.take(folder / "holiday.mbox", folder, 6, "m")
    assert uploads.take(folder / "holiday.mbox", folder, 6, "m") == first
    assert uploads.take(folder / "holiday.mbox", folder, 6, "later") != first
    assert len(uploads.each()) == 2
    assert owner.get(ROOT).status == 200


def test_it_is_there_without_uploads_and_they_are_there_without_it(
    house: Household, uploads: Uploads
) -> None:
    house.uploads = replace(uploads, quota_bytes=0)
    house.app = house.console()
    owner = house.signed_in()
    assert owner.get(FOLDERS).status == 200
    assert f'action="{ROOT}/form"' not in owner.get(ROOT).text
    house.uploads, house.folders = uploads, ImportFolders()
    house.app = house.console()
    owner = house.signed_in()
    assert owner.get(FOLDERS).status == 404
    assert FOLDERS not in owner.get(ROOT).text


def test_nobody_but_the_owner_picks(owner: Browser, house: Household, uploads: Uploads) -> None:
    fields = [("folder", "0"), ("path", "holiday.mbox")]
    assert owner.post(FOLDERS, fields).status == 403
    assert house.browser().post(FOLDERS, fields, accept="application/json").status == 401
    assert house.browser().get(FOLDERS, accept="application/json").status == 401
    assert uploads.each() == []


@pytest.mark.parametrize(
    ("environment", "is_on"),
    [
        ({}, True),
        ({"PDPP_PUBLIC_URL": "http://localhost:7662"}, True),
        ({"PDPP_PUBLIC_URL": "https://me.example"}, False),
        ({"PDPP_BIND": "0.0.0.0:7662"}, False),
        (
            {
                "PDPP_PUBLIC_URL": "forwarded",
                "PDPP_TRUSTED_PROXIES": "127.0.0.1/32",
                "PDPP_TRUSTED_HOSTS": "me.example",
            },
            False,
        ),
    ],
)
def test_over_a_network_there_are_no_folders(
    environment: dict[str, str], is_on: bool, tmp_path: Path
) -> None:
    settings = from_env({"PDPP_IMPORT_FOLDERS": str(tmp_path), **environment})
    assert bool(import_folders_of(settings).folders) is is_on
    assert import_folders_of(Settings()).folders == ()
