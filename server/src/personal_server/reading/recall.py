"""Recall: what the meta of a search says about how much was searched, and where hits came from.

Rule: nothing is called complete that is not; the figures of a first page stand on all its pages.
Source: docs/contract/resource-server.md 11.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource, TokenKind
from personal_server.domain.envelope import Counted
from personal_server.enforcement.authorized_reads import AuthorizedRead
from personal_server.enforcement.plans import CANDIDATE_WINDOW
from personal_server.enforcement.queries import SearchMode

TOO_SLOW = (
    "The search of this account took too long, so these hits do not include it. "
    "Search it alone, with its connection_id and a rarer word, a stream or a "
    "filter."
)


class SearchCoverage(msgspec.Struct, frozen=True):
    """What is known of the whole search: it stands in the cursor, so that all pages agree.

    `lost` names the (connection, stream) pairs that were left out for lack of time; `pending`
    visible records are not in the word index yet; `is_best_only`: of what holds some of the words
    only the best are hits.
    """

    ranked_count: int
    truncated_sources: int
    searched_sources: int
    lost: tuple[tuple[str, str], ...] = ()
    pending: int = 0
    mode: SearchMode = SearchMode.WORDS
    unembedded: int = 0
    is_best_only: bool = False

    def meta(self) -> dict[str, object]:
        """`count_accuracy` and `recall`."""
        truncated = self.truncated_sources > 0
        return {
            "count_accuracy": "exact" if self._is_counted else "lower_bound",
            "recall": {
                "complete": self.is_whole,
                "ranking_scope": self._scope,
                "truncated": truncated,
                "ranked_candidate_count": self.ranked_count,
                "candidate_window_limit": CANDIDATE_WINDOW,
                "sources_searched_count": self.searched_sources,
                "truncated_source_count": self.truncated_sources,
                "pending_index_count": self.pending,
                **self._of_meaning,
            },
        }

    @property
    def _scope(self) -> str:
        if self.mode is not SearchMode.WORDS:
            return "nearest"
        return "candidate_window" if self.truncated_sources else "all_matches"

    @property
    def _of_meaning(self) -> dict[str, object]:
        """How it was searched, where that was not by words alone."""
        if self.mode is SearchMode.WORDS:
            return {}
        return {"mode": self.mode.value, "unembedded_record_count": self.unembedded}

    def count(self) -> Counted:
        """`meta.count`."""
        return Counted("exact" if self._is_counted else "estimated", self.ranked_count)

    @property
    def _is_counted(self) -> bool:
        return self.is_whole and not self.is_best_only

    @property
    def is_whole(self) -> bool:
        """Whether every match was ranked."""
        is_by_words = self.mode is SearchMode.WORDS
        return is_by_words and not (self.truncated_sources or self.lost or self.pending)

    def warnings(self) -> tuple[Warning, ...]:
        """`source_unavailable` for each connection that was left out."""
        connections = sorted({connection_id for connection_id, _ in self.lost})
        return tuple(Warning("source_unavailable", TOO_SLOW, connection_id=c) for c in connections)


def source_mix(
    read: AuthorizedRead[Any], shown: Sequence[ReadableSource], findings: SearchCoverage
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
