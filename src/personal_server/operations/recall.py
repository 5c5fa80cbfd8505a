"""Recall: what the meta of a search says about how much was searched, and where hits came from.

Rule: nothing is called complete that is not; the figures of a first page stand on all its pages.
Source: RS contract 11.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from personal_server.domain.authority import ReadableSource, TokenKind
from personal_server.domain.envelope import Warning
from personal_server.enforcement.plans import AuthorizedRead, SearchTerms

CANDIDATE_WINDOW = 2_000
TOO_SLOW = (
    "This connection took too long to search and is not in these hits."
    " Search it alone, with its connection_id and a rarer word, a stream or a filter."
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What is known of the whole search: it stands in the cursor, so that all pages agree.

    `lost` names the (connection, stream) pairs that were left out for lack of time.
    """

    ranked_count: int
    truncated_sources: int
    searched_sources: int
    lost: tuple[tuple[str, str], ...] = ()

    def meta(self) -> dict[str, object]:
        """`count_accuracy` and `recall`."""
        truncated = self.truncated_sources > 0
        return {
            "count_accuracy": "exact" if self.is_whole else "lower_bound",
            "recall": {
                "complete": self.is_whole,
                "ranking_scope": "candidate_window" if truncated else "all_matches",
                "truncated": truncated,
                "ranked_candidate_count": self.ranked_count,
                "candidate_window_limit": CANDIDATE_WINDOW,
                "sources_searched_count": self.searched_sources,
                "truncated_source_count": self.truncated_sources,
                "pending_index_count": 0,
            },
        }

    def count(self) -> dict[str, object]:
        """`meta.count`."""
        return {"kind": "exact" if self.is_whole else "estimated", "value": self.ranked_count}

    @property
    def is_whole(self) -> bool:
        """Whether every match was ranked."""
        return self.truncated_sources == 0 and not self.lost

    def warnings(self) -> tuple[Warning, ...]:
        """`source_unavailable` for each connection that was left out."""
        connections = sorted({connection_id for connection_id, _ in self.lost})
        return tuple(Warning("source_unavailable", TOO_SLOW, connection_id=c) for c in connections)


def source_mix(
    read: AuthorizedRead[SearchTerms], shown: Sequence[ReadableSource], findings: Findings
) -> dict[str, object]:
    """`source_mix`, or `package` for package tokens."""
    counts = Counter(source.connection_id for source in shown)
    mix = _rows(shown, counts)
    authority = read.authority
    if authority.kind is not TokenKind.PACKAGE:
        return {"source_mix": mix} if len(counts) > 1 else {}
    searched = {source.grant_id for source in read.sources if source.order not in findings.lost}
    return {
        "package": {
            "member_count": len(authority.grant_ids),
            "searched_count": len(searched),
            "partial": bool(authority.unavailable or findings.lost),
            "source_mix": mix,
        }
    }


def _rows(shown: Sequence[ReadableSource], counts: Counter[str]) -> list[dict[str, object]]:
    sources = {source.connection_id: source for source in shown}
    rows: list[dict[str, object]] = []
    for connection_id in sorted(counts):
        source = sources[connection_id]
        row: dict[str, object] = {
            "connection_id": connection_id,
            "connector_key": source.connector_key,
        }
        if source.display_name is not None:
            row["display_name"] = source.display_name
        rows.append({**row, "count": counts[connection_id]})
    return rows
