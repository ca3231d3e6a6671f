"""Limit the number of connections, and respond with JSON to invalid HTTP requests."""

import json
from typing import Any

import h11
from starlette.types import Receive, Scope, Send

from surelabel.web.connection_timeouts import TimedConnection
from surelabel.web.request_limits import RequestLimits, limit_response
from surelabel.web.security_headers import SECURITY_HEADERS, SecurityHeadersMiddleware

IDLE_SHARE = 0.1  # share of header_seconds; a connection that waits longer can be replaced
INVALID_REQUEST = (
    "The request must be valid HTTP, and its request line and headers must not be too long."
)
TOO_MANY_CONNECTIONS = "There are too many connections. Repeat the request later."


class LimitedConnection(TimedConnection):
    """HTTP connection of a server with a maximum number of connections.

    If there are too many connections, a new connection replaces the connection that has waited for
    a request for the longest time. If no connection has waited long enough, the new connection
    responds with the status 503. If there are twice as many connections as the maximum, the new
    connection is closed at once.

    Attributes:
        n_connections: Maximum number of connections.
        idle_connections: Connections of the server that wait for a request, with the time at which
            each began to wait, in the order of these times.
    """

    n_connections = 512
    idle_connections: "dict[LimitedConnection, float]"

    def connection_made(self, transport: Any) -> None:
        """Replace another connection if there are too many, or respond with the status 503."""
        n_others = len(self.connections)
        is_refused = n_others >= self.n_connections and not self._close_an_idle_connection()
        if is_refused:
            self.app = _respond_to_too_many_connections
        super().connection_made(transport)
        if is_refused and n_others >= 2 * self.n_connections:
            transport.abort()

    def start_header_timer(self) -> None:
        """Start the timer for a request, and record that the connection waits for a request."""
        super().start_header_timer()
        self.idle_connections[self] = self.loop.time()

    def stop_header_timer(self) -> None:
        """Stop the timer for a request, and remove the connection from the idle connections."""
        super().stop_header_timer()
        self.idle_connections.pop(self, None)

    def send_400_response(self, msg: str) -> None:
        """Respond to an invalid HTTP request with the status 400, and close the connection.

        Args:
            msg: Message of uvicorn, which is replaced.
        """
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # no response has begun
            content = json.dumps({"error": INVALID_REQUEST}).encode()
            headers = SECURITY_HEADERS | {
                "cache-control": "no-store",
                "content-type": "application/json",
                "content-length": str(len(content)),
                "connection": "close",
            }
            start = h11.Response(
                status_code=400, headers=list(headers.items()), reason=b"Bad Request"
            )
            for event in (start, h11.Data(data=content), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _close_an_idle_connection(self) -> bool:
        """Close the connection that has waited the longest, and return True.

        If no connection has waited long enough, no connection is closed, and the result is False.
        """
        connection, start = next(iter(self.idle_connections.items()), (None, 0.0))
        if connection is None or self.loop.time() - start < IDLE_SHARE * self.header_seconds:
            return False
        connection.close_without_request()
        return True


def limited_connection_class(limits: RequestLimits) -> type[LimitedConnection]:
    """Return the class of the connections of one server.

    Args:
        limits: Limits of the requests.
    """
    attributes = {
        "header_seconds": limits.header_seconds,
        "send_seconds": limits.send_seconds,
        "n_connections": limits.n_connections,
        "idle_connections": {},
    }
    return type("LimitedConnection", (LimitedConnection,), attributes)


async def _respond_with_503(scope: Scope, receive: Receive, send: Send) -> None:
    """Respond to the request of a connection that is over the limit."""
    response = limit_response(503, TOO_MANY_CONNECTIONS, retry=True)
    await response(scope, receive, send)


_respond_to_too_many_connections = SecurityHeadersMiddleware(_respond_with_503)
