"""Limit the number of wrong tokens of a client address."""

import ipaddress
import math
import time
from collections import OrderedDict, deque

MAX_ADDRESSES = 4096  # addresses whose wrong tokens are stored, in about 4 MB
IPV6_PREFIX_BYTES = 8  # one client can use all addresses of such a network


class WrongTokenLimit:
    """Times of the last wrong tokens of each client address; used in one thread.

    Args:
        n_tokens: Number of wrong tokens in the interval after which an address must wait, >= 1.
        seconds: Length of the interval in seconds.
        max_addresses: Maximum number of stored addresses, >= 1. The address whose last wrong token
            is the oldest is removed first.
    """

    def __init__(
        self, n_tokens: int, seconds: float, *, max_addresses: int = MAX_ADDRESSES
    ) -> None:
        self._n_tokens, self._seconds, self._max_addresses = n_tokens, seconds, max_addresses
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of addresses."""
        return len(self._times)

    def add(self, address: str) -> None:
        """Add a wrong token of an address."""
        times = self._times.setdefault(address, deque(maxlen=self._n_tokens))
        times.append(time.monotonic())
        self._times.move_to_end(address)
        if len(self._times) > self._max_addresses:
            self._times.popitem(last=False)

    def seconds_to_wait(self, address: str) -> int:
        """Return the seconds until an address can send a token again, rounded up; 0 is now."""
        times = self._times.get(address)
        if times is None or len(times) < self._n_tokens:
            return 0
        return max(0, math.ceil(times[0] + self._seconds - time.monotonic()))


def client_network(address: str) -> str:
    """Return the IPv4 address of a client, or the first 64 bits of its IPv6 address.

    An IPv4 address that is mapped to IPv6 is returned as IPv4. A loopback address is returned
    completely, and a text that is not an IP address unchanged.

    Example:
        >>> client_network("192.0.2.7"), client_network("2001:db8::7"), client_network("::1")
        ('192.0.2.7', '2001:db8::', '::1')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address) or parsed.is_loopback:
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Address(parsed.packed[:IPV6_PREFIX_BYTES] + bytes(8)))
