import http.client
import socket
import time
from contextlib import closing, suppress

import pytest
from PIL import Image

from surelabel.web.request_limits import RequestLimits

N_CONNECTIONS = 8
IDLE_SECONDS = 1.0


@pytest.fixture(scope="module")
def crowded(home, running_server):
    """Start a server with few connections, which can be replaced after one second."""
    limits = RequestLimits(n_connections=N_CONNECTIONS, header_seconds=10 * IDLE_SECONDS)
    with running_server(home / "index", limits=limits) as served:
        yield served


@pytest.fixture
def connect(crowded):
    """Return a function that opens connections without a request."""
    connections = []

    def open_connections(count):
        opened = [
            socket.create_connection(("127.0.0.1", crowded.port), timeout=15) for _ in range(count)
        ]
        connections.extend(opened)
        return opened

    yield open_connections
    for connection in connections:
        connection.close()
    time.sleep(0.1)


def request_health(port):
    """Return the response to a request with its own connection, and its content."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=15)) as connection:
        connection.request("GET", "/api/health")
        response = connection.getresponse()
        return response, response.read().decode()


def is_available(port, seconds):
    """Return whether a request is answered after some time. Requests are repeated until then."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(ConnectionError):
            if request_health(port)[0].status == 200:
                return True
        time.sleep(0.1)
    return False


def test_connections_without_a_request_do_not_keep_others_from_the_server(crowded, connect):
    first = connect(1)[0]
    connect(2 * N_CONNECTIONS - 1)
    assert is_available(crowded.port, 5 * IDLE_SECONDS)
    first.settimeout(1.0)
    assert first.recv(100) == b""


def test_a_connection_that_was_used_can_be_replaced(crowded, connect):
    connections = connect(N_CONNECTIONS)
    for connection in connections:
        connection.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
    assert is_available(crowded.port, 4 * IDLE_SECONDS)


def test_too_many_new_connections_are_refused_with_json_and_security_headers(crowded, connect):
    connect(N_CONNECTIONS)
    response, content = request_health(crowded.port)
    assert response.status == 503
    assert content == '{"error":"There are too many connections. Repeat the request later."}'
    assert response.headers["retry-after"] == "1"
    assert "default-src 'none'" in response.headers["content-security-policy"]


def test_the_number_of_refused_connections_is_limited(crowded, connect):
    last = connect(4 * N_CONNECTIONS)[-1]
    last.settimeout(IDLE_SECONDS / 2)
    assert last.recv(100) == b""


@pytest.mark.parametrize(
    "text",
    [
        "this is no request\r\n\r\n",
        "GET /api/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: no number\r\n\r\n",
        "GET /api/health HTTP/1.1\r\nHost: localhost\r\nX: " + "a" * 96 * 2**10,
    ],
)
def test_what_is_no_request_is_refused_with_json_and_security_headers(crowded, connect, text):
    connection = connect(1)[0]
    connection.sendall(text.encode())
    response = http.client.HTTPResponse(connection)
    response.begin()
    assert response.status == 400
    assert response.headers["content-type"] == "application/json"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert b'{"error": "The request must be valid HTTP' in response.read()


def test_clients_that_do_not_read_do_not_keep_others_from_the_server(
    tmp_path, write_index, running_server
):
    Image.new("L", (4096, 4096)).save(tmp_path / "large.bmp")  # 16 MiB
    write_index(tmp_path / "index", [tmp_path / "large.bmp"], tmp_path)
    limits = RequestLimits(n_connections=2, send_seconds=1.0)
    with running_server(tmp_path / "index", limits=limits) as served:
        hits = served.client.get("/api/search", params={"q": "lion"}).json()["hits"]
        served.client.close()
        time.sleep(0.2)
        request = f"GET /api/images/{hits[0]['id']}/file HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connections = []
        for _ in range(2):
            connection = socket.create_connection(("127.0.0.1", served.port), timeout=15)
            connections.append(connection)
            connection.sendall(request.encode())
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        assert request_health(served.port)[0].status == 503
        assert is_available(served.port, 10.0)
        for connection in connections:
            connection.close()
