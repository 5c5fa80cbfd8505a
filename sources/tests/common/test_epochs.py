from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdpp_sources.common.epochs import APPLE, EPOCHS, WEBKIT, epoch_of, is_time_name
from pdpp_sources.common.errors import BadRecord

SECONDS_OF_UNIX = st.integers(1_041_400_000, 1_893_400_000)


@given(seconds=SECONDS_OF_UNIX, name=st.sampled_from(sorted(EPOCHS)))
def test_a_number_says_its_epoch_and_its_instant(seconds: int, name: str) -> None:
    epoch, whole = EPOCHS[name], datetime.fromtimestamp(seconds, UTC)
    number = (whole - epoch.start) // timedelta(seconds=1) * epoch.per_second
    assert epoch_of(number) is epoch
    assert datetime.fromisoformat(epoch.instant(number)) == whole


@pytest.mark.parametrize("number", [0, -1, 1, 2**63 - 1, 100_000])
def test_a_number_beyond_every_range_is_no_instant(number: int) -> None:
    assert epoch_of(number) is None


def test_an_instant_outside_the_calendar_is_a_fault() -> None:
    with pytest.raises(BadRecord):
        WEBKIT.instant(2**63 - 1)
    with pytest.raises(BadRecord):
        APPLE.instant(1e300)


@pytest.mark.parametrize(
    "name", ["visit_time", "lastModified", "dateAdded", "created_at", "ts", "Date", "expires_utc"]
)
def test_names_of_instants_are_known(name: str) -> None:
    assert is_time_name(name)


@pytest.mark.parametrize("name", ["id", "amount", "total_view_count", "phone", "status", "cat"])
def test_other_names_are_not(name: str) -> None:
    assert not is_time_name(name)
