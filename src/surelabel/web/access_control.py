"""Check the host, the origin and the token of each request.

- The header ``Host`` must contain a loopback name or the host of the server. A page of another
  site whose name was rebound to this server (DNS rebinding) is therefore refused. If the host of
  the server is 0.0.0.0 or ::, any IP address and the name of this machine are allowed as well.
- A request that can change something must come from a page of this server, or from a program. Pages
  of other sites can link to the server, but not embed its responses.
- With a token, each request needs it in the header ``Authorization``, or in a cookie that the route
  ``/api/login`` sets. The cookie is a random number of this process, so that clients cannot compute
  it for guessed tokens. Tokens in URLs are ignored, because URLs are logged. Only the login, and
  the scripts, style sheets and icons of the page need no token. Without a token in the request,
  ``/`` and ``/report`` redirect to the login page.
- After too many wrong tokens, the tokens of a client address are refused without a comparison, so
  that they cannot be guessed. All programs of this machine share one address. Therefore, the right
  token is always accepted from a loopback address. The limit does not apply to cookies: a browser
  that still sends the cookie of an earlier process is not logged in, and can log in again.
"""

import hmac
import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from surelabel.counts import format_count
from surelabel.errors import InputError
from surelabel.web.error_responses import describe_error
from surelabel.web.status_responses import LoginResult
from surelabel.web.wrong_tokens import WrongTokenLimit, client_network

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
WILDCARD_ADDRESSES = frozenset({"0.0.0.0", "::"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SAME_SITE = frozenset({"same-origin", "none"})
COOKIE = "surelabel-session"
COOKIE_BYTES = 32  # of its random value
LOGIN_PATH = "/api/login"
LOGIN_PAGE = "/login"
STATIC_PREFIX = "/static/"  # scripts and styles of the page, which are public
PAGES = frozenset({"/", "/report"})  # without a token, they redirect to the login page
BEARER = {"www-authenticate": "Bearer"}
NO_TOKEN = (
    "The request needs the token of the server. Send the header Authorization: Bearer TOKEN, or "
    "log in with POST /api/login."
)


@dataclass(frozen=True)
class AccessRules:
    """Host and token of a server.

    Attributes:
        host: Name or address at which the server listens.
        token: Token of the requests, or None if requests need no token.
        cookie_value: Value of the cookie of a login, a random number of this object.

    Raises:
        InputError: If the host is not a loopback address and there is no token, or if the token is
            not printable ASCII without spaces.
    """

    host: str
    token: str | None = None
    cookie_value: str = field(
        default_factory=lambda: secrets.token_hex(COOKIE_BYTES), init=False, repr=False
    )

    def __post_init__(self) -> None:
        if self.token is not None and not (
            self.token.isascii() and self.token.isprintable() and self.token.split() == [self.token]
        ):
            raise InputError(
                "The token must consist of printable ASCII characters without spaces; got another "
                "text. Choose another token."
            )
        if self.token is None and not is_loopback_host(self.host):
            raise InputError(
                f"--host {self.host} makes the server available to other machines, which requires "
                "--token; got no token. Add --token, or remove --host."
            )

    def allows_host(self, value: str) -> bool:
        """Return whether the header ``Host`` has an allowed value, with any port."""
        name = _host_name(value)
        if name in LOOPBACK_NAMES or name == self.host.lower():
            return True
        # a wildcard has no name to compare; a rebound name is neither an address nor the name of
        # this machine
        return self.host in WILDCARD_ADDRESSES and (
            _is_ip_address(name) or name == socket.gethostname().lower()
        )

    def allows_token(self, token: str) -> bool:
        """Return whether a token is that of the server, in constant time, or none is needed."""
        return self.token is None or hmac.compare_digest(token.encode(), self.token.encode())

    def allows_cookie(self, header: str) -> bool:
        """Return whether the header ``Cookie`` contains the cookie of a login, in constant time."""
        try:
            cookie = SimpleCookie(header).get(COOKIE)
        except CookieError:
            return False
        value = "" if cookie is None else cookie.value
        return hmac.compare_digest(value.encode(), self.cookie_value.encode())


class AccessControlMiddleware:
    """Refuse requests with another host, another origin or without the token.

    Args:
        application: Inner application.
        rules: Host and token of the server.
        wrong_tokens: Limit of wrong tokens.
    """

    def __init__(
        self, application: ASGIApp, rules: AccessRules, wrong_tokens: WrongTokenLimit
    ) -> None:
        self._application, self._rules = application, rules
        self._wrong_tokens = wrong_tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request, or respond with the status 303, 401, 403, 421 or 429."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._application)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the response to a request that is refused, or None."""
        headers, rules = Headers(scope=scope), self._rules
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not rules.allows_host(hosts[0]):
            return _refusal_response(421, "The header Host must contain the host of this server.")
        is_safe = scope["method"] in SAFE_METHODS
        is_allowed = _is_top_level_page if is_safe else _is_same_origin
        if not is_allowed(headers, hosts[0]):
            return _refusal_response(403, "The request must come from a page of this server.")
        if rules.token is None or _needs_no_token(scope["path"], scope["method"]):
            return None
        if any(rules.allows_cookie(cookie) for cookie in headers.getlist("cookie")):
            return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and token.strip():
            return refuse_wrong_token(token.strip(), scope, rules, self._wrong_tokens, NO_TOKEN)
        if is_safe and scope["path"] in PAGES:
            return RedirectResponse(LOGIN_PAGE, 303)
        return _refusal_response(401, NO_TOKEN, BEARER)


class LoginToken(BaseModel):
    """Body of a login."""

    token: str = Field(max_length=1000)


def create_login_routes(rules: AccessRules, wrong_tokens: WrongTokenLimit) -> APIRouter:
    """Return the route ``/login`` of the API, which compares the token and sets the cookie.

    Args:
        rules: Host and token of the server.
        wrong_tokens: Limit of wrong tokens.
    """
    router = APIRouter(tags=["status"])

    @router.post(
        "/login",
        summary="Log in",
        response_model=LoginResult,
        responses={
            401: describe_error("The token is wrong."),
            429: describe_error("There were too many wrong tokens of the address of the client."),
        },
    )
    async def login(body: LoginToken, request: Request) -> JSONResponse:
        """Set an HttpOnly cookie, with which a browser is logged in until it is closed.

        The login also ends with the process of the server. If the server has no token, no cookie is
        set.
        """
        refusal = refuse_wrong_token(
            body.token, request.scope, rules, wrong_tokens, "The token is wrong."
        )
        if refusal is not None:
            return refusal
        response = JSONResponse({"status": "ok"})
        if rules.token is not None:
            response.set_cookie(COOKIE, rules.cookie_value, httponly=True, samesite="strict")
        return response

    return router


def refuse_wrong_token(
    token: str, scope: Scope, rules: AccessRules, wrong_tokens: WrongTokenLimit, message: str
) -> JSONResponse | None:
    """Return the response to a wrong token, or None if the token is right.

    After too many wrong tokens of an address, the status is 429. The token is then compared only if
    the address is a loopback address.

    Args:
        token: Token of the request.
        scope: Request.
        rules: Host and token of the server.
        wrong_tokens: Limit of wrong tokens, to which a wrong token is added.
        message: Message of the response with the status 401.
    """
    address = client_network((scope.get("client") or ("", 0))[0])
    seconds = wrong_tokens.seconds_to_wait(address)
    if (not seconds or is_loopback_host(address)) and rules.allows_token(token):
        return None
    if seconds:
        text = (
            "There were too many wrong tokens of this address. Send the token of the server after "
            f"{format_count(seconds, 'second')}."
        )
        return _refusal_response(429, text, {"retry-after": str(seconds)})
    wrong_tokens.add(address)
    return _refusal_response(401, message, BEARER)


def is_loopback_host(host: str) -> bool:
    """Return whether a name or address can be reached from this machine only.

    Example:
        >>> is_loopback_host("127.0.0.1"), is_loopback_host("::1"), is_loopback_host("0.0.0.0")
        (True, True, False)
    """
    return host == "localhost" or (_is_ip_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _host_name(value: str) -> str:
    """Return the name or address of a header ``Host`` without brackets and port, in lower case."""
    try:
        parts = urlsplit(f"//{value}")
        _ = parts.port
    except ValueError:
        return ""
    is_plain = parts.netloc == value and "@" not in value
    return (parts.hostname or "") if is_plain else ""


def _is_top_level_page(headers: Headers, host: str) -> bool:
    """Return whether a request comes from this server or a program, or the user follows a link.

    Pages of other sites can therefore neither embed images of the server nor measure its response
    times.
    """
    is_link = headers.get("sec-fetch-mode") == "navigate"
    return is_link or headers.get("sec-fetch-site", "none") in SAME_SITE


def _is_same_origin(headers: Headers, host: str) -> bool:
    """Return whether a request comes from a page of this server, or from a program."""
    if headers.get("sec-fetch-site", "none") not in SAME_SITE:
        return False
    origins = headers.getlist("origin")
    return all(origin in (f"http://{host}", f"https://{host}") for origin in origins)


def _needs_no_token(path: str, method: str) -> bool:
    """Return whether a request is a login, or reads the login page or a static file of the page."""
    if method in SAFE_METHODS:
        return path == LOGIN_PAGE or path.startswith(STATIC_PREFIX)
    return (path, method) == (LOGIN_PATH, "POST")


def _refusal_response(
    status: int, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    return JSONResponse({"error": message}, status, {"connection": "close", **(headers or {})})
