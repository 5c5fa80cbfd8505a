"""A small export: an export of ChatGPT, with something broken in it."""

from __future__ import annotations

from pdpp_kernel.source_item import Data
from sources.tests.specimens.files import Files, as_json

CHATGPT: list[Data] = [
    {
        "title": "Sourdough",
        "create_time": 1700000000.5,
        "update_time": 1700000100.25,
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["q"]},
            "q": {
                "id": "q",
                "parent": "root",
                "children": ["a1", "a2"],
                "message": {
                    "id": "q",
                    "author": {"role": "user", "name": None, "metadata": {}},
                    "create_time": 1700000000.5,
                    "content": {
                        "content_type": "multimodal_text",
                        "parts": [
                            {
                                "content_type": "image_asset_pointer",
                                "asset_pointer": "file-service://file-AbC123",
                                "size_bytes": 4,
                            },
                            "Why is my loaf flat?",
                        ],
                    },
                    "metadata": {
                        "attachments": [
                            {"id": "file-AbC123", "name": "loaf.png", "mimeType": "image/png"},
                            {"id": "file-Gone99", "name": "gone.pdf", "size": 12},
                        ]
                    },
                },
            },
            "a1": {
                "id": "a1",
                "parent": "q",
                "children": [],
                "message": {
                    "id": "a1",
                    "author": {"role": "assistant"},
                    "create_time": None,
                    "content": {"content_type": "text", "parts": ["Replaced answer"]},
                },
            },
            "a2": {
                "id": "a2",
                "parent": "q",
                "children": [],
                "message": {
                    "id": "a2",
                    "author": {"role": "assistant"},
                    "create_time": 1700000050,
                    "content": {"content_type": "text", "parts": ["Too little \ud83d heat."]},
                    "metadata": {
                        "model_slug": "gpt-4o",
                        "content_references": [
                            {"items": [{"title": "Ovens", "url": "https://example.org/ovens"}]}
                        ],
                    },
                },
            },
            "s1": {
                "id": "s1",
                "parent": "a2",
                "children": [],
                "message": {
                    "id": "s1",
                    "author": {"role": "user"},
                    "create_time": 1700000060,
                    "content": {
                        "content_type": "multimodal_text",
                        "parts": [
                            {"content_type": "audio_transcription", "text": "And how hot?"},
                            {
                                "content_type": "real_time_user_audio_video_asset_pointer",
                                "audio_asset_pointer": {
                                    "asset_pointer": "sediment://file_0000beef",
                                    "format": "wav",
                                    "size_bytes": 4,
                                },
                                "frames_asset_pointers": [],
                                "video_container_asset_pointer": None,
                            },
                            {"content_type": "hologram", "payload": "of a loaf"},
                        ],
                    },
                },
            },
            "t1": {
                "id": "t1",
                "parent": "s1",
                "children": [],
                "message": {
                    "id": "t1",
                    "author": {"role": "tool", "name": "dalle.text2im"},
                    "content": {
                        "content_type": "multimodal_text",
                        "parts": [
                            {
                                "content_type": "image_asset_pointer",
                                "asset_pointer": "sediment://file_0000cafe",
                                "size_bytes": 4,
                                "metadata": {"dalle": {"prompt": "a loaf in a hot oven"}},
                            }
                        ],
                    },
                },
            },
            "n1": {
                "id": "n1",
                "parent": "t1",
                "children": [],
                "message": {
                    "id": "n1",
                    "author": {"role": "assistant"},
                    "recipient": "web.run",
                    "content": {"content_type": "new", "payload": {"heat": 250}},
                },
            },
        },
        "current_node": "t1",
        "conversation_id": "c-1",
    },
    {"title": "Without id", "mapping": {}, "current_node": None},
    {"title": "Empty", "create_time": 1700000200, "mapping": {}, "id": "c-2"},
]

FILES: Files = {
    "conversations.json": as_json(CHATGPT),
    "file-AbC123-loaf.png": b"\x89PNG",
    "c-1/audio/file_0000beef-1.wav": b"RIFF",
    "file_0000cafe.dat": b"\x89PNG",
    "conversation_asset_file_names.json": as_json({"file_0000cafe.dat": "oven.png"}),
    "shared_conversations.json": as_json(
        [{"id": "s-1", "conversation_id": "c-1", "title": "My loaf", "is_anonymous": True}]
    ),
    "message_feedback.json": as_json(
        [
            {
                "id": "f-1",
                "conversation_id": "c-1",
                "rating": "thumbsUp",
                "create_time": "2023-11-15T00:00:00.5+00:00",
                "content": '{"text": "It rose"}',
            }
        ]
    ),
    "group_chats.json": as_json(
        {"chats": [{"id": "g-1", "title": "Bakers", "participants": ["user-1", "user-2"]}]}
    ),
    "textdocs/d-1.json": as_json(
        {"id": "d-1", "title": "Plan", "content": "# Bread", "created_at": "2024-01-01T00:00:00Z"}
    ),
    "chat.html": b"<html></html>",
    "user.json": b'{"id": "user-1"}',
}
