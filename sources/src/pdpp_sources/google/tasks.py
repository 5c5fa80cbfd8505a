"""Google Tasks: all lists in one file of JSON, as its interface for programs answers."""

from __future__ import annotations

from collections.abc import Iterator

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_sources.common import json_values
from pdpp_sources.common.declaration import (
    StreamForm,
    day,
    flag,
    key,
    moment,
    names,
    plain,
    reference,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.json_stream import Element

TASK_LISTS = StreamForm(
    "task_lists",
    "Your lists in Google Tasks",
    "Name of each list.",
    [
        key(),
        text("title", "Name of the list", title=True),
        moment("updated_at", "When it last changed, in UTC", event=True),
    ],
    time_field="updated_at",
    children={"tasks": ("tasks", "list_id")},
)

TASKS = StreamForm(
    "tasks",
    "Your tasks in Google Tasks",
    "What you had to do, until when, and whether it is done.",
    [
        key(),
        reference("list_id", "The list", required=True),
        word("list", "Name of the list", searched=True),
        text("title", "What is to be done", title=True),
        text("notes", "Details"),
        word("status", "needsAction or completed"),
        moment("updated_at", "When it last changed, in UTC", event=True),
        moment("created_at", "When it was made, in UTC"),
        day("due_on", "Day it is due"),
        moment("starts_at", "When it is planned for, in UTC, if a time was given"),
        moment("completed_at", "When it was done, in UTC"),
        reference("parent_id", "The task it is a part of"),
        names("links", "Mails and pages it came from"),
        plain("recurrence_id", "The repetition it belongs to, as Google names it"),
        flag("is_starred", "Whether it has a star"),
        flag("is_deleted", "Whether it was deleted"),
    ],
    time_field="updated_at",
    parents={"task_list": ("task_lists", "list_id"), "parent": ("tasks", "parent_id")},
    semantic=["title", "notes"],
)


def task_records(element: Element) -> Iterator[SourceItem]:
    """One list and its tasks; a fault of a task costs it alone. Raises: BadRecord."""
    value = element.value
    list_id = stable_id("list", json_values.required(value, "id"))
    title = json_values.line(value, "title")
    facts: Data = {"id": list_id, "title": title, **_event(value)}
    yield SourceRecord("task_lists", facts, element.position)
    list_name = "items" if "items" in value else "tasks"
    for task in json_values.objects(value, list_name):
        try:
            yield SourceRecord("tasks", _task(task, list_id, title), element.position)
        except BadRecord as bad:
            yield Skipped(element.where, bad.code, bad.reason, element.position)


def _task(value: Data, list_id: str, title: str | None) -> Data:
    parent = json_values.line(value, "parent")
    planned = json_values.objects(value, "scheduled_time")
    now = [schedule for schedule in planned if json_values.truth(schedule, "current")] or planned
    due = json_values.instant(value, "due")
    links = (json_values.line(link, "link") for link in json_values.objects(value, "links"))
    return {
        "id": stable_id("task", list_id, json_values.required(value, "id")),
        "list_id": list_id,
        "list": title,
        "title": json_values.line(value, "title"),
        "notes": json_values.text(value, "notes", "description"),
        "status": json_values.line(value, "status"),
        **_event(value),
        "created_at": json_values.instant(value, "created"),
        "due_on": due[:10] if due else None,
        "starts_at": json_values.instant(now[0], "start") if now else None,
        "completed_at": json_values.instant(value, "completed"),
        "parent_id": stable_id("task", list_id, parent) if parent else None,
        "links": list(filter(None, links)),
        "recurrence_id": json_values.line(value, "task_recurrence_id"),
        "is_starred": json_values.truth(value, "starred"),
        "is_deleted": json_values.truth(value, "deleted"),
    }


def _event(value: Data) -> Data:
    """The time of a record, which may be missing from it but is never null."""
    updated_at = json_values.instant(value, "updated", "created", "completed")
    return {"updated_at": updated_at} if updated_at else {}
