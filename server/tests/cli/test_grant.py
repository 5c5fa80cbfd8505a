from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pdpp_kernel.errors import GrantRevoked, InvalidToken
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from personal_server.reading.tokens import TokenResolver
from personal_server.storage.authorization_rows import (
    GrantRow,
    ReadingAlarmRow,
    SubscriptionRow,
    TokenRow,
)
from server.tests.console.browsing import ORIGIN
from server.tests.console.household import BANK_SOURCE, CHECKING, HOME, bank_request, mail_request
from tests.proving import bearer, unproven

AGENT = ("grant", "create", "--client", "My agent")


def resolved(terminal: Any, token: str | None = None) -> Any:
    """What a token stands for, the cached one unless another is named."""
    sent = token or CredentialCache(terminal.cache).load(ORIGIN).access_token
    resolver = TokenResolver(terminal.house.authorization, terminal.house.clock, unproven())
    return resolver.resolve(bearer(sent))


def test_a_grant_is_shown_made_and_its_credential_cached(terminal: Any) -> None:
    options = ("--source", "bank", "--stream", "transactions:amount,currency", "--yes")
    assert terminal.run(*AGENT, *options) == 0
    assert {"30", "2026-08-23", "2026-11-18"} <= set(terminal.err.split())
    assert "Checking account" in terminal.err
    found = resolved(terminal)
    (stream,) = found.grants[0].grant.streams
    assert stream.fields == ("id", "account_id", "posted_on", "amount", "currency")
    assert stream.instance_ids == (CHECKING,)
    assert found.grants[0].grant_id in terminal.out


def test_nothing_printed_holds_a_token(terminal: Any) -> None:
    printed = ""
    for arguments in (
        (*AGENT, "--source", "bank", "--yes"),
        (*AGENT, "--source", "bank", "--yes", "--json"),
        ("grant", "list"),
        ("grant", "list", "--json"),
    ):
        assert terminal.run(*arguments) == 0
        printed += terminal.out + terminal.err
    assert "pdpp_" not in printed


def test_two_entries_of_a_file_make_a_package(terminal: Any) -> None:
    file = terminal.file([*mail_request(), *bank_request()])
    made = terminal.json(*AGENT, "--from", file, "--yes")
    assert made["kind"] == "mcp_package"
    assert made["grant_package_id"].startswith("gpkg_")
    assert resolved(terminal).package_id == made["grant_package_id"]


def test_an_entry_that_cannot_be_granted_leaves_nothing_granted(terminal: Any) -> None:
    unknown = {**mail_request()[0], "source": {"id": "https://example.com/none"}}
    file = terminal.file([*mail_request(), unknown])
    assert terminal.run(*AGENT, "--from", file, "--yes") == 64
    assert terminal.err.startswith("pdpp: invalid_authorization_details: ")
    assert terminal.err.split().count("2") == 2
    assert terminal.json("grant", "list", "--all") == []


def test_it_ends_after_ninety_days_unless_told(terminal: Any) -> None:
    made = terminal.json(*AGENT, "--source", "bank", "--yes")
    assert terminal.json("grant", "show", made["grant_id"])["expires_at"] == "2027-02-16T11:06:40Z"
    made = terminal.json(*AGENT, "--source", "bank", "--expires", "none", "--yes")
    assert terminal.json("grant", "show", made["grant_id"])["expires_at"] is None


def test_single_use_lasts_a_day_and_has_no_refresh_token(terminal: Any) -> None:
    made = terminal.json(*AGENT, "--source", "bank", "--single-use", "--yes")
    shown = terminal.json("grant", "show", made["grant_id"])
    assert (shown["access_mode"], shown["expires_at"]) == ("single_use", "2026-11-19T11:06:40Z")
    assert CredentialCache(terminal.cache).load(ORIGIN).refresh_token is None


def test_several_connections_and_none_named_need_a_choice(terminal: Any) -> None:
    assert terminal.run(*AGENT, "--source", "mail", "--stream", "messages", "--yes") == 6
    assert "cin_home" in terminal.err
    assert "Home mailbox" in terminal.err
    assert terminal.run(*AGENT, "--source", "mail", "--connection", HOME, "--yes") == 0


