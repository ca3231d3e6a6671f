"""Close connections whose request does not arrive in time."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedConnection(H11Protocol):
    """HTTP connection that is closed if the headers of a request do not arrive in time.

    Attributes:
        header_seconds: Time from the beginning of the connection, or from the end of the last
            response, until the headers are complete.
    """

    header_seconds = 10.0
    _header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the time for the first request."""
        super().connection_made(transport)
        self._start_header_timer()

    def handle_events(self) -> None:
        """Read a request, and stop the time when its headers are complete."""
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_header_timer()

    def on_response_complete(self) -> None:
        """Start the time for the next request."""
        self._start_header_timer()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time."""
        self._stop_header_timer()
        super().connection_lost(exc)

    def _start_header_timer(self) -> None:
        self._stop_header_timer()
        self._header_timer = self.loop.call_later(self.header_seconds, self._close_without_request)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _close_without_request(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def timed_connection_class(header_seconds: float) -> type[TimedConnection]:
    """Return a class of connections with another time for the headers."""
    return type("TimedConnection", (TimedConnection,), {"header_seconds": header_seconds})
