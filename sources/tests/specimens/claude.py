"""A small export: an export of Claude, with something broken in it."""

from __future__ import annotations

from pdpp_kernel.source_item import Data
from sources.tests.specimens.files import Files, as_json

CLAUDE: list[Data] = [
    {
        "uuid": "c-1",
        "name": "Garden",
        "created_at": "2024-05-01T10:00:00.123456Z",
        "updated_at": "2024-05-01T10:05:00Z",
        "chat_messages": [
            {
                "uuid": "m-1",
                "sender": "human",
                "text": "When to sow beans?",
                "content": [{"type": "text", "text": "When to sow beans?"}],
                "created_at": "2024-05-01T10:00:01Z",
                "attachments": [
                    {"file_name": "bed.txt", "file_size": 9, "extracted_content": "South bed"}
                ],
                "files": [{"file_name": "photo.jpg"}],
            },
            {
                "uuid": "m-2",
                "sender": "assistant",
                "text": "",
                "content": [
                    {"type": "thinking", "thinking": "Frost ends in May."},
                    {"type": "tool_use", "name": "web_search", "input": {}},
                    {
                        "type": "tool_result",
                        "name": "web_search",
                        "content": [
                            {"type": "knowledge", "title": "Frost", "url": "https://example.org/f"},
                            {"type": "text", "text": "Last frost: 12 May"},
                        ],
                    },
                    {"type": "something_new", "payload": 1},
                    {"type": "token_budget"},
                    {
                        "type": "tool_use",
                        "name": "artifacts",
                        "input": {
                            "id": "calendar",
                            "command": "create",
                            "title": "Sowing calendar",
                            "type": "text/markdown",
                            "content": "May: beans",
                        },
                    },
                    {
                        "type": "text",
                        "text": "After the last frost.",
                        "citations": [{"details": {"url": "https://example.org/g"}}],
                    },
                ],
                "created_at": "2024-05-01T10:00:09Z",
                "attachments": [],
                "files": [],
            },
        ],
    }
]


CLAUDE_PROJECT: Data = {
    "uuid": "p-1",
    "name": "Allotment",
    "description": "Plans",
    "prompt_template": "Be brief",
    "created_at": "2024-04-01T00:00:00Z",
    "docs": [{"uuid": "d-1", "filename": "plan.md", "content": "# Plan"}],
}


CLAUDE_MEMORIES: list[Data] = [
    {
        "conversations_memory": "Grows beans.",
        "project_memories": {"p-1": "South bed."},
        "memory_files": [{"path": "/soil.md", "content": "Heavy clay."}],
    }
]


CLAUDE_DESIGN: Data = {
    "uuid": "x-1",
    "project": {"uuid": "y-1", "name": "Labels"},
    "created_at": "2026-02-01T09:00:00Z",
    "messages": [
        {"role": "user", "content": {"content": "Labels for beds", "authorAccountUuid": "u-1"}},
        {
            "role": "assistant",
            "content": {
                "contentBlocks": [
                    {"type": "thinking", "text": "Big letters."},
                    {"type": "tool_call", "toolCall": {"name": "draw", "input": {"size": 3}}},
                    {"type": "text", "text": "Here they are."},
                ]
            },
        },
    ],
}

FILES: Files = {
    "conversations.json": as_json(CLAUDE),
    "projects/p-1.json": as_json(CLAUDE_PROJECT),
    "memories.json": as_json(CLAUDE_MEMORIES),
    "design_chats/x-1.json": as_json(CLAUDE_DESIGN),
    "users.json": b'[{"uuid": "u-1", "full_name": "Ada"}]',
}
