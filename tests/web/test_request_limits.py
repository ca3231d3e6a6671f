import socket
import time

import pytest

HEAD = (
    "POST /api/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
)
LOGIN = "POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture
def connect(served):
    """Return a function that opens a connection and sends a text."""
    connections = []

    def open_connection(text=""):
        connection = socket.create_connection(("127.0.0.1", served.port), timeout=15)
        connections.append(connection)
        connection.sendall(text.encode())
        return connection

    yield open_connection
    for connection in connections:
        connection.close()


def status_of(connection):
    """Return the status code of the response, or 0 if the connection was closed without one."""
    try:
        head = connection.recv(4096).decode()
    except ConnectionError:
        return 0
    return int(head.split()[1]) if head else 0


@pytest.mark.parametrize("length", [10 * 10**9, 2**20 + 1, 10**18])
def test_a_body_that_is_too_long_is_refused_before_it_is_sent(connect, length, client):
    start = time.monotonic()
    assert status_of(connect(f"{HEAD}Content-Length: {length}\r\n\r\n")) == 413
    assert time.monotonic() - start < 1
    assert client.get("/api/health").status_code == 200


def test_a_chunked_body_is_measured_while_it_arrives(connect, client):
    connection = connect(f"{LOGIN}Transfer-Encoding: chunked\r\n\r\n")
    try:
        for _ in range(20):
            connection.sendall(b"800\r\n" + bytes(0x800) + b"\r\n")
            time.sleep(0.01)
    except ConnectionError:
        pass
    assert status_of(connection) == 413
    assert client.get("/api/health").status_code == 200


def test_a_body_that_is_shorter_than_its_length_times_out(connect, client):
    connection = connect(f"{LOGIN}Content-Length: 100\r\n\r\nabc")
    assert status_of(connection) == 408
    assert client.get("/api/health").status_code == 200


def test_a_slow_upload_times_out(connect, client):
    connection = connect(f"{LOGIN}Content-Length: 1000\r\n\r\n")
    start = time.monotonic()
    while time.monotonic() - start < 0.5:
        connection.sendall(b"-")
        time.sleep(0.05)
    assert status_of(connection) == 408
    assert time.monotonic() - start < 3
    assert client.get("/api/health").status_code == 200


def test_a_body_that_is_longer_than_its_length_does_not_stop_the_server(connect, client):
    connection = connect(f"{HEAD}Content-Length: 3\r\n\r\nabcGET / garbage")
    assert status_of(connection) in (400, 501)
    assert client.get("/api/health").status_code == 200


def test_a_long_query_string_is_refused(get):
    assert get("/api/search?q=" + "a" * 70_000)[0] == 414


def test_long_headers_are_refused(connect, client):
    text = "GET /api/health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + "a" * 200_000
    try:
        status = status_of(connect(text))
    except ConnectionError:
        status = 0
    assert status in (400, 0)
    assert client.get("/api/health").status_code == 200


def test_three_hundred_connections_are_answered_refused_or_closed(connect, client):
    text = "GET /api/search?q=lion HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    statuses = []
    connections = [connect() for _ in range(300)]
    for connection in connections:
        try:
            connection.sendall(text.encode())
        except ConnectionError:
            statuses.append(0)
    statuses += [status_of(connection) for connection in connections]
    for connection in connections:
        connection.close()
    assert {200} <= set(statuses) <= {0, 200, 503}
    assert client.get("/api/health").status_code == 200
