"""Add security headers to each response, with which a browser restricts its use."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY_HEADER = "content-security-policy"


def security_policy(*, images: str = "'self'") -> str:
    """Return a Content-Security-Policy that forbids inline scripts and styles.

    Args:
        images: Allowed sources of images, as in the directive ``img-src``.
    """
    return (
        f"default-src 'none'; img-src {images}; script-src 'self'; style-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


SECURITY_HEADERS = {
    POLICY_HEADER: security_policy(),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
DEFAULT_CACHING = (b"cache-control", b"no-store")
_ENCODED = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


class SecurityHeadersMiddleware:
    """Add the security headers, and ``cache-control: no-store`` if no caching is defined.

    Headers that the response already contains are not replaced.

    Args:
        application: Inner application.
    """

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                added = [pair for pair in (*_ENCODED, DEFAULT_CACHING) if pair[0] not in names]
                headers = [*message["headers"], *added]
                message = {**message, "headers": headers}
            await send(message)

        await self._application(scope, receive, send_with_headers)
