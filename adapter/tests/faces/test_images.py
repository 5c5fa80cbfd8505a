import pytest

from pdpp_mcp_server.faces.images import file_in, image_type


@pytest.mark.parametrize(
    ("begin", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVE", None),
        (b"<html>", None),
        (b"", None),
    ],
)
def test_an_image_is_known_by_how_its_bytes_begin(begin: bytes, kind: str | None) -> None:
    assert image_type(begin) == kind


def test_a_small_image_goes_before_other_files() -> None:
    files = {
        "letter": {"blob_id": "b1", "mime_type": "application/pdf", "size_bytes": 9},
        "large": {"blob_id": "b2", "mime_type": "image/png", "size_bytes": 30_001},
        "small": {"blob_id": "b3", "mime_type": "image/png", "size_bytes": 30_000},
    }
    chosen = file_in(files)
    assert chosen is not None
    assert chosen.name == "small"
    del files["small"]
    first = file_in(files)
    assert first is not None
    assert first.name == "letter"
    assert file_in({"text": "words"}) is None