def test_without_a_terminal_consent_must_be_given_beforehand(terminal: Any) -> None:
    assert terminal.run(*AGENT, "--source", "bank") == 64
    assert not terminal.cache.exists()


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 4), ("\n", 4), ("", 4)])
def test_a_person_at_the_terminal_is_asked(terminal: Any, answer: str, code: int) -> None:
    terminal.types(answer)
    assert terminal.run(*AGENT, "--source", "bank") == code
    assert terminal.cached.exists() is (code == 0)


def test_training_needs_its_own_flag(terminal: Any) -> None:
    training = ("--source", "bank", "--purpose", "https://pdpp.dev/purpose/ai_training")
    assert terminal.run(*AGENT, *training, "--yes") == 64
    assert "ai_training_consent_required" in terminal.err
    assert terminal.run(*AGENT, *training, "--yes", "--ai-training-consent") == 0


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--stream", "transactions"),
        ("--source", "nothing"),
        ("--source", "bank", "--preset", "x", "--since", "2026-01-01"),
        ("--source", "bank", "--from", "request.json"),
        ("--from", "missing.json"),
        ("--source", "bank", "--stream", "nothing"),
        ("--source", "bank", "--stream", "transactions:nothing"),
        ("--source", "bank", "--stream", "transactions", "--since", "yesterday"),
        ("--source", "bank", "--expires", "2y"),
        ("--source", "bank", "--purpose", "fun"),
    ],
)
def test_a_request_that_cannot_be_meant_is_usage(terminal: Any, options: tuple[str, ...]) -> None:
    assert terminal.run(*AGENT, *options, "--yes") == 64
    assert not terminal.cached.exists()


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", "[1]", '[{"type": "x"}]'])
def test_a_file_that_is_no_request_is_usage(terminal: Any, content: str) -> None:
    path = terminal.folder / "request.json"
    path.write_text(content)
    assert terminal.run(*AGENT, "--from", path, "--yes") == 64


def test_a_credential_that_cannot_be_written_leaves_no_usable_grant(terminal: Any) -> None:
    terminal.cache.write_text("in the way")
    assert terminal.run(*AGENT, "--source", "bank", "--yes") == 78
    with terminal.house.authorization.read() as reader:
        (grant,) = reader.rows(GrantRow)
        (token,) = reader.rows(TokenRow)
    assert grant.reason == "not_collected"
    assert token.grant_id == grant.grant_id


def test_a_revoked_grant_is_closed_to_its_token(terminal: Any) -> None:
    made = terminal.json(*AGENT, "--source", "bank", "--yes")
    assert terminal.run("grant", "revoke", made["grant_id"]) == 0
    with pytest.raises(GrantRevoked):
        resolved(terminal)
    assert terminal.json("grant", "list") == []
    (ended,) = terminal.json("grant", "list", "--all")
    assert (ended["status"], ended["reason"]) == ("revoked", "owner")
    again = terminal.json("grant", "revoke", made["grant_id"])
    assert again["revoked_at"] == ended["revoked_at"]


def test_ending_a_package_ends_its_members(terminal: Any) -> None:
    file = terminal.file([*mail_request(), *bank_request()])
    made = terminal.json(*AGENT, "--from", file, "--yes")
    assert terminal.run("grant", "revoke", made["grant_package_id"]) == 0
    for grant_id in made["grant_ids"]:
        assert terminal.json("grant", "show", grant_id)["status"] == "revoked"


@pytest.mark.parametrize("command", ["show", "receipt", "revoke"])
def test_an_unknown_grant_is_not_found(terminal: Any, command: str) -> None:
    assert terminal.run("grant", command, "grt_unknown") == 5


def test_lists_and_pages_are_readable(terminal: Any) -> None:
    assert terminal.run("grant", "list") == 0
    assert terminal.json("grant", "list") == []
    made = terminal.json(
        *AGENT, "--source", "bank", "--stream", "transactions", "--since", "2026-09-01", "--yes"
    )
    assert terminal.run("grant", "list") == 0
    assert "bank/transactions" in terminal.out
    assert "2027-02-16" in terminal.out
    terminal.patch.setenv("COLUMNS", "60")
    assert terminal.run("grant", "list") == 0
    assert made["grant_id"] in terminal.out
    terminal.patch.setenv("COLUMNS", "160")
    assert terminal.run("grant", "show", made["grant_id"]) == 0
    assert "posted_on" in terminal.out
    assert "2026-09-01" in terminal.out
    assert BANK_SOURCE not in terminal.out
    shown = terminal.json("grant", "show", made["grant_id"])
    assert shown["last_used_at"] is None
    assert shown["token_binding"] == "bearer"


