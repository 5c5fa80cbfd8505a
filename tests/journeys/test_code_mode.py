"""The program of docs/code-mode.md, run against a server as a host's model would run it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest

from bench.site import Site

PAGE = Path(__file__).resolve().parents[2] / "docs" / "code-mode.md"
PAYEES = ("Bakery Nord", "Rent Office", "Power Company")


@pytest.mark.timeout(120)
def test_the_program_of_the_page_answers_its_question(tmp_path: Path) -> None:
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    payments = [
        (date(2025, 2, 1) + timedelta(days=n), PAYEES[n % 3], 10 + 90 * (n % 3 == 1))
        for n in range(200)
    ]
    lines = [f"{day},{payee},Debit,Invoice,-{paid}.00" for day, payee, paid in payments]
    statement = tmp_path / "statement.csv"
    head = "Booking Date,Partner Name,Type,Payment Reference,Amount (EUR)"
    statement.write_text("\n".join((head, *lines)) + "\n", encoding="utf-8")
    site = Site(tmp_path / "site")
    subprocess.run(site.command("pdpp", "import", str(statement)), check=True, capture_output=True)
    token = site.grant("agent", "--source", "bank")[0]
    given = (f"PDPP_MCP={site.origin}/mcp", f"PDPP_TOKEN={token}")
    with site.serving():
        done = subprocess.run(
            ["/usr/bin/env", *given, sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    rents = [day for day, payee, _ in payments if payee == "Rent Office"]
    quarters = Counter(f"2025 Q{(day.month + 2) // 3}" for day in rents)
    [(best, count)] = quarters.most_common(1)
    assert answer["most"] == ["Rent Office", best]
    assert answer["sum"] == count * 100
    assert answer["groups"] == 3 * len(quarters)
    assert "/transactions:" in answer["last"]
