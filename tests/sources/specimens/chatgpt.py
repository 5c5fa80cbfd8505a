"""A small export: an export of ChatGPT, with something broken in it."""

from __future__ import annotations

from personal_server.domain.source_item import Data
from tests.sources.specimens.files import Files, as_json

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
                    "metadata": {"model_slug": "gpt-4o"},
                },
            },
        },
        "current_node": "a2",
        "conversation_id": "c-1",
    },
    {"title": "Without id", "mapping": {}, "current_node": None},
    {"title": "Empty", "create_time": 1700000200, "mapping": {}, "id": "c-2"},
]

FILES: Files = {
    "conversations.json": as_json(CHATGPT),
    "file-AbC123-loaf.png": b"\x89PNG",
    "chat.html": b"<html></html>",
    "user.json": b'{"id": "user-1"}',
}
