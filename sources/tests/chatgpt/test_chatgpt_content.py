import pytest

from pdpp_kernel.source_item import Data
from pdpp_sources.chatgpt import asset_pointers, thinking_of, unknown_parts, words_of

POINTER = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"content_type": "text", "parts": ["one", "", "two"]}, "one\n\ntwo"),
        ({"content_type": "text", "parts": [None, 3, {"text": "three"}]}, "three"),
        ({"content_type": "multimodal_text", "parts": [POINTER, "see"]}, "see"),
        ({"content_type": "code", "language": "python", "text": "1 + 1"}, "```python\n1 + 1\n```"),
        ({"content_type": "execution_output", "text": "2"}, "2"),
        ({"content_type": "tether_quote", "title": "a", "text": "quoted"}, "quoted"),
        (
            {
                "content_type": "user_editable_context",
                "user_profile": "Ada",
                "user_instructions": "x",
            },
            "Ada\n\nx",
        ),
        ({"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}]}, None),
        ({"content_type": "reasoning_recap", "content": "Thought for 3s"}, None),
        ({"content_type": "of the future", "parts": ["kept"]}, "kept"),
        ({"content_type": "text", "parts": [""]}, None),
        ({}, None),
    ],
)
def test_every_kind_of_content_says_what_it_says(content: Data, words: str | None) -> None:
    assert words_of(content) == words


def test_thoughts_are_kept_apart() -> None:
    content: Data = {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}]}
    assert thinking_of(content) == "s\n\nc"
    assert thinking_of({"content_type": "reasoning_recap", "content": "3s"}) == "3s"
    assert thinking_of({"content_type": "text", "parts": ["no thought"]}) is None


def test_pictures_and_recordings_are_named() -> None:
    spoken = {"audio_asset_pointer": {"asset_pointer": "sediment://file_2"}}
    content: Data = {"parts": [POINTER, spoken, "words"]}
    assert [name for name, _ in asset_pointers(content)] == ["file-1", "file_2"]


def test_an_id_is_found_in_every_form_of_pointer() -> None:
    call: Data = {
        "content_type": "real_time_user_audio_video_asset_pointer",
        "video_container_asset_pointer": {"asset_pointer": "sediment://file_3"},
        "frames_asset_pointers": [{"asset_pointer": "sediment://5bd#file_4#p_0.png"}],
    }
    assert [name for name, _ in asset_pointers({"parts": [call]})] == ["file_3", "file_4"]


COUNTED: list[tuple[Data, int]] = [
    ({"content_type": "text", "parts": ["", None, {}]}, 0),
    ({"content_type": "thoughts", "thoughts": []}, 0),
    ({"content_type": "code", "language": "unknown", "text": ""}, 0),
    ({"content_type": "tether_browsing_display", "result": "", "tether_id": "t"}, 0),
    ({"content_type": "multimodal_text", "parts": [POINTER, {"content_type": "x", "y": 1}]}, 1),
    ({"content_type": "of the future", "payload": {"said": "something"}}, 1),
    ({"content_type": "real_time", "parts": [{"content_type": "x_asset_pointer", "a": 1}]}, 0),
    ({}, 0),
]


@pytest.mark.parametrize(("content", "count"), COUNTED)
def test_what_cannot_be_read_is_counted(content: Data, count: int) -> None:
    assert unknown_parts(content) == count
