"""What an answer says where the last try to fetch newer records has not succeeded.

Rule: it follows from the runs of the sources that the answer used, and from nothing else.
Source: docs/contract/resource-server.md 2.3, 2.6.
"""

from __future__ import annotations

from personal_server.domain.answer_warnings import Warning
from personal_server.reading.freshness import ShownFreshness


def newer_missing(freshness: ShownFreshness) -> list[Warning]:
    """A warning where a try came after the last success: it failed, or still runs."""
    since, tried = freshness.captured_at, freshness.last_attempted_at
    if since is None or tried is None or tried <= since:  # both are in UTC, in one form
        return []
    message = (
        f"Records newer than {since} may be missing: the last try to fetch them, {tried}, has not"
        " succeeded."
    )
    return [Warning("newer_missing", message, detail={"as_of": since, "last_tried_at": tried})]