def test_a_long_list_says_where_it_goes_on(terminal: Any) -> None:
    ids = [terminal.json(*AGENT, "--source", "bank", "--yes")["grant_id"] for _ in range(3)]
    assert terminal.run("grant", "list", "--limit", "2") == 0
    first = {grant_id for grant_id in ids if grant_id in terminal.out}
    assert len(first) == 2
    (after,) = re.findall(r"--before (grt_[\w-]+)", terminal.err)
    assert after in first
    assert terminal.run("grant", "list", "--before", after) == 0
    assert {grant_id for grant_id in ids if grant_id in terminal.out} == set(ids) - first
    assert "--before" not in terminal.err
    assert {each["id"] for each in terminal.json("grant", "list")} == set(ids)
    assert terminal.run("grant", "list", "--before", "grt_unknown") == 5


def test_names_from_elsewhere_cannot_steer_the_terminal(terminal: Any) -> None:
    hostile = "Evil\x1b[2J[bold]"
    arguments = ("grant", "create", "--client", hostile, "--source", "bank", "--yes")
    assert terminal.run(*arguments) == 0
    assert "\x1b" not in terminal.err
    assert terminal.run("grant", "list") == 0
    assert "\x1b" not in terminal.out
    assert "[bold]" in terminal.out


def test_the_credential_is_in_the_shared_layout(terminal: Any) -> None:
    terminal.json(*AGENT, "--source", "bank", "--yes")
    document = json.loads(terminal.cached.read_text())
    assert document["provider_url"] == document["issuer"] == ORIGIN
    assert document["client"]["client_id"] == "local_my-agent"
    credential = document["credential"]
    assert credential["token_kind"] == "client"
    assert credential["access_token"].startswith("pdpp_at_")
    assert credential["authorization_details"][0]["source"]["id"] == BANK_SOURCE
    with pytest.raises(InvalidToken):
        TokenResolver(terminal.house.authorization, terminal.house.clock, unproven()).resolve(
            bearer("pdpp_at_x")
        )


def test_a_receipt_is_printed_signed_and_with_what_was_shown(terminal: Any) -> None:
    made = terminal.json(*AGENT, "--source", "bank", "--yes")
    receipt = terminal.json("grant", "receipt", made["grant_id"])
    assert receipt["receipt"].count(".") == 2
    assert json.loads(receipt["shown"])["origin"] == ORIGIN


def test_to_be_told_is_allowed_and_taken_back(terminal: Any) -> None:
    made = terminal.json(*AGENT, "--source", "bank", "--events", "--yes")
    grant_id = made["grant_id"]
    assert terminal.json("grant", "show", grant_id)["events"] is True
    for name, status in (("sub_active", "active"), ("sub_new", "pending_verification")):
        terminal.house.insert(
            SubscriptionRow(
                subscription_id=name,
                client_id="local_my-agent",
                grant_id=grant_id,
                callback_url="https://app.example/hooks",
                status=status,
                secret=b"sealed",
                seen=0,
                created_at_ns=1,
                updated_at_ns=1,
            )
        )
    assert terminal.run("grant", "limit", grant_id, "--events", "never") == 0
    assert terminal.json("grant", "show", grant_id)["events"] is False
    (left,) = terminal.house.rows(SubscriptionRow)
    assert (left.subscription_id, left.status) == ("sub_active", "disabled")
    assert terminal.run("grant", "limit", grant_id, "--events", "allow") == 0
    assert terminal.json("grant", "show", grant_id)["events"] is True


