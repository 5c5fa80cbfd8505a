"""Addresses in a multistatus: which item of which collection an href names.

Rule: an item lies in its collection, on the host that answered; one spelling of a path is one item.
"""

from __future__ import annotations

from urllib.parse import quote, unquote, urljoin, urlsplit

LONGEST_PATH = 1_000
_LONGEST_SHOWN = 200


def path_of(url: str) -> str:
    """The path of a URL in its one spelling; servers escape what they like."""
    segments = urlsplit(url).path.split("/")
    return "/".join(quote(unquote(segment), safe="@:!$&'()*+,;=~") for segment in segments) or "/"


def item_path(href: str, collection_url: str) -> str | None:
    """The path of an item of a collection; None for what lies elsewhere.

    In: `a%40b.ics`, `https://dav.example.org/ada/work/`.  Out: `/ada/work/a@b.ics`.
    """
    try:
        parts, home = urlsplit(href), urlsplit(collection_url)
        if parts.netloc and parts.netloc.lower() != home.netloc.lower():
            return None
        if any(unquote(segment) in (".", "..") for segment in parts.path.split("/")):
            return None
        path = path_of(urljoin(collection_url, href))
    except ValueError:
        return None
    inside = path_of(collection_url)
    inside = inside if inside.endswith("/") else f"{inside}/"
    is_inside = path.startswith(inside) and len(path) > len(inside)
    return path if is_inside and len(path) <= LONGEST_PATH else None


def shown_href(href: str) -> str:
    """An href that names no item, to be told of."""
    return quote(href, safe="/:.%")[:_LONGEST_SHOWN] or "-"
