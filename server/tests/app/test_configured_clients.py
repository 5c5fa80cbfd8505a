import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.app.configured_clients import client_tables, configured_clients
from personal_server.configuration_file import ConfigurationFile


def test_a_table_is_a_client() -> None:
    table = {"client_id": "notes", "client_name": "Notes", "redirect_uris": ["http://127.0.0.1/c"]}
    [client] = configured_clients(ConfigurationFile("own_x", [table]))
    assert (client.client_id, client.redirect_uris) == ("notes", ("http://127.0.0.1/c",))
    assert not client.owner_profile


@pytest.mark.parametrize(
    "change",
    [{"client_id": ""}, {"client_name": 5}, {"redirect_uris": "http://x"}, {"owner_profile": True}],
)
def test_a_table_of_another_shape_is_refused(change: dict[str, object]) -> None:
    table: dict[str, object] = {"client_id": "notes", "client_name": "Notes"}
    with pytest.raises(StorageUnavailable):
        configured_clients(ConfigurationFile("own_x", [table | change]))


@pytest.mark.parametrize("found", [5, "notes", [5], ["notes"], 0])
def test_what_is_no_table_is_refused(found: object) -> None:
    with pytest.raises(StorageUnavailable):
        configured_clients(ConfigurationFile("own_x", found))


def test_where_nothing_is_set_up_there_is_no_client() -> None:
    assert client_tables(ConfigurationFile("own_x")) == []
