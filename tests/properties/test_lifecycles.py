"""Whatever happens in whatever order, states change along their tables and power only shrinks.

A machine that approves, redeems, replays, refreshes, reuses, revokes, waits and sweeps; after each
step every change of state must be a way of a table, and every token ever issued must be judged
as its grant, family and the clock demand.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.oauth_errors import InvalidGrantCode
from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redemption
from personal_server.granting.retention import sweep
from personal_server.granting.revocations import disconnect, end_access
from personal_server.granting.tokens import Issued, Refresh, Rotating
from personal_server.granting.transitions import LIFECYCLES
from personal_server.reading.tokens import TokenResolver, TokenUses
from personal_server.storage.authorization_rows import (
    AuthorizationRow,
    ClientRow,
    FamilyRow,
    GrantRow,
    TokenRow,
)
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from server.tests.granting.conftest import NOTES, Bench, entry, make_bench
from tests.new_files import new_file
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.proving import bearer, unproven

CLIENT, OWNER = Acting("client"), Acting("owner")
MINUTE, DAY = 60 * 10**9, 86_400 * 10**9


def states(bench: Bench) -> dict[tuple[type[AuthorizationRow], object], str]:
    """The state of every row that has one, in the words of the tables."""
    found: dict[tuple[type[AuthorizationRow], object], str] = {}
    for table, life in LIFECYCLES.items():
        for row in bench.rows(table):
            told = getattr(row, life.column)
            first, last = (*life.ways,)[0], (*life.ways,)[-1]
            state = told if not life.timed else first if told is None else last
            found[table, tuple(getattr(row, name) for name in table.table.key)] = state
    return found


class Lives(RuleBasedStateMachine):
    """One app, its requests and everything that comes of them."""

    def open_store(self) -> AuthorizationStore:
        return MemoryAuthorizationStore("own_1")

    @initialize()
    def begin(self) -> None:
        self.bench = make_bench(self.open_store())
        self.seen: dict[tuple[type[AuthorizationRow], object], str] = {}
        self.codes: list[str] = []
        self.issued: list[Issued] = []
        self.count = 0

    def _asked(self, entries: list[dict[str, object]]) -> str:
        """A request of the client, which registers again when it was swept away."""
        self.count += 1
        if not self.bench.rows(ClientRow):
            self.bench.client()
        return self.bench.ask(entries, f"ar_{self.count}")

    @rule(package=st.booleans(), mode=st.sampled_from(["continuous", "single_use"]))
    def approve(self, package: bool, mode: str) -> None:
        entries = [entry(access_mode=mode)]
        if package:
            entries.append(entry(NOTES, access_mode=mode))
        self.codes.append(self.bench.allow(self._asked(entries)))

    @rule()
    def deny(self) -> None:
        self.bench.granting.deny(self._asked([entry()]), OWNER)

    @rule()
    def ask(self) -> None:
        self._asked([entry()])

    @rule(data=st.data(), right=st.booleans())
    def redeem(self, data: st.DataObject, right: bool) -> None:
        if not self.codes:
            return
        code = data.draw(st.sampled_from(self.codes))
        verifier = ("v" if right else "w") * 43
        asked = Redemption("cli_1", code, "none", verifier=verifier)
        self._keep(lambda: self.bench.redeeming.redeem_code(asked, CLIENT))

    @rule(data=st.data())
    def refresh(self, data: st.DataObject) -> None:
        tokens = [found.refresh_token for found in self.issued if found.refresh_token]
        if not tokens:
            return
        bench = self.bench
        rotating = Rotating(bench.store, bench.clock, bench.random, TokenUses(bench.store).flush)
        asked = Refresh("cli_1", data.draw(st.sampled_from(tokens)), "none")
        self._keep(lambda: rotating.rotate(asked, CLIENT))

    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        grants = [row.grant_id for row in self.bench.rows(GrantRow)]
        if not grants:
            return
        held = data.draw(st.sampled_from(grants))
        with self.bench.store.write() as writer:
            end_access(writer, held, "owner", OWNER, self.bench.now_ns)

    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        if not self.issued:
            return
        found = data.draw(st.sampled_from(self.issued))
        token = data.draw(st.sampled_from([found.access_token, found.refresh_token or "x"]))
        disconnect(self.bench.store, token, "cli_1", CLIENT, self.bench.now_ns)

    @rule(wait=st.sampled_from([MINUTE, 3 * MINUTE, 61 * MINUTE, DAY, 40 * DAY, 91 * DAY]))
    def wait(self, wait: int) -> None:
        self.bench.now_ns += wait

    @rule()
    def sweep(self) -> None:
        sweep(self.bench.store, self.bench.now_ns)
        self.codes = self.codes[-3:]

    @invariant()
    def every_change_is_a_way_of_its_table(self) -> None:
        if not hasattr(self, "bench"):
            return
        now = states(self.bench)
        for key, state in now.items():
            before = self.seen.get(key)
            assert before in (None, state) or LIFECYCLES[key[0]].may(str(before), state), key
        self.seen |= now

    @invariant()
    def a_token_is_good_only_while_all_behind_it_is(self) -> None:
        if not hasattr(self, "bench"):
            return
        bench = self.bench
        resolver = TokenResolver(bench.store, bench.clock, unproven())
        grants = {row.grant_id: row for row in bench.rows(GrantRow)}
        families = {row.family_id: row for row in bench.rows(FamilyRow)}
        for found in self.issued:
            if not _resolves(resolver, found.access_token):
                continue
            assert bench.now_ns < found.expires_at_ns
            assert any(_alive(grants[grant_id], bench.now_ns) for grant_id in found.grant_ids)
            assert found.family_id is None or families[found.family_id].revoked_at_ns is None

    @invariant()
    def single_use_gives_one_token_and_no_refresh(self) -> None:
        if not hasattr(self, "bench"):
            return
        once = {r.grant_id for r in self.bench.rows(GrantRow) if r.access_mode == "single_use"}
        made = [found for found in self.issued if once & set(found.grant_ids)]
        assert all(found.refresh_token is None for found in made)
        uses = [grant_id for found in made for grant_id in found.grant_ids]
        assert len(uses) == len(set(uses))
        assert len(self.bench.rows(TokenRow)) <= len(self.issued)

    def _keep(self, obtain: Any) -> None:
        with suppress(InvalidGrantCode):
            found: Issued = obtain()
            told = [each for each in self.issued if each.access_token != found.access_token]
            self.issued = [*told, found]


class LivesInAFile(Lives):
    """The same lives in SQLite."""

    def open_store(self) -> AuthorizationStore:
        self.folder = TemporaryDirectory()
        self.database = new_file(Path(self.folder.name) / "pdpp.db")
        return SqlAuthorizationStore(self.database, "own_1")

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()
            self.folder.cleanup()


def _resolves(resolver: TokenResolver, token: str) -> bool:
    try:
        resolver.resolve(bearer(token))
    except PersonalServerError:
        return False
    return True


def _alive(row: GrantRow, now_ns: int) -> bool:
    return row.revoked_at_ns is None and (row.expires_at_ns is None or now_ns < row.expires_at_ns)


SUPPRESSED = [HealthCheck.too_slow]
TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=60, stateful_step_count=25, suppress_health_check=SUPPRESSED
)
TestLivesInAFile = LivesInAFile.TestCase
TestLivesInAFile.settings = settings(
    max_examples=15, stateful_step_count=25, suppress_health_check=SUPPRESSED
)