def test_a_limit_and_what_was_unusual_are_shown_and_set(terminal: Any) -> None:
    assert terminal.run(*AGENT, "--source", "bank", "--yes") == 0
    grant_id = terminal.house.rows(GrantRow)[0].grant_id
    assert terminal.run("grant", "limit", grant_id) == 64
    assert terminal.run("grant", "limit", grant_id, "--records", "1000", "--pause", "always") == 0
    assert terminal.run("grant", "limit", grant_id, "--requests", "50") == 0
    terminal.house.insert(
        ReadingAlarmRow(
            alarm_id="ral_1",
            held_id=grant_id,
            client_id="local_my-agent",
            rule="unknown_keys",
            at_ns=terminal.house.clock.now_ns,
            detail={"lately": 25, "today": 25},
            paused=False,
        )
    )
    assert terminal.run("grant", "show", grant_id) == 0
    assert {"1,000", "50", "25"} <= set(terminal.out.split())
    assert terminal.run("grant", "list") == 0
    alarmed = terminal.out
    assert terminal.run("grant", "show", grant_id, "--json") == 0
    shown = json.loads(terminal.out)
    assert shown["limits_per_day"] == {"records": 1000, "bytes": None, "requests": 50}
    assert [alarm["rule"] for alarm in shown["alarms"]] == ["unknown_keys"]
    assert terminal.run("grant", "dismiss", grant_id) == 0
    assert terminal.run("grant", "limit", grant_id, "--records", "0", "--pause", "as-set") == 0
    assert terminal.run("grant", "show", grant_id) == 0
    assert "50" in terminal.out.split()
    assert "1,000" not in terminal.out
    assert terminal.json("grant", "show", grant_id)["alarms"] == []
    assert terminal.run("grant", "list") == 0
    assert len(terminal.out.splitlines()) < len(alarmed.splitlines())
    assert terminal.run("grant", "dismiss", "grt_none") == 5


def test_a_grant_is_narrowed_and_its_credential_goes_on(terminal: Any) -> None:
    made = terminal.json(*AGENT, "--source", "bank", "--yes")
    left = ("--stream", "transactions:amount,currency", "--since", "2026-09-01", "--expires", "30d")
    changed = terminal.json("grant", "change", made["grant_id"], *left, "--yes")
    assert changed["replaces"] == made["grant_id"]
    assert "2026-09-01" in terminal.err
    (found,) = resolved(terminal).grants
    assert found.grant_id == changed["id"]
    assert found.grant.streams[0].fields == ("id", "account_id", "posted_on", "amount", "currency")
    assert terminal.run("grant", "show", changed["id"]) == 0
    assert made["grant_id"] in terminal.out


@pytest.mark.parametrize(
    ("command", "column", "value"),
    [
        (("revoke",), "reason", "owner"),
        (("pause",), "hold", "owner"),
        (("rename", "Tax office"), "name", "Tax office"),
        (("change", "--stream", "transactions:amount", "--yes"), "reason", "replaced"),
    ],
)
def test_an_id_from_before_a_change_means_the_access_that_lives(
    terminal: Any, command: tuple[str, ...], column: str, value: str
) -> None:
    made = terminal.json(*AGENT, "--source", "bank", "--yes")
    old = made["grant_id"]
    new = terminal.json("grant", "change", old, "--expires", "30d", "--yes")["id"]
    name, *rest = command
    assert terminal.run("grant", name, old, *rest) == 0
    (row,) = [row for row in terminal.house.rows(GrantRow) if row.grant_id == new]
    assert getattr(row, column) == value
    assert new in terminal.err + terminal.out


def test_limits_and_pauses_of_an_old_id_are_those_of_its_successor(terminal: Any) -> None:
    old = terminal.json(*AGENT, "--source", "bank", "--yes")["grant_id"]
    new = terminal.json("grant", "change", old, "--expires", "30d", "--yes")["id"]
    assert terminal.run("grant", "limit", old, "--records", "1000") == 0
    assert terminal.json("grant", "show", new)["limits_per_day"]["records"] == 1000
    assert terminal.run("grant", "pause", new) == 0
    assert terminal.run("grant", "resume", old) == 0
    assert {row.hold for row in terminal.house.rows(GrantRow)} == {"none"}
    assert terminal.run("grant", "show", old) == 0
    assert new in terminal.err


