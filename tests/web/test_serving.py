import socket

import pytest

from surelabel.errors import InputError
from surelabel.web import serving
from surelabel.web.recognizer_service import RecognizerService
from surelabel.web.serving import IndexServer, open_listening_socket


@pytest.mark.parametrize("port", [-1, 65_536, 70_000])
def test_a_port_out_of_range_is_refused(port):
    with pytest.raises(InputError, match=f"--port must be in 0 to 65535; got {port}"):
        open_listening_socket("127.0.0.1", port)


def test_port_0_is_any_free_port():
    with open_listening_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        assert port > 0
        with socket.create_connection(("127.0.0.1", port), timeout=10):
            pass


@pytest.mark.parametrize("part", ["create_application", "uvicorn.Config"])
def test_a_server_that_cannot_be_created_closes_its_socket_and_its_processes(
    home, monkeypatch, part
):
    opened, closed, close = [], [], RecognizerService.close

    def open_socket(host, port):
        opened.append(open_listening_socket(host, port))
        return opened[-1]

    def record_close(service):
        closed.append(service)
        close(service)

    def fail(*_, **__):
        raise RuntimeError("not created")

    monkeypatch.setattr(serving, "open_listening_socket", open_socket)
    monkeypatch.setattr(RecognizerService, "close", record_close)
    monkeypatch.setattr(f"surelabel.web.serving.{part}", fail)
    with pytest.raises(RuntimeError, match="not created"):
        IndexServer(str(home / "index"), load_encoder=lambda index: None, port=0)
    assert [listening.fileno() for listening in opened] == [-1]
    assert len(closed) == 1
