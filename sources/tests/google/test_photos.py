from pathlib import Path

import pytest

from pdpp_sources.google.photos import files_of_photos
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_folder, as_json, as_zip
from sources.tests.specimens.google import ALBUM, LOAF, sidecar

# How Google cuts the names of its files, as people who looked for their pictures wrote down.
CUT = [
    ("IMG_1.jpg", "IMG_1.jpg.json"),
    ("IMG_1.HEIC", "IMG_1.HEIC.supplemental-metadata.json"),
    ("PXL_20241231_151646544.MP.jpg", "PXL_20241231_151646544.MP.jpg.supplemental-met.json"),
    ("IMG_1(1).jpg", "IMG_1.jpg(1).json"),
    ("A(1)B(2).jpg", "A(1)B.jpg(2).json"),
    ("tree (2).jpg", "tree (2).jpg.supplemental-metadata.json"),
    ("IMG_1(3).jpg", "IMG_1.jpg.supplemental-metadata(3).json"),
    (
        "PXL_20240827_094331806.PORTRAIT(1).jpg",
        "PXL_20240827_094331806.PORTRAIT.jpg.supplement(1).json",
    ),
    (
        "PXL_20240506_142610305.LONG_EXPOSURE-01.COVER.jpg",
        "PXL_20240506_142610305.LONG_EXPOSURE-01.COVER..json",
    ),
    (
        "21345678901234567890123456789012345678901234567.png",
        "2134567890123456789012345678901234567890123456.json",
    ),
    ("Photo.jpg", "Photo.json"),
]


@pytest.mark.parametrize(("file", "about"), CUT)
def test_a_picture_is_found_by_the_cut_name_of_what_is_known_of_it(file: str, about: str) -> None:
    others = ["IMG_2.jpg", "IMG_1.png", "tree (3).jpg", "zzz.jpg"]
    assert files_of_photos([about], [*others, file])[about] == [(file, "original")]


def test_a_changed_copy_and_a_short_film_go_with_their_picture() -> None:
    about = ["a.jpg.json", "a.jpg.supplemental-metadata(1).json", "b.HEIC.json"]
    files = ["a.jpg", "a-edited.jpg", "a(1).jpg", "a-bearbeitet(1).jpg", "b.HEIC", "b.MP4", "c.mp4"]
    assert files_of_photos(about, files) == {
        "a.jpg.json": [("a.jpg", "original"), ("a-edited.jpg", "edited")],
        "a.jpg.supplemental-metadata(1).json": [
            ("a(1).jpg", "original"),
            ("a-bearbeitet(1).jpg", "edited"),
        ],
        "b.HEIC.json": [("b.HEIC", "original"), ("b.MP4", "motion")],
    }


def test_no_picture_is_given_to_two() -> None:
    about = ["a.jpg.json", "a.jpg.supplemental-metadata.json", "a.json"]
    found = files_of_photos(about, ["a.jpg"])
    assert sorted(map(len, found.values())) == [0, 0, 1]


def test_versions_of_a_picture_are_records_beside_each_other(tmp_path: Path) -> None:
    folder = "Takeout/Google Photos/Photos from 2024"
    files = {
        f"{folder}/loaf.jpg.json": as_json(LOAF),
        f"{folder}/loaf.jpg": b"\xff\xd8loaf",
        f"{folder}/loaf-edited.jpg": b"\xff\xd8crust",
        f"{folder}/loaf.mp4": b"film",
        f"{folder}/nobody.jpg": b"\xff\xd8",
    }
    items = read_path(as_zip(files, tmp_path / "takeout.zip"))
    photos = records_of(items, "photos")
    assert [(p["version"], p["filename"], p["size_bytes"]) for p in photos] == [
        ("original", "loaf.jpg", 6),
        ("edited", "loaf-edited.jpg", 7),
        ("motion", "loaf.mp4", 4),
    ]
    assert {p["people"][1] for p in photos} == {"Ann Byron"}
    assert not records_of(items, "album_photos")


def test_a_picture_in_two_albums_is_one_picture(tmp_path: Path) -> None:
    files = {
        f"Google Fotos/{folder}/{name}": body
        for folder in ("Bread", "Oven")
        for name, body in {
            "loaf.jpg.suppl.json": as_json(LOAF),
            "loaf.jpg": b"\xff\xd8loaf",
            "metadata.json": as_json({"albumData": ALBUM}),
        }.items()
    }
    items = read_path(as_zip(files, tmp_path / "takeout.zip"))
    albums = {album["id"]: album["folder"] for album in records_of(items, "albums")}
    (photo,) = records_of(items, "photos")
    links = records_of(items, "album_photos")
    assert {(albums[link["album_id"]], link["photo_id"]) for link in links} == {
        ("Bread", photo["id"]),
        ("Oven", photo["id"]),
    }
    assert skips_of(items) == ["duplicate"]


def test_an_album_without_its_files_finds_them_in_the_folder_of_the_year(tmp_path: Path) -> None:
    other = sidecar("loaf.jpg", "1600000000")
    files = {
        "Google Photos/Bread/loaf.jpg.json": as_json(LOAF),
        "Google Photos/Photos from 2020/loaf.jpg.json": as_json(other),
        "Google Photos/Photos from 2020/loaf.jpg": b"\xff\xd8old",
        "Google Photos/Photos from 2024/loaf.jpg.json": as_json(LOAF),
        "Google Photos/Photos from 2024/loaf.jpg": b"\xff\xd8loaf",
    }
    items = read_path(as_zip(files, tmp_path / "takeout.zip"))
    sizes = {p["description"]: p["blob_ref"]["size_bytes"] for p in records_of(items, "photos")}
    assert sizes == {"The first loaf": 6, None: 5}
    assert skips_of(items) == ["duplicate"]


def test_two_pictures_of_a_name_and_a_second_are_two(tmp_path: Path) -> None:
    first = {name: value for name, value in sidecar("a.jpg", "1709290000").items() if name != "url"}
    files = {
        "P/a.jpg.json": as_json(first),
        "P/a.jpg(1).json": as_json(first),
        "P/a.jpg": b"\xff\xd81",
        "P/a(1).jpg": b"\xff\xd82",
    }
    items = read_path(as_zip(files, tmp_path / "takeout.zip"))
    shas = {photo["blob_ref"]["sha256"] for photo in records_of(items, "photos")}
    assert len(shas) == 2


def test_an_album_that_knows_no_more_than_its_title_is_one(tmp_path: Path) -> None:
    photo = {"title": "a.jpg", "photoTakenTime": {"timestamp": "1679759460"}}
    root = "Takeout/Google Photos"
    files = {
        f"{root}/Basement Office/metadata.json": as_json({"title": "Basement Office"}),
        f"{root}/Basement Office/a.jpg": b"\xff\xd8",
        f"{root}/Basement Office/a.jpg.supplemental-metadata.json": as_json(photo),
        f"{root}/Photos from 2023/a.jpg": b"\xff\xd8",
        f"{root}/Photos from 2023/a.jpg.supplemental-metadata.json": as_json(photo),
        "elsewhere/settings.json": as_json({"title": "no album"}),
    }
    items = read_path(as_folder(files, tmp_path))
    assert [each["title"] for each in records_of(items, "albums")] == ["Basement Office"]
    assert len(records_of(items, "photos")) == len(records_of(items, "album_photos")) == 1
