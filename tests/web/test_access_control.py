import asyncio
import hashlib
import hmac
from contextlib import AsyncExitStack
from itertools import cycle

import httpx
import pytest

from surelabel.errors import InputError
from surelabel.web.access_control import (
    COOKIE,
    AccessControlMiddleware,
    AccessRules,
    create_login_routes,
    is_loopback_host,
)
from surelabel.web.request_limits import RequestLimits
from surelabel.web.wrong_tokens import WrongTokenLimit

TOKEN = "a-long-token"
N_WRONG_TOKENS = 3
PATH = ("GET", "/api/anything")
WRONG_HEADER = (PATH, {"headers": {"Authorization": "Bearer wrong"}})
RIGHT_HEADER = (PATH, {"headers": {"Authorization": f"Bearer {TOKEN}"}})
WRONG_LOGIN = (("POST", "/api/login"), {"json": {"token": "wrong"}})
RIGHT_LOGIN = (("POST", "/api/login"), {"json": {"token": TOKEN}})


def requests_of(rules, *requests, addresses=("127.0.0.1",)):
    """Send requests to an application that returns 200 for each path; the addresses take turns."""
    from fastapi import FastAPI

    application = FastAPI()

    @application.api_route("/api/anything", methods=["GET", "POST", "DELETE"])
    def anything():
        return {}

    limit = WrongTokenLimit(N_WRONG_TOKENS, 60.0)
    application.include_router(create_login_routes(rules, limit), prefix="/api")
    application.add_middleware(AccessControlMiddleware, rules=rules, wrong_tokens=limit)

    async def send():
        async with AsyncExitStack() as stack:
            clients = []
            for address in addresses:
                transport = httpx.ASGITransport(application, client=(address, 1))
                client = httpx.AsyncClient(transport=transport, base_url="http://localhost")
                clients.append(await stack.enter_async_context(client))
            return [
                await client.request(*request, **options)
                for client, (request, options) in zip(cycle(clients), requests, strict=False)
            ]

    return asyncio.run(send())


def status(rules, method="GET", path="/api/anything", **options):
    return requests_of(rules, ((method, path), options))[0].status_code


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "127.0.0.1:8000", "[::1]:8000"])
def test_loopback_names_are_allowed_with_any_port(host):
    assert AccessRules("127.0.0.1").allows_host(host)


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost@evil.org"),
        *("", "evil.example:8000", "localhost:port", "192.168.0.7", "localhost/..", "[::1", "a b"),
    ],
)
def test_another_name_that_is_rebound_to_this_machine_is_refused(host):
    assert not AccessRules("127.0.0.1").allows_host(host)


def test_a_server_of_all_addresses_allows_addresses_and_no_other_names():
    rules = AccessRules("0.0.0.0", TOKEN)
    assert rules.allows_host("192.168.0.7:8000")
    assert not rules.allows_host("evil.example")


def test_a_request_with_another_host_is_misdirected(served):
    response = served.client.get("/api/health", headers={"Host": f"evil.example:{served.port}"})
    assert response.status_code == 421


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 200),
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:9999"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}, 200),
    ],
)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_request_that_can_change_something_must_not_come_from_another_site(
    headers, expected, method
):
    assert status(AccessRules("127.0.0.1"), method, headers=headers) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "no-cors"}, 200),
    ],
)
def test_another_site_links_to_the_server_but_does_not_embed_its_images(headers, expected):
    assert status(AccessRules("127.0.0.1"), headers=headers) == expected


def test_a_cross_site_upload_is_refused_by_the_server(client):
    files = {"images": b"x"}
    response = client.post("/api/tag", files=files, headers={"Origin": "https://evil.example"})
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
        ({"Authorization": f"bearer {TOKEN}"}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": "Bearer \u00e4".encode("latin-1")}, 401),
        ({"Cookie": f"{COOKIE}={TOKEN}"}, 401),
        ({"Cookie": "\x01=\x02;;="}, 401),
    ],
)
def test_a_request_needs_the_token(headers, expected):
    assert status(AccessRules("0.0.0.0", TOKEN), headers=headers) == expected


def test_a_token_in_a_url_is_ignored():
    assert status(AccessRules("127.0.0.1", TOKEN), path=f"/api/anything?token={TOKEN}") == 401


def test_a_login_sets_a_cookie_that_scripts_and_other_sites_cannot_use():
    wrong, right, after = requests_of(
        AccessRules("127.0.0.1", TOKEN),
        (("POST", "/api/login"), {"json": {"token": "wrong"}}),
        (("POST", "/api/login"), {"json": {"token": TOKEN}}),
        (("GET", "/api/anything"), {}),
    )
    assert (wrong.status_code, right.status_code, after.status_code) == (401, 200, 200)
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie


