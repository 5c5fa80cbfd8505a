"""What signs events is what receivers know: the library of Standard Webhooks verifies it."""

from __future__ import annotations

import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from pdpp_kernel.errors import StorageUnavailable
from personal_server.delivery.signatures import SecretBox, shown_secret, signed_headers
from personal_server.domain.stored import SealingKey

OLD, NEW = b"o" * 32, b"n" * 32
BODY = b'{"type": "pdpp.subscription.test"}'


def headers(*secrets: bytes, age_s: int = 0) -> dict[str, str]:
    """As sent so long before the moment of the call: the library asks the clock."""
    sent_at_s = int(time.time()) - age_s  # noqa: TID251
    return signed_headers("evt_1", sent_at_s, BODY, secrets)


@pytest.mark.parametrize("secrets", [(NEW,), (NEW, OLD), (OLD, NEW)])
def test_the_library_verifies_it_also_while_a_secret_is_rotated(secrets: tuple[bytes, ...]) -> None:
    verified = Webhook(shown_secret(NEW)).verify(BODY, headers(*secrets))
    assert verified == {"type": "pdpp.subscription.test"}


@pytest.mark.parametrize(
    ("body", "secret", "age_s", "changed"),
    [
        (BODY + b" ", NEW, 0, {}),
        (BODY, OLD, 0, {}),
        (BODY, NEW, 3_600, {}),
        (BODY, NEW, 0, {"webhook-id": "evt_2"}),
    ],
)
def test_what_was_changed_or_is_replayed_is_refused(
    body: bytes, secret: bytes, age_s: int, changed: dict[str, str]
) -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(shown_secret(NEW)).verify(body, headers(secret, age_s=age_s) | changed)


def test_a_sealed_secret_is_opened_for_its_subscription_only() -> None:
    first, second = SealingKey(1, b"1" * 32, 0), SealingKey(2, b"2" * 32, 0)
    sealed = SecretBox(lambda: [first]).seal(NEW, "sub_1")
    assert NEW not in sealed
    box = SecretBox(lambda: [second, first])
    assert box.open(sealed, "sub_1") == NEW
    for keys, name in (([second, first], "sub_2"), ([second], "sub_1")):
        with pytest.raises(StorageUnavailable):
            SecretBox(lambda keys=keys: keys).open(sealed, name)
