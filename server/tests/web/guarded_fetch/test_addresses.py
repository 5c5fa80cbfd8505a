"""Addresses that may be called for strangers."""

import pytest

from personal_server.web.public_addresses import is_public


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"],
)
def test_global_addresses_may_be_called(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "192.0.0.8",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "198.18.0.1",
        "240.0.0.1",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1:7f00:0:100:808:808",  # 127.0.0.1 where this network puts it (RFC 6052 2.2)
        "2002:a9fe:a9fe::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "fe80::1%eth0",
        "fd00::1",
        "ff05::1",
        "100::1",
        "",
        "localhost",
        "0x7f.1",
        "2130706433",
    ],
)
def test_everything_else_may_not(address: str) -> None:
    assert not is_public(address)
