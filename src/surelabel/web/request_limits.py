"""Limit the size, the time and the number of the requests of a server."""

import asyncio
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

UPLOAD_PATH = "/api/tag"
MEGABYTE = 2**20


@dataclass(frozen=True)
class RequestLimits:
    """Limits of the requests of a server.

    Attributes:
        query_bytes: Maximum length of the query string of a URL.
        header_bytes: Maximum length of the request line and all headers.
        upload_bytes: Maximum length of the body of an upload.
        body_bytes: Maximum length of the body of another request.
        body_seconds: Time in which the body must arrive.
        header_seconds: Time in which the request line and the headers must arrive.
        send_seconds: Time in which a client must accept a part of a response.
        image_seconds: Maximum time for decoding an image, or for computing its labels, its heat map
            or its uncertainty.
        n_requests: Maximum number of requests that are in work at the same time.
        n_uploads: Maximum number of uploads that are in work at the same time.
        n_connections: Maximum number of connections.
        n_wrong_tokens: Number of wrong tokens of a client address in the time
            ``wrong_token_seconds``.
        wrong_token_seconds: Time in which wrong tokens are counted.
    """

    query_bytes: int = 64 * 2**10
    header_bytes: int = 96 * 2**10
    upload_bytes: int = 64 * MEGABYTE
    body_bytes: int = 64 * 2**10
    body_seconds: float = 60.0
    header_seconds: float = 10.0
    send_seconds: float = 30.0
    image_seconds: float = 30.0
    n_requests: int = 128
    n_uploads: int = 32
    n_connections: int = 512
    n_wrong_tokens: int = 10
    wrong_token_seconds: float = 60.0


class RequestLimitsMiddleware:
    """Refuse requests that exceed a limit. The size of a body is measured while it arrives.

    Args:
        application: Inner application.
        limits: Limits of the requests.
    """

    def __init__(self, application: ASGIApp, limits: RequestLimits) -> None:
        self._application, self._limits = application, limits
        self._n_requests = self._n_uploads = 0  # needs no lock: the event loop has one thread

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request, or respond with the status 408, 413, 414 or 503."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        is_upload = scope["path"] == UPLOAD_PATH
        refusal = self._refusal(scope, is_upload=is_upload)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        self._n_requests += 1
        self._n_uploads += is_upload
        try:
            body = _LimitedBody(receive, self._body_limit(is_upload=is_upload), self._limits)
            await self._application(scope, body.receive, send)
        finally:
            self._n_requests -= 1
            self._n_uploads -= is_upload

    def _refusal(self, scope: Scope, *, is_upload: bool) -> JSONResponse | None:
        """Return the response to a request that exceeds a limit, or None."""
        limits, length = self._limits, Headers(scope=scope).get("content-length", "0")
        if len(scope["query_string"]) > limits.query_bytes:
            return limit_response(
                414, f"The query string must have at most {limits.query_bytes} bytes."
            )
        body_limit = self._body_limit(is_upload=is_upload)
        if not length.isdecimal() or int(length[:20]) > body_limit:
            return limit_response(413, _describe_body_limit(body_limit))
        if self._n_requests >= limits.n_requests or (
            is_upload and self._n_uploads >= limits.n_uploads
        ):
            return limit_response(
                503, "Too many requests are in work. Repeat the request later.", retry=True
            )
        return None

    def _body_limit(self, *, is_upload: bool) -> int:
        return self._limits.upload_bytes if is_upload else self._limits.body_bytes


class _LimitedBody:
    """Body of a request, whose length and time are limited while it arrives."""

    def __init__(self, receive: Receive, max_bytes: int, limits: RequestLimits) -> None:
        self._receive, self._max_bytes, self._limits = receive, max_bytes, limits
        self._n_bytes, self._is_complete = 0, False
        self._deadline = asyncio.get_running_loop().time() + limits.body_seconds

    async def receive(self) -> Message:
        """Return the next message.

        Raises:
            HTTPException: If the body is too long, or does not arrive in time.
        """
        if self._is_complete:  # the next message is the end of the connection
            return await self._receive()
        seconds = self._deadline - asyncio.get_running_loop().time()
        try:
            message = await asyncio.wait_for(self._receive(), max(seconds, 0.001))
        except TimeoutError as error:
            text = f"The body must arrive within {self._limits.body_seconds:g} seconds."
            raise HTTPException(408, text, {"connection": "close"}) from error
        self._n_bytes += len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        if self._n_bytes > self._max_bytes:
            text = _describe_body_limit(self._max_bytes)
            raise HTTPException(413, text, {"connection": "close"})
        return message


def _describe_body_limit(max_bytes: int) -> str:
    return f"The body must have at most {max_bytes} bytes. Send less data, such as fewer images."


def limit_response(status: int, message: str, *, retry: bool = False) -> JSONResponse:
    """Return the response to a request that exceeds a limit, with headers to close the connection.

    Args:
        status: Status code.
        message: Message of the error.
        retry: Whether the client can repeat the request after a second.
    """
    headers = {"connection": "close"} | ({"retry-after": "1"} if retry else {})
    return JSONResponse({"error": message}, status, headers)
