"""Selection requests: what a client asks for, as values.

Rule: a selection says what is wanted, never what is allowed; only resolution against accepted
declarations and the owner's decision make a grant of it.  Source: AS contract 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DATA_ACCESS = "https://pdpp.dev/data-access"
AGENT_CONTEXT = "https://pdpp.dev/purpose/agent_context"
AI_TRAINING = "https://pdpp.dev/purpose/ai_training"
SINGLE_USE, CONTINUOUS = "single_use", "continuous"
ALL_STREAMS = "*"


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Wanted bounds: since inclusive, until exclusive, nanoseconds UTC; at least one."""

    since_ns: int | None = None
    until_ns: int | None = None


@dataclass(frozen=True, slots=True)
class StreamSelection:
    """One wanted stream; `None` means not limited by the client."""

    name: str
    required: bool = True
    instance_ids: tuple[str, ...] | None = None
    fields: tuple[str, ...] | None = None
    view: str | None = None
    time_range: TimeRange | None = None
    resources: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """One entry of a request: streams of one source, for one purpose.

    Shapes: exactly one of `streams` (non-empty) and `selection_preset`; `retention` as agreed;
        `commitments` are the client's own words and appear in no grant.
    """

    source_id: str
    purpose_code: str
    access_mode: str
    source_kind: str | None = None
    purpose_description: str | None = None
    retention: Mapping[str, object] | None = None
    commitments: tuple[str, ...] | None = None
    selection_preset: str | None = None
    streams: tuple[StreamSelection, ...] = ()
