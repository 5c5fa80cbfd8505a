"""Files of one shape are one stream, and lists in their rows are streams beside it."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Json, SourceRecord
from sources.tests.reading import read_path


def streams(path: Path) -> dict[str, list[dict[str, Json]]]:
    found: dict[str, list[dict[str, Json]]] = {}
    for _, item in read_path(path):
        if isinstance(item, SourceRecord):
            found.setdefault(item.stream, []).append(item.data)
    return found


def files(folder: Path, contents: Mapping[str, object]) -> Path:
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def test_the_days_of_a_watch_are_one_stream_with_the_file_s_name(tmp_path: Path) -> None:
    days = {
        f"heart_rate-2023-01-{day:02}.json": [
            {"dateTime": f"01/{day:02}/23 10:00:00", "value": {"bpm": 60 + day}}
        ]
        for day in range(1, 31)
    }
    steps = {"steps-2023-01-01.json": [{"dateTime": "01/01/23 10:00:00", "value": "12"}]}
    found = streams(files(tmp_path / "Global Export Data", {**days, **steps}))
    assert {name: len(rows) for name, rows in found.items()} == {"heart_rate": 30, "steps": 1}
    assert found["heart_rate"][1]["file"] == "heart_rate-2023-01-02"
    assert found["heart_rate"][1]["dateTime"] == "2023-01-02T10:00:00Z"


def test_lists_in_rows_are_streams_of_their_own(tmp_path: Path) -> None:
    playlists: dict[str, object] = {
        "playlists": [
            {"name": "P", "items": [{"track": "a", "added": "2024-01-01"}, {"track": "b"}]},
            {"name": "Q", "items": []},
        ]
    }
    found = streams(files(tmp_path / "music", {"Playlist1.json": playlists}))
    parent = next(row for row in found["playlists"] if row["name"] == "P")
    assert "items" not in parent
    assert [(r["playlists_id"], r["number"], r["track"]) for r in found["playlists_items"]] == [
        (parent["id"], 1, "a"),
        (parent["id"], 2, "b"),
    ]


def test_an_account_s_folder_of_json_gives_a_stream_for_each_kind(tmp_path: Path) -> None:
    found = streams(
        files(
            tmp_path / "Spotify Account Data",
            {
                "Playlist1.json": {"playlists": [{"name": "P", "items": [{"track": "t"}]}]},
                "StreamingHistory_music_0.json": [{"endTime": "2024-05-06 18:43", "msPlayed": 21}],
                "StreamingHistory_music_1.json": [{"endTime": "2024-05-07 18:43", "msPlayed": 22}],
                "Userdata.json": {"username": "u", "email": "a@example.org"},
                "YourLibrary.json": {"tracks": [{"artist": "A", "uri": "u"}], "albums": []},
            },
        )
    )
    assert {name: len(rows) for name, rows in found.items()} == {
        "playlists": 1,
        "playlists_items": 1,
        "streaminghistory_music": 2,
        "userdata": 1,
        "tracks": 1,
    }


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (
            {"ann": {"age": 1, "city": "x"}, "bo": {"age": 2, "city": "y"}},
            {"a": [{"name": "ann", "age": 1, "city": "x"}, {"name": "bo", "age": 2, "city": "y"}]},
        ),
        (
            {"profile": {"nick": "ann"}, "settings": {"dark": True, "size": 2}},
            {"profile": [{"nick": "ann"}], "settings": [{"dark": True, "size": 2}]},
        ),
        ({"nick": "ann", "place": {"x": 1}}, {"a": [{"nick": "ann", "place": {"x": 1}}]}),
    ],
)
def test_an_object_is_not_one_row_that_holds_everything(
    content: object, rows: dict[str, list[dict[str, Json]]], tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(content))
    found = streams(tmp_path / "a.json")
    assert {
        name: [{k: v for k, v in row.items() if k != "id"} for row in each]
        for name, each in found.items()
    } == rows


def test_people_with_a_file_each_are_one_stream(tmp_path: Path) -> None:
    contents = {f"{name}.json": [{"said": name, "n": 1}] for name in ("ann", "bo", "cy")}
    found = streams(files(tmp_path / "people", dict(contents)))
    assert sorted((row["file"], row["said"]) for row in found["people"]) == [
        ("ann", "ann"),
        ("bo", "bo"),
        ("cy", "cy"),
    ]


def test_files_of_one_name_and_other_shapes_are_streams_apart(tmp_path: Path) -> None:
    contents = {"a-2023-01-01.json": [{"x": 1, "y": 2}], "a-2023-01-02.json": [{"p": 1, "q": 2}]}
    found = streams(files(tmp_path / "mixed", dict(contents)))
    assert len(found) == 2
