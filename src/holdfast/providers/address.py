"""Where an address leads to. Deliberately absent: asking it."""

from __future__ import annotations

import ipaddress
import urllib.parse


def is_loopback(url: str) -> bool:
    """Whether an address is this machine itself, to which no proxy leads."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
