"""Google Photos: what Google knows of each picture, in a file of JSON beside it, and the albums.

Names of those files are cut: of `IMG_0001.jpg` it is `IMG_0001.jpg.supplemental-metadata.json`,
`IMG_0001.jpg.suppl.json` or `IMG_0001.jpg.json`, at most 46 characters before `.json`. A second
picture of a name is `IMG_0001(1).jpg`, its facts `IMG_0001.jpg.supplemental-metadata(1).json`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from pdpp_kernel.source_item import Data, SourceItem, SourceRecord, stable_id
from pdpp_sources.common import json_values
from pdpp_sources.common.attachments import is_media, kind_of, with_file
from pdpp_sources.common.declaration import (
    Field,
    StreamForm,
    blob,
    flag,
    integer,
    key,
    moment,
    names,
    number,
    picture,
    place,
    plain,
    reference,
    sensitive,
    text,
    word,
)
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.text import one_line, or_none, printable

LONGEST_NAME = 46
_SUPPLEMENT = "supplemental-metadata"
_NUMBER = re.compile(r"\(\d{1,6}\)$")
# What Google writes behind the name of a picture that was edited, in the account's language.
_EDITED = re.compile(
    r"-(?:edited|bearbeitet|modifi[eé]|editad[oa]|modificat[oa]|bewerkt|edytowan[ey]|redigeret"
    r"|redigerad|redigert|muokattu|upraveno|düzenlendi|измененный|編集済み|已編輯|已修改|수정됨)"
    r"(\(\d{1,6}\))?$",
    re.IGNORECASE,
)
# Folders of all pictures of a year (until 2020: of a day), which are no albums.
_YEAR = re.compile(
    r"(?:photos? (?:from|de)|fotos? (?:von|de|da|dal|del)|foto's uit|foton från|bilder från"
    r"|bilder fra|billeder fra|zdjęcia z|fotky z|kuvat vuodelta|фото за) (?:19|20)\d\d"
    r"|(?:19|20)\d\d ?(?:年的照片|年的相片|年の写真|년의 사진)"
    r"|(?:19|20)\d\d-\d\d-\d\d(?: #\d+)?",
    re.IGNORECASE,
)
_MOTION = (".mp4", ".mov", ".mp", ".mv")


def _place() -> list[Field]:
    return [
        sensitive(number("latitude", "Degrees north")),
        sensitive(number("longitude", "Degrees east")),
    ]


PHOTOS = StreamForm(
    "photos",
    "Your pictures and films in Google Photos",
    "The pictures themselves, when and where they were taken, and who is on them.",
    [
        key(),
        moment("taken_at", "When it was taken, in UTC", event=True),
        moment("uploaded_at", "When Google got it, in UTC"),
        text("filename", "Name of the file", title=True),
        text("description", "What you wrote below it"),
        sensitive(names("people", "Who is on it, as you named them")),
        sensitive(text("shown", "All who are on it, to search in")),
        *place(),
        sensitive(number("altitude", "Meters above the sea")),
        word("version", "original, edited (its changed copy) or motion (its short film)"),
        word("origin", "How Google got it: mobile upload, web upload, partner sharing …"),
        word("device", "Kind of device it was uploaded from"),
        word("device_folder", "Folder on the device"),
        integer("view_count", "How often it was looked at", summed=True),
        names("comments", "What was said of it, each as name and words"),
        flag("is_favorite", "Whether it is a favourite"),
        flag("is_archived", "Whether it was archived"),
        flag("is_trashed", "Whether it lies in the trash"),
        plain("url", "Where it is on the web"),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        picture(blob()),
    ],
    time_field="taken_at",
    views={"moments": ("Names and times only", ["id", "taken_at", "filename"])},
    children={"albums": ("album_photos", "photo_id")},
    semantic=["description"],
)

ALBUMS = StreamForm(
    "albums",
    "Your albums in Google Photos",
    "Title, description and comments of each album.",
    [
        key(),
        moment("created_at", "When it was made, in UTC", event=True),
        text("title", "Title of the album", title=True),
        text("description", "What it says below"),
        word("access", "Who may see it, as Google names it"),
        word("folder", "Folder in the export"),
        names("notes", "Words and places written between its pictures"),
        names("comments", "What was said of it, each as name and words"),
        *_place(),
    ],
    time_field="created_at",
    children={"photos": ("album_photos", "album_id")},
)

ALBUM_PHOTOS = StreamForm(
    "album_photos",
    "Which pictures are in which album",
    "For every album its pictures.",
    [
        key(),
        reference("album_id", "The album", required=True),
        reference("photo_id", "The picture", required=True),
        moment("taken_at", "When it was taken, in UTC", event=True),
        text("filename", "Name of the file", title=True),
    ],
    time_field="taken_at",
    parents={"album": ("albums", "album_id"), "photo": ("photos", "photo_id")},
)


def photo_records(
    value: Data, member: ExportMember, files: Iterable[tuple[ExportMember, str]]
) -> Iterator[SourceItem]:
    """One picture in all its versions, with its place in an album. Raises: BadRecord."""
    folder = PurePosixPath(member.name).parent.name
    title, taken_seconds, own = identity(value)
    taken_at = _instant(value, "photoTakenTime") or _instant(value, "creationTime")
    own = own or _described(PurePosixPath(member.name).name)[1]
    photo_id = stable_id("photo", title, taken_seconds, own)
    event: Data = {"taken_at": taken_at} if taken_at else {}
    facts = event | _facts(value)
    photo_files = list(files)
    if all(version != "original" for _, version in photo_files):
        data = facts | {"id": photo_id, "filename": title, "version": "original"}
        yield from _with_bytes(data, None, member.offset)
    for file, version in photo_files:
        is_first = version == "original"
        name = title if is_first else one_line(printable(PurePosixPath(file.name).name))
        own_id = photo_id if is_first else stable_id("photo", photo_id, version)
        data = facts | {"id": own_id, "filename": name, "version": version}
        yield from _with_bytes(data, file, member.offset)
    if not _YEAR.fullmatch(folder):
        album = _album_id(member)
        link = {"id": stable_id("in", album, photo_id), "album_id": album, "photo_id": photo_id}
        yield SourceRecord("album_photos", link | event | {"filename": title}, member.offset)


def identity(value: Data) -> tuple[str, str | None, str | None]:
    """What is equal of one picture in all its albums. Raises: BadRecord."""
    taken_at = json_values.line(json_values.inner(value, "photoTakenTime"), "timestamp")
    return json_values.required(value, "title"), taken_at, json_values.line(value, "url")


def _with_bytes(data: Data, file: ExportMember | None, position: int) -> Iterator[SourceItem]:
    data |= {"mime_type": kind_of(data["filename"]), "size_bytes": file and file.size_bytes}
    yield from with_file(SourceRecord("photos", data, position), file)


def _facts(value: Data) -> Data:
    people = json_values.objects(value, "people")
    names = list(filter(None, (json_values.line(person, "name") for person in people)))
    origins = json_values.inner(value, "googlePhotosOrigin")
    upload = json_values.inner(origins, "mobileUpload")
    origin = next(iter(sorted(origins)), None)
    return {
        "uploaded_at": _instant(value, "creationTime"),
        "description": json_values.text(value, "description"),
        "people": names,
        "shown": or_none(" ".join(names)),
        **_placed(value, "altitude"),
        "origin": or_none(_CAPITAL.sub(" ", origin).lower()) if origin else None,
        "device": json_values.line(upload, "deviceType"),
        "device_folder": json_values.line(
            json_values.inner(upload, "deviceFolder"), "localFolderName"
        ),
        "view_count": json_values.whole(value, "imageViews"),
        "comments": _comments(value),
        "is_favorite": json_values.truth(value, "favorited"),
        "is_archived": json_values.truth(value, "archived"),
        "is_trashed": json_values.truth(value, "trashed"),
        "url": json_values.line(value, "url"),
    }


_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def album_records(value: Data, member: ExportMember) -> Iterator[SourceItem]:
    """One album; until 2019 its facts stood one level further in."""
    value = json_values.inner(value, "albumData") or value
    created_at = _instant(value, "date")
    data: Data = {
        "id": _album_id(member),
        **({"created_at": created_at} if created_at else {}),
        "title": json_values.line(value, "title"),
        "description": json_values.text(value, "description"),
        "access": json_values.line(value, "access"),
        "folder": one_line(printable(PurePosixPath(member.name).parent.name)),
        "notes": list(_enrichments(value)),
        "comments": _comments(value),
        **_placed(value),
    }
    yield SourceRecord("albums", data, member.offset)


def _album_id(member: ExportMember) -> str:
    """Of whatever lies in its folder."""
    return stable_id("album", PurePosixPath(member.name).parent.name)


def _enrichments(value: Data) -> Iterator[str]:
    """What was written between the pictures: words, places, ways."""
    for enrichment in json_values.objects(value, "enrichments"):
        words = json_values.line(json_values.inner(enrichment, "narrativeEnrichment"), "text")
        locations = json_values.objects(
            json_values.inner(enrichment, "locationEnrichment"), "location"
        )
        names = (json_values.line(location, "name") for location in locations)
        yield from filter(None, [words, *names])


def _comments(value: Data) -> list[str]:
    comments: list[str] = []
    for comment in json_values.objects(value, "sharedAlbumComments"):
        words = json_values.line(comment, "text") or (
            "♥" if json_values.truth(comment, "liked") else None
        )
        writer = json_values.line(comment, "contentOwnerName") or ""
        comments += [f"{writer}: {words}"] if words else []
    return comments


def _placed(value: Data, *further: str) -> Data:
    """Where it was: as set in Google Photos, else as the camera wrote; 0, 0 is nowhere."""
    position: Data = {}
    for name in ("geoData", "geoDataExif"):
        coordinates = json_values.inner(value, name)
        latitude, longitude = (
            json_values.decimal(coordinates, n) for n in ("latitude", "longitude")
        )
        if (latitude or longitude) and abs(latitude or 0) <= 90 and abs(longitude or 0) <= 180:
            position = coordinates
            break
    return {
        name: json_values.decimal(position, name) for name in ("latitude", "longitude", *further)
    }


def _instant(value: Data, name: str) -> str | None:
    """When it was; nothing where Google says 1970 to the second."""
    seconds = json_values.whole(json_values.inner(value, name), "timestamp")
    return json_values.instant({"at": seconds}, "at") if seconds else None


def _described(name: str) -> tuple[str, str]:
    """The name, or its beginning, of the file that a file of facts is about; and its number."""
    stem = re.sub(r"\.json$", "", name, flags=re.IGNORECASE)
    counted = _NUMBER.search(stem)
    mark = counted.group() if counted else ""
    base = stem.removesuffix(mark)
    front, dot, ending = base.rpartition(".")
    if dot and _SUPPLEMENT.startswith(ending):
        return front, mark
    return (base, mark) if PurePosixPath(base).suffix or not mark else (stem, "")


def files_of_photos(
    sidecars: Iterable[str], neighbours: Iterable[str]
) -> Mapping[str, list[tuple[str, str]]]:
    """Which files of a folder each file of facts is about, with what version each file is."""
    media = sorted(name for name in neighbours if is_media(name) or name.lower().endswith(_MOTION))
    free = dict.fromkeys(media)
    versions_of: dict[str, list[tuple[str, str]]] = {}
    stems: dict[str, str] = {}
    cut: list[tuple[str, str, str]] = []
    for sidecar in sorted(sidecars):
        base, mark = _described(sidecar)
        path = PurePosixPath(base)
        name = f"{path.stem}{mark}{path.suffix}"
        versions_of[sidecar] = []
        if name in free:
            del free[name]
            versions_of[sidecar].append((name, "original"))
            stems.setdefault(PurePosixPath(name).stem, sidecar)
        else:
            cut.append((sidecar, base, mark))
            stems.setdefault(f"{path.stem}{mark}" if path.suffix else name, sidecar)
    by_stem = {PurePosixPath(name).stem: name for name in media}
    for sidecar, base, mark in cut:
        alike = [by_stem.get(f"{base}{mark}", "")]
        if len(PurePosixPath(sidecar).stem) >= LONGEST_NAME:
            alike += _beginning(media, base)
        ends = (PurePosixPath(name).stem.endswith(mark) for name in alike)
        fit = (name for name, is_it in zip(alike, ends, strict=True) if is_it and name in free)
        if name := next(fit, None):
            del free[name]
            versions_of[sidecar].append((name, "original"))
            stems.setdefault(PurePosixPath(name).stem, sidecar)
    for name in free:
        path = PurePosixPath(name)
        stem, version = _EDITED.sub(lambda at: at.group(1) or "", path.stem), "edited"
        if stem == path.stem:
            version = "motion"
        is_motion = path.suffix.lower() in _MOTION
        if stem in stems and (version == "edited" or is_motion):
            versions = {version for _, version in versions_of[stems[stem]]}
            if version not in versions:
                versions_of[stems[stem]].append((name, version))
    return versions_of


def _beginning(media: list[str], base: str) -> Iterator[str]:
    for name in media[bisect_left(media, base) :]:
        if not name.startswith(base):
            return
        yield name