@pytest.mark.parametrize("wrong", [WRONG_HEADER, WRONG_LOGIN])
@pytest.mark.parametrize("right", [RIGHT_HEADER, RIGHT_LOGIN])
def test_after_too_many_wrong_tokens_no_token_of_the_address_is_compared(wrong, right):
    requests = [*[wrong] * 4, right]
    responses = requests_of(AccessRules("0.0.0.0", TOKEN), *requests, addresses=["192.0.2.7"])
    assert [response.status_code for response in responses] == [401, 401, 401, 429, 429]
    assert 50 < int(responses[-1].headers["retry-after"]) <= 60
    assert "too many wrong tokens of this address" in responses[-1].json()["error"]


def test_the_right_token_is_accepted_from_other_addresses():
    requests = [*[WRONG_HEADER, RIGHT_HEADER] * 5]
    addresses = ["192.0.2.7", "192.0.2.8"]
    responses = requests_of(AccessRules("0.0.0.0", TOKEN), *requests, addresses=addresses)
    statuses = [response.status_code for response in responses]
    assert statuses == [401, 200, 401, 200, 401, 200, 429, 200, 429, 200]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("right", [RIGHT_HEADER, RIGHT_LOGIN])
def test_the_right_token_is_always_accepted_from_a_loopback_address(address, right):
    requests = [*[WRONG_LOGIN] * 4, right]
    responses = requests_of(AccessRules("127.0.0.1", TOKEN), *requests, addresses=[address])
    assert [response.status_code for response in responses] == [401, 401, 401, 429, 200]


def test_the_cookie_of_a_login_is_accepted_after_wrong_tokens():
    requests = [RIGHT_LOGIN, *[WRONG_LOGIN] * 4, (PATH, {})]
    responses = requests_of(AccessRules("0.0.0.0", TOKEN), *requests, addresses=["192.0.2.7"])
    assert [response.status_code for response in responses] == [200, 401, 401, 401, 429, 200]


def test_a_cookie_cannot_be_computed_from_the_token():
    rules, guesses = AccessRules("0.0.0.0", TOKEN), [TOKEN]
    for message in (b"surelabel session", b"", TOKEN.encode()):
        guesses.append(hmac.new(TOKEN.encode(), message, hashlib.sha256).hexdigest())
        guesses.append(hashlib.sha256(TOKEN.encode() + message).hexdigest())
    cookies = [{"Cookie": f"{COOKIE}={guess}"} for guess in guesses]
    assert [status(rules, headers=cookie) for cookie in cookies] == [401] * len(guesses)
    assert TOKEN not in rules.cookie_value
    assert rules.cookie_value not in repr(rules)


def test_the_cookie_of_an_earlier_server_is_no_login_and_not_a_wrong_token():
    earlier, rules = AccessRules("0.0.0.0", TOKEN), AccessRules("0.0.0.0", TOKEN)
    cookies = [{"headers": {"Cookie": f"{COOKIE}={r.cookie_value}"}} for r in (earlier, rules)]
    requests = [*[(PATH, cookies[0])] * (N_WRONG_TOKENS + 2), RIGHT_LOGIN]
    responses = requests_of(rules, *requests, (PATH, cookies[1]), addresses=["192.0.2.7"])
    assert [response.status_code for response in responses] == [*[401] * 5, 200, 200]


def test_requests_without_a_token_are_not_counted_as_wrong_tokens():
    headers = [{}, {"Cookie": f"{COOKIE}=wrong"}, {"Authorization": "Basic wrong"}]
    requests = [(PATH, {"headers": values}) for values in headers] * 2
    responses = requests_of(
        AccessRules("0.0.0.0", TOKEN), *requests, RIGHT_HEADER, addresses=["192.0.2.7"]
    )
    assert [response.status_code for response in responses] == [*[401] * 6, 200]


def test_the_server_limits_wrong_tokens(home, running_server):
    limits = RequestLimits(n_wrong_tokens=2, wrong_token_seconds=30.0)
    with running_server(home / "index", token=TOKEN, limits=limits) as served:
        responses = [served.client.get("/api/health", **WRONG_HEADER[1]) for _ in range(2)]
        responses.append(served.client.post("/api/login", json={"token": "wrong"}))
        assert [response.status_code for response in responses] == [401, 401, 429]
        assert "default-src 'none'" in responses[-1].headers["content-security-policy"]
        assert served.client.get("/api/health", **RIGHT_HEADER[1]).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "::", "example.org"])
def test_a_host_that_other_machines_reach_requires_a_token(host):
    with pytest.raises(InputError, match="requires --token; got no token"):
        AccessRules(host)
    assert AccessRules(host, TOKEN).token == TOKEN


@pytest.mark.parametrize("token", ["two words", "ä", "a\n", ""])
def test_a_token_that_no_header_can_contain_is_refused(token):
    with pytest.raises(InputError, match="printable ASCII"):
        AccessRules("127.0.0.1", token)


def test_only_loopback_addresses_are_loopback_hosts():
    loopback = ["localhost", "127.0.0.1", "127.8.9.1", "::1"]
    others = ["0.0.0.0", "10.0.0.1", "localhost.example"]
    assert [is_loopback_host(host) for host in [*loopback, *others]] == [True] * 4 + [False] * 3
