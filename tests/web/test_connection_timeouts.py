import http.client
import socket
import time

import pytest


@pytest.mark.parametrize("text", [b"", b"GET /api/health HTTP/1.1\r\nHost: loc"])
def test_a_connection_without_a_complete_request_is_closed(served, text):
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(text)
        start = time.monotonic()
        assert connection.recv(100) == b""
        assert 0.3 < time.monotonic() - start < 5


def test_slow_headers_do_not_extend_the_time(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        start = time.monotonic()
        for byte in b"GET /api/health HTTP/1.1\r\nX: " + b"a" * 40:
            try:
                connection.sendall(bytes([byte]))
            except ConnectionError:
                break
            time.sleep(0.05)
        assert time.monotonic() - start < 4


def test_a_connection_is_used_for_several_requests(served):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.connect()
    first = connection.sock
    for _ in range(3):
        connection.request("GET", "/api/health")
        response = connection.getresponse()
        response.read()
        assert (response.status, connection.sock) == (200, first)
        time.sleep(0.3)
    connection.close()