def test_giving_more_is_left_to_the_page(terminal: Any) -> None:
    made = terminal.json(*AGENT, "--source", "bank", "--stream", "transactions:amount", "--yes")
    change = ("grant", "change", made["grant_id"], "--yes")
    assert terminal.run(*change, "--stream", "transactions:amount,payee") == 3
    assert f"/owner/access/{made['grant_id']}" in terminal.err
    assert terminal.run(*change, "--expires", "1y") == 3


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--yes",), 64),
        (("--since", "2026-09-01"), 64),
        (("--connection", "nobody", "--yes"), 5),
        (("--source", "nothing", "--yes"), 64),
        (("--stream", "nothing", "--yes"), 64),
    ],
)
def test_a_change_that_cannot_be_meant_is_refused(
    terminal: Any, options: tuple[str, ...], code: int
) -> None:
    made = terminal.json(*AGENT, "--source", "bank", "--yes")
    assert terminal.run("grant", "change", made["grant_id"], *options) == code
    assert [row.reason for row in terminal.house.rows(GrantRow)] == [None]


def test_a_grant_is_called_as_its_owner_likes(terminal: Any) -> None:
    made = terminal.json(*AGENT, "--source", "bank", "--yes")
    assert terminal.run("grant", "rename", made["grant_id"], "Tax [red]office[/]") == 0
    assert terminal.run("grant", "list") == 0
    assert "Tax [red]office[/]" in terminal.out
    assert terminal.run("grant", "rename", "grt_nobody", "x") == 5
    assert terminal.run("grant", "change", "grt_nobody", "--expires", "30d", "--yes") == 5


MAIL_FROM_GRACE = ("--source", "mail", "--stream", "messages", "--connection", HOME)


def test_a_grant_is_limited_to_the_values_of_a_field(terminal: Any) -> None:
    only = ("--only", "from_address=GRACE@example.org", "--only", "is_reply=true")
    assert terminal.run(*AGENT, *MAIL_FROM_GRACE, *only, "--yes") == 0
    assert ["messages", "4"] in [line.split()[:2] for line in terminal.err.splitlines()]
    assert "GRACE@example.org" in terminal.err
    (stream,) = resolved(terminal).grants[0].grant.streams
    limits = {limit.field: limit.values for limit in stream.only}
    assert limits == {"from_address": ("GRACE@example.org",), "is_reply": (True,)}
    shown = terminal.json("grant", "list")[0]["grants"][0]["streams"][0]["only"]
    assert shown == {"from_address": ["GRACE@example.org"], "is_reply": [True]}
    assert terminal.run("grant", "show", terminal.json("grant", "list")[0]["id"]) == 0
    assert "GRACE@example.org" in terminal.out


def test_a_value_that_nobody_has_is_said_with_those_there_are(terminal: Any) -> None:
    only = ("--only", "from_address=nobody@example.org")
    assert terminal.run(*AGENT, *MAIL_FROM_GRACE, *only, "--yes") == 0
    assert ["messages", "0"] in [line.split()[:2] for line in terminal.err.splitlines()]
    assert "grace@example.org (8)" in terminal.err


@pytest.mark.parametrize(
    ("only", "told"),
    [
        ("subject=Lunch", "from_address"),
        ("nothing=a", ""),
        ("is_reply=maybe", ""),
        ("from_address", ""),
        ("from_address=", ""),
        ("=a", ""),
        ("from_address=" + "x" * 201, ""),
    ],
)
def test_what_cannot_be_limited_by_is_refused(terminal: Any, only: str, told: str) -> None:
    assert terminal.run(*AGENT, *MAIL_FROM_GRACE, "--only", only, "--yes") == 64
    assert told in terminal.err
    assert terminal.json("grant", "list", "--all") == []


def test_a_limit_needs_to_know_of_which_records(terminal: Any) -> None:
    assert terminal.run(*AGENT, "--source", "mail", "--only", "from_address=a", "--yes") == 64


def test_a_narrower_access_keeps_its_limits(terminal: Any) -> None:
    only = ("--only", "from_address=grace@example.org")
    made = terminal.json(*AGENT, *MAIL_FROM_GRACE, *only, "--yes")
    assert terminal.run("grant", "change", made["grant_id"], "--expires", "30d", "--yes") == 0
    (stream,) = resolved(terminal).grants[0].grant.streams
    assert stream.only[0].values == ("grace@example.org",)
