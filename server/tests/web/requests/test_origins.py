import pytest

from pdpp_kernel.errors import MisdirectedRequest
from personal_server.settings import from_env
from personal_server.web.origins import OriginPolicy, origin_policy

PROXY = {"PDPP_TRUSTED_PROXIES": "10.0.0.0/8"}


def policy(**environ: str) -> OriginPolicy:
    return origin_policy(from_env(environ))


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7662", "localhost:7662", "[::1]:7662", "LOCALHOST:7662"]
)
def test_each_loopback_name_is_an_origin_of_its_own(host: str) -> None:
    assert policy().origin_of("127.0.0.1", "http", {"host": host}) == f"http://{host.lower()}"


@pytest.mark.parametrize(
    "host", ["", "evil.example", "127.0.0.1", "127.0.0.1:7663", "localhost.:7662"]
)
def test_another_host_is_misdirected(host: str) -> None:
    with pytest.raises(MisdirectedRequest):
        policy().origin_of("127.0.0.1", "http", {"host": host})


def test_the_scheme_of_a_fixed_origin_is_its_own() -> None:
    fixed = policy(PDPP_PUBLIC_URL="https://me.example")
    for host in ("me.example", "ME.example", "me.example:443"):
        assert fixed.origin_of("192.0.2.1", "http", {"host": host}) == "https://me.example"
    for host in ("me.example:80", "me.example:8443", "me.example:"):
        with pytest.raises(MisdirectedRequest):
            fixed.origin_of("192.0.2.1", "http", {"host": host})


def test_forwarded_headers_count_from_a_trusted_proxy_only() -> None:
    fixed = policy(PDPP_PUBLIC_URL="https://me.example", **PROXY)
    headers = {
        "host": "inner:80",
        "x-forwarded-host": "evil, me.example",
        "x-forwarded-proto": "https",
    }
    assert fixed.origin_of("10.1.2.3", "http", headers) == "https://me.example"
    with pytest.raises(MisdirectedRequest):
        fixed.origin_of("192.0.2.1", "http", headers)


def test_a_forwarded_origin_needs_https_a_trusted_peer_and_a_listed_host() -> None:
    forwarded = policy(
        PDPP_PUBLIC_URL="forwarded", PDPP_TRUSTED_HOSTS="me.example,you.example:8443", **PROXY
    )
    headers = {"host": "x", "x-forwarded-host": "you.example:8443", "x-forwarded-proto": "https"}
    assert forwarded.origin_of("10.0.0.1", "http", headers) == "https://you.example:8443"
    for peer, changed in (
        ("192.0.2.1", {}),
        ("10.0.0.1", {"x-forwarded-proto": "http"}),
        ("10.0.0.1", {"x-forwarded-host": "evil.example"}),
    ):
        with pytest.raises(MisdirectedRequest):
            forwarded.origin_of(peer, "http", headers | changed)


@pytest.mark.parametrize(
    ("environ", "peer", "headers", "reason"),
    [
        ({}, "127.0.0.1", {"host": "127.0.0.1"}, "port_missing"),
        ({}, "127.0.0.1", {"host": "me.example"}, "unknown_host"),
        (
            {"PDPP_PUBLIC_URL": "https://me.example:8443"},
            "127.0.0.1",
            {"host": "ME.example"},
            "port_missing",
        ),
        ({"PDPP_PUBLIC_URL": "forwarded"}, "192.0.2.1", {"host": "me.example"}, "untrusted_proxy"),
        ({"PDPP_PUBLIC_URL": "forwarded"}, "10.0.0.1", {"host": "me.example"}, "not_https"),
    ],
)
def test_a_misdirected_request_is_told_why(
    environ: dict[str, str], peer: str, headers: dict[str, str], reason: str
) -> None:
    if environ.get("PDPP_PUBLIC_URL") == "forwarded":
        environ = {**environ, **PROXY, "PDPP_TRUSTED_HOSTS": "me.example"}
    with pytest.raises(MisdirectedRequest) as refused:
        policy(**environ).origin_of(peer, "http", headers)
    assert refused.value.members["reason"] == reason
    assert refused.value.members["next_step"]


def test_the_client_address_is_the_last_hop_that_is_not_a_proxy() -> None:
    behind = policy(**PROXY)
    headers = {"x-forwarded-for": "203.0.113.9, 198.51.100.7, 10.0.0.2"}
    assert behind.client_address("10.0.0.1", headers) == "198.51.100.7"
    assert behind.client_address("192.0.2.1", headers) == "192.0.2.1"
    assert policy().client_address("10.0.0.1", headers) == "10.0.0.1"


HOPS = {"host": "me.example", "x-forwarded-for": "192.0.2.66, 203.0.113.9"}


def test_a_proxy_on_this_machine_says_where_a_client_is() -> None:
    served = policy(PDPP_PUBLIC_URL="https://me.example")
    for peer in ("127.0.0.1", "::1"):
        assert served.client_address(peer, HOPS) == "203.0.113.9"
    assert served.client_address("192.0.2.1", HOPS) == "192.0.2.1"
    assert served.client_address("127.0.0.1", {}) == "127.0.0.1"


@pytest.mark.parametrize(
    ("last", "address"),
    [
        ("203.0.113.9:5123", "203.0.113.9"),
        ("[2001:db8::7]:443", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("unknown", "127.0.0.1"),
        ("", "127.0.0.1"),
    ],
)
def test_only_an_address_is_taken_from_it(last: str, address: str) -> None:
    served = policy(PDPP_PUBLIC_URL="https://me.example")
    headers = {"x-forwarded-for": f"192.0.2.66, {last}"}
    assert served.client_address("127.0.0.1", headers) == address


def test_a_proxy_on_this_machine_is_believed_nothing_else() -> None:
    served = policy(PDPP_PUBLIC_URL="https://me.example")
    forged = {"host": "inner", "x-forwarded-host": "me.example", "x-forwarded-proto": "https"}
    with pytest.raises(MisdirectedRequest):
        served.origin_of("127.0.0.1", "http", forged)


@pytest.mark.parametrize(
    "environ",
    [{}, {"PDPP_PUBLIC_URL": "https://me.example", "PDPP_BIND": "0.0.0.0:7662"}],
    ids=["loopback origin", "reachable listener"],
)
def test_without_a_proxy_before_us_the_peer_is_the_client(environ: dict[str, str]) -> None:
    assert policy(**environ).client_address("127.0.0.1", HOPS) == "127.0.0.1"
