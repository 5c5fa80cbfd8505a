"""The change feed by its definition: each record's whole history, looked at with today's eyes."""

from __future__ import annotations

from dataclasses import dataclass

from pdpp_kernel.record import JsonObject, TombstoneRow
from personal_server.enforcement.plans import ChangesPlan
from personal_server.enforcement.rows import Change, Feed
from personal_server.enforcement.scopes import Scope
from personal_server.storage.record_changes import changed_fields
from personal_server.storage.row_rules import holds, is_in
from tests.oracle.memory_state import Happened, State


def feed(plan: ChangesPlan, state: State) -> Feed:
    """Items after `plan.after`, in order of their number."""
    items = [item for scope in plan.scopes for item in _items(scope, plan, state)]
    items = sorted((i for i in items if i.sequence > plan.after), key=lambda item: item.sequence)
    return Feed(tuple(items[: plan.limit]), len(items) > plan.limit)


def is_visible(key: str, data: JsonObject, scope: Scope) -> bool:
    """Source: docs/contract/resource-server.md 4.3, `visible`."""
    return (scope.resources is None or key in scope.resources) and is_in(data, scope)


def _items(scope: Scope, plan: ChangesPlan, state: State) -> list[Change]:
    place = (scope.connection_id, scope.stream.name)
    histories: dict[str, list[Happened]] = {}
    for happened in state.history:
        if happened.place == place:
            histories.setdefault(happened.key, []).append(happened)
    items = [_item(_Record(scope, each), plan, state) for each in histories.values()]
    return [item for item in items if item is not None]


def _item(record: _Record, plan: ChangesPlan, state: State) -> Change | None:
    since = plan.since or 0
    relevant = record.relevant()
    reached = [each for each in relevant if since < each.sequence <= plan.horizon]
    if not reached:
        return None
    last = reached[-1]
    moved_on = any(each.sequence > plan.horizon for each in relevant)
    if record.visible_at(plan.horizon):
        if moved_on:
            return None  # in the next feed, whatever it has become
        row = state.rows[last.place][last.key]
        if all(holds(condition, row.data) for condition in plan.conditions):
            return Change(last.sequence, row)
        if plan.since is None or not record.visible_at(since) or not record.touched(plan):
            return None
        times = (last.written_at_ns, last.emitted_at_ns)
        return Change(last.sequence, TombstoneRow(*last.place, last.key, *times, is_filtered=True))
    if plan.since is None or not record.visible_at(since):
        return None
    tombstone = TombstoneRow(*last.place, last.key, last.written_at_ns, last.emitted_at_ns)
    return Change(last.sequence, tombstone)


@dataclass(frozen=True, slots=True)
class _Record:
    """One record of a scope through time."""

    scope: Scope
    history: list[Happened]

    def visible_at(self, sequence: int) -> bool:
        """Whether the record was visible after that change."""
        past = [each for each in self.history if each.sequence <= sequence]
        return bool(past) and self._after(len(past) - 1)

    def touched(self, plan: ChangesPlan) -> bool:
        """Whether it was made anew, or a field of the conditions changed, after the beginning."""
        named = {name for condition in plan.conditions for name in condition.fields}
        later = [each for each in self.history if each.sequence > (plan.since or 0)]
        return any(
            each.before is None
            or each.after is None
            or not changed_fields(each.before, each.after).isdisjoint(named)
            for each in later
        )

    def relevant(self) -> list[Happened]:
        """Changes that the scope can notice."""
        return [each for at, each in enumerate(self.history) if self._is_relevant(at)]

    def _before(self, at: int) -> bool:
        """Whether it was visible before that change, as far as the change tells."""
        happened = self.history[at]
        limited = {limit.field for limit in self.scope.only}
        return limited <= happened.limiting and self._visible(happened.before, happened.key)

    def _after(self, at: int) -> bool:
        """Whether it was visible after that change: as the next one tells, or the record itself."""
        if at + 1 < len(self.history):
            return self._before(at + 1)
        return self._visible(self.history[at].after, self.history[at].key)

    def _visible(self, data: JsonObject | None, key: str) -> bool:
        return data is not None and is_visible(key, data, self.scope)

    def _is_relevant(self, at: int) -> bool:
        happened, before, after = self.history[at], self._before(at), self._after(at)
        if before != after:
            return True
        if not before or happened.before is None or happened.after is None:
            return False
        return not changed_fields(happened.before, happened.after).isdisjoint(self.scope.fields)
