import asyncio

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

TOKEN = "a-long-token"


def requests_of(rules, *requests, host="localhost"):
    """Send requests to an application that returns 200 for each path, with one client."""
    from fastapi import FastAPI

    application = FastAPI()

    @application.api_route("/api/anything", methods=["GET", "POST", "DELETE"])
    def anything():
        return {}

    application.include_router(create_login_routes(rules), prefix="/api")
    application.add_middleware(AccessControlMiddleware, rules=rules)

    async def send():
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return [await client.request(*request, **options) for request, options in requests]

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
