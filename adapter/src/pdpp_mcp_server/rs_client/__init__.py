"""The resource server as a client sees it: the port, its HTTP form, the credential cache."""

import logging

for _noisy in ("httpx2", "httpcore2"):
    logging.getLogger(_noisy).setLevel(logging.WARNING)  # they log whole URLs at INFO
