"""Real chat messages in the shape of a Slack export: people wrote the words, we the layout."""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from html import escape
from itertools import islice
from typing import Any

from bench.samples import CACHE, Package, Sample, unpacked

CHITCHAT = Package(
    "PyPI",
    "chitchat-dataset",
    "0.9.0",
    "7bf89f36645e2d5ec87d53370c8e851b5a688479c7beb7079cb4c87fc5acea3e",
    "MIT",
    is_wheel=True,
)
Message = dict[str, Any]
Conversation = tuple[str, list[Message]]


def workspace(conversations: int) -> Sample:
    """A channel for each of the first conversations of strangers who were paired to talk."""
    path = CACHE / f"chitchat-{conversations}.zip"
    if not path.exists():
        scratch = path.with_suffix(".part")
        with zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as archive:
            _write(archive, list(islice(said(), conversations)))
        scratch.replace(path)
    return Sample(path, CHITCHAT.title)


def said() -> Iterator[Conversation]:
    """All conversations: a name, and what was said in it."""
    file = unpacked(CHITCHAT) / "chitchat_dataset" / "dataset.json"
    for name, conversation in json.loads(file.read_bytes()).items():
        yield name, [message for turn in conversation["messages"] for message in turn]


def _write(archive: zipfile.ZipFile, conversations: list[Conversation]) -> None:
    senders = sorted({m["sender"] for _, messages in conversations for m in messages})
    people = {sender: f"U{number:06}" for number, sender in enumerate(senders)}
    users = [{"id": own, "profile": {"display_name": name[:8]}} for name, own in people.items()]
    channels = [{"id": f"C{n:06}", "name": name} for n, (name, _) in enumerate(conversations)]
    archive.writestr("users.json", json.dumps(users))
    archive.writestr("channels.json", json.dumps(channels))
    for name, messages in conversations:
        days: dict[str, list[Message]] = defaultdict(list)
        for number, message in enumerate(messages):
            days[message["timestamp"][:10]].append(_message(message, number, people))
        for day, listed in days.items():
            archive.writestr(f"{name}/{day}.json", json.dumps(listed))


def _message(message: Message, number: int, people: dict[str, str]) -> Message:
    seconds = int(datetime.fromisoformat(message["timestamp"]).timestamp())
    return {
        "type": "message",
        "user": people[message["sender"]],
        "text": escape(message["text"], quote=False),
        "ts": f"{seconds}.{number:06}",
    }
