"""Records to look around with: a made-up mailbox and a made-up bank account.

Rule: they say in the names of their accounts that they are made up, come in as any records do, and
go by erasing the accounts.  Pure but for `bring_sample`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pdpp_kernel.errors import InvalidState
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS, instant_text
from personal_server.collecting.connections import create_connection
from personal_server.collecting.declarations import declare
from personal_server.collecting.ingest import ingest
from personal_server.storage.ports.whole_store import RecordStore

NAMES = {"mail": "Sample mailbox (made up)", "bank": "Sample bank account (made up)"}
HOUR_NS = 3_600 * NANOSECONDS

PEOPLE = {
    "Grace Hopper": "grace@navy.example",
    "Emmy Noether": "emmy@goettingen.example",
    "Dr. Mary Anning": "practice@anning.example",
    "City Library": "desk@library.example",
    "Harbour Energy": "billing@harbour-energy.example",
    "Alan Turing": "alan@bletchley.example",
}
MAILS = (
    (2, "Alan Turing", "Chess on Sunday?", "Are you free on Sunday at four? I bring the clock."),
    (3, "Harbour Energy", "Your invoice for October", "84.20 EUR are due within 14 days."),
    (5, "Dr. Mary Anning", "Your appointment", "We expect you on the 9th at 10:30. Bring X-rays."),
    (8, "Emmy Noether", "Proofs of chapter three", "Two signs are wrong on page 41, else lovely."),
    (12, "Grace Hopper", "Train to Ghent", "I booked the 8:12 for both of us, seats 61 and 62."),
    (13, "Grace Hopper", "Re: Train to Ghent", "The hotel is by the canal and has breakfast."),
    (20, "City Library", "Two books are due", "Middlemarch and The Periodic Table, by Friday."),
    (34, "Alan Turing", "Running on Thursday", "Six miles along the river, slowly, I promise."),
    (41, "Harbour Energy", "Your invoice for September", "79.90 EUR are due within 14 days."),
    (55, "Emmy Noether", "Lecture notes", "Attached is the whole term; skip the fifth week."),
    (62, "Dr. Mary Anning", "Results", "All values are as they should be. See you in autumn."),
    (75, "Grace Hopper", "The bug", "It was a moth after all. I taped it into the log."),
    (90, "City Library", "Your card", "Your card is good for another year."),
    (120, "Alan Turing", "A question about bread", "How long does your dough rest, and how cold?"),
    (180, "Emmy Noether", "Birthday", "Come at seven, bring nothing, stay late."),
)
PAYEES = (
    ("Bakery Lovelace", -7.40, 3),
    ("Green Grocer", -38.15, 7),
    ("Harbour Energy", -84.20, 30),
    ("Rent Curie Street 4", -910.00, 30),
    ("Royal Society, salary", 2_650.00, 30),
    ("Railways", -46.00, 45),
    ("Bookshop Eliot", -23.90, 21),
)
SAMPLE_DAYS = 180

Records = Iterable[tuple[Mapping[str, Any], int]]
"""Records of a stream, each with the instant in which it came to be."""


def sample_mails(now_ns: int) -> Records:
    """A mailbox of half a year."""
    threads: dict[str, str] = {}
    for number, (days, sender, subject, body) in enumerate(reversed(MAILS)):
        topic = subject.removeprefix("Re: ")
        at_ns = now_ns - days * DAY_NANOSECONDS - number % 9 * HOUR_NS
        record = {
            "id": f"sample-{number}",
            "thread_id": threads.setdefault(topic, f"sample-thread-{number}"),
            "sent_at": instant_text(at_ns - at_ns % NANOSECONDS),
            "subject": subject,
            "from_name": sender,
            "from_address": PEOPLE[sender],
            "to": ["Ada Lovelace <ada@lovelace.example>"],
            "body": f"Dear Ada,\n\n{body}\n\n{sender}",
            "is_reply": subject != topic,
        }
        yield record, at_ns


def sample_payments(now_ns: int) -> Records:
    """An account of half a year."""
    for days in range(SAMPLE_DAYS, 0, -1):
        at_ns = now_ns - days * DAY_NANOSECONDS
        for number, (payee, amount, every) in enumerate(PAYEES):
            if (days + number) % every == 0:
                record = {
                    "id": f"sample-{days}-{number}",
                    "account_id": "sample",
                    "posted_on": instant_text(at_ns)[:10],
                    "payee": payee,
                    "amount": amount,
                    "amount_minor": round(amount * 100),
                    "currency": "EUR",
                    "direction": "in" if amount > 0 else "out",
                }
                yield record, at_ns


STREAMS: Mapping[str, tuple[str, Callable[[int], Records]]] = {
    "mail": ("messages", sample_mails),
    "bank": ("transactions", sample_payments),
}


def bring_sample(
    store: RecordStore,
    declarations: Iterable[Mapping[str, Any]],
    now_ns: int,
    random_bytes: Callable[[int], bytes],
) -> None:
    """Make the two accounts and store their records; `declarations` are of both sources.

    Raises: InvalidState, where something is kept already.
    """
    with store.snapshot(None) as snapshot:
        if snapshot.connections():
            raise InvalidState("Sample records can only be added while there are no records.")
    for raw in declarations:
        source = declare(store, raw, now_ns).declaration
        stream, records = STREAMS[source.connector_key]
        stored = store.declaration(source.connector_key, None)
        name = NAMES[source.connector_key]
        connection = create_connection(store, stored, name, now_ns, random_bytes)
        ingest(
            store,
            connection.connection_id,
            source.streams[stream],
            [{"data": data, "emitted_at": instant_text(at_ns)} for data, at_ns in records(now_ns)],
            now_ns=now_ns,
            new_receipt_id=lambda: f"rr_{random_bytes(9).hex()}",
        )
