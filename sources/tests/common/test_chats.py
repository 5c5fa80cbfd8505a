"""The streams that messengers declare alike."""

from __future__ import annotations

from pdpp_sources.common.chats import chat_messages, chat_name, in_chat, message_author
from pdpp_sources.common.declaration import moment, text

STREAM = chat_messages(
    "Messages",
    "What was written.",
    [
        *in_chat("channel"),
        moment("sent_at", "When", event=True),
        message_author("author", "Who wrote it"),
        text("text", "What it says"),
    ],
    chat="channel",
    traffic=("Who wrote when", ["sent_at", "author"]),
    parents={"author": ("people", "author_id")},
).render()


def test_a_message_hangs_together_with_its_channel_and_its_files() -> None:
    relations = {each["name"]: each["stream"] for each in STREAM["relationships"]}
    assert relations == {"files": "files", "channel": "channels", "author": "people"}


def test_the_view_of_traffic_has_no_words() -> None:
    (view,) = STREAM["views"]
    assert view["fields"] == ["id", "channel_id", "sent_at", "author"]


def test_a_channel_is_a_conversation_and_shown_by_its_name() -> None:
    channel = STREAM["schema"]["properties"]["channel_id"]
    assert (channel["x_pdpp_role"], channel["x_pdpp_label_field"]) == (
        "conversation",
        "channel_name",
    )
    assert "channel_id" in STREAM["schema"]["required"]
    (loose, _) = in_chat(required=False)
    assert not loose.required


def test_authors_and_names_of_chats_are_equal_whatever_their_case() -> None:
    author, name = message_author("author", "Who"), chat_name("Its name")
    assert author.schema["x_pdpp_role"] == "author"
    assert author.schema["x_pdpp_caseless"]
    assert name.schema["x_pdpp_caseless"]
