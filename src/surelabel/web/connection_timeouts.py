"""Close connections whose request does not arrive in time, or whose client does not read."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedConnection(H11Protocol):
    """HTTP connection that is closed if its client is too slow.

    Attributes:
        header_seconds: Maximum time from the beginning of the connection, or from the end of the
            last response, until the headers are complete, in seconds.
        send_seconds: Maximum time until the client accepts a part of a response, in seconds.
    """

    header_seconds = 10.0
    send_seconds = 30.0
    _header_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the timer for the first request."""
        super().connection_made(transport)
        self.start_header_timer()

    def handle_events(self) -> None:
        """Read a request, and stop the timer when its headers are complete."""
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self.stop_header_timer()

    def on_response_complete(self) -> None:
        """Start the timer for the next request."""
        self.start_header_timer()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start the timer for a client that has not accepted the buffered part of a response."""
        super().pause_writing()
        self._send_timer = self.loop.call_later(self.send_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timer for the buffered part of a response."""
        self._stop_send_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self.stop_header_timer()
        self._stop_send_timer()
        super().connection_lost(exc)

    def start_header_timer(self) -> None:
        """Start the timer for a request, or for the rest of the last response if it is closing."""
        self.stop_header_timer()
        seconds = self.send_seconds if self.transport.is_closing() else self.header_seconds
        self._header_timer = self.loop.call_later(seconds, self.close_without_request)

    def stop_header_timer(self) -> None:
        """Stop the timer for a request."""
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def close_without_request(self) -> None:
        """Close the connection after its buffered data are sent, or abort it if it is closing."""
        if self.transport.is_closing():
            self.transport.abort()
        else:
            self.transport.close()
            self.start_header_timer()

    def _stop_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None
