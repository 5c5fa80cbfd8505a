import logging
from collections.abc import Generator

import pytest
import structlog

from personal_server.web.logs import CHATTY, configure_logging, mask_secrets

SECRETS = [f"pdpp_{kind}_{'x' * 43}" for kind in ("at", "rt", "ac", "dc", "ol", "is")] + [
    "urn:ietf:params:oauth:request_uri:" + "y" * 43
]


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Generator[None]:
    """What a server configures for its whole process ends with the test."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    quiet = {name: logging.getLogger(name).level for name in CHATTY}
    yield
    root.setLevel(level)
    root.handlers[:] = handlers
    for name, was in quiet.items():
        logging.getLogger(name).setLevel(was)
    structlog.reset_defaults()


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_wherever_it_stands(secret: str) -> None:
    assert mask_secrets(f"before {secret} after") == "before [secret] after"


def test_logs_go_to_standard_error_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    logging.getLogger("some.library").warning("called with %s", SECRETS[0])
    structlog.get_logger().info("token seen", value=SECRETS[1])
    out, err = capsys.readouterr()
    assert out == ""
    assert "called with [secret]" in err
    assert "token seen" in err
    assert "xxxx" not in err


def test_the_http_clients_lines_with_whole_urls_are_silenced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("debug")
    logging.getLogger("httpx2").info("GET http://127.0.0.1/v1/search?q=marker")
    assert "marker" not in capsys.readouterr().err
