"""A small export: a workspace of Slack, with something broken in it."""

from __future__ import annotations

from pdpp_kernel.source_item import Data
from sources.tests.specimens.files import Files, as_json

SLACK_USERS: list[Data] = [
    {"id": "U1", "name": "ada", "profile": {"display_name": "Ada", "email": "ada@example.org"}},
    {"id": "U2", "name": "byron", "deleted": True, "profile": {"real_name": "Ann Byron"}},
]


SLACK_DAY: list[Data] = [
    {
        "type": "message",
        "user": "U1",
        "ts": "1700000000.000100",
        "text": "Hi <@U2>, see <https://example.org|the plan> &amp; <#C1|general>",
        "reactions": [{"name": "tada", "users": ["U2"], "count": 1}],
        "files": [
            {
                "id": "F1",
                "name": "plan.pdf",
                "mimetype": "application/pdf",
                "size": 9,
                "url_private": "https://files.example.org/F1/plan.pdf?t=secret",
            }
        ],
        "reply_count": 1,
        "thread_ts": "1700000000.000100",
    },
    {
        "type": "message",
        "subtype": "thread_broadcast",
        "user": "U2",
        "ts": "1700000060.000200",
        "thread_ts": "1700000000.000100",
        "text": "Fine",
        "edited": {"user": "U2", "ts": "1700000090.000000"},
    },
    {"type": "something_new", "payload": [1]},
    {"type": "message", "subtype": "bot_message", "username": "robot", "ts": "1700000061.000000"},
]

FILES: Files = {
    "Workspace/users.json": as_json(SLACK_USERS),
    "Workspace/channels.json": as_json([{"id": "C1", "name": "general", "members": ["U1"]}]),
    "Workspace/dms.json": as_json([{"id": "D1", "created": 1690000000, "members": ["U1"]}]),
    "Workspace/general/2023-11-14.json": as_json(SLACK_DAY),
    "Workspace/general/2023-11-15.json": b"[]",
    "Workspace/D1/2023-11-14.json": as_json(SLACK_DAY[1:2]),
}
