import builtins
import os
import socket
import sys

import pytest

from surelabel.cluster import ray_connection
from surelabel.cluster.ray_connection import (
    check_ray_is_installed,
    connect_to_ray,
    first_line_of_ray_error,
)
from surelabel.errors import ConfigError, MissingPart


def connect(address):
    with connect_to_ray(address, recognizer_bytes=0):
        raise AssertionError("there must be no cluster")


@pytest.fixture
def _not_connected(monkeypatch):
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)


def test_without_ray_the_error_names_the_extra(monkeypatch):
    importing = builtins.__import__

    def without_ray(name, *arguments, **more):
        if name.split(".")[0] == "ray":
            raise ImportError(name)
        return importing(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without_ray)
    with pytest.raises(MissingPart, match=r"pip install 'surelabel\[cluster\]'"):
        check_ray_is_installed()


@pytest.mark.usefixtures("_not_connected")
@pytest.mark.parametrize("address", ["elsewhere", "ray://host:10001", "host:port"])
def test_an_address_of_another_form_is_refused(address):
    with pytest.raises(ConfigError, match="must be local, auto or HOST:PORT"):
        connect(address)


@pytest.mark.usefixtures("_not_connected")
def test_an_address_that_does_not_answer_is_refused():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # not listening, so a connection is refused
        with pytest.raises(ConfigError, match="got: Connection refused"):
            connect(f"127.0.0.1:{unused.getsockname()[1]}")


@pytest.mark.usefixtures("_not_connected")
def test_a_server_that_is_not_ray_is_refused(monkeypatch):
    monkeypatch.setattr(ray_connection, "HEALTH_SECONDS", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as server:  # accepts connections, never answers
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ConfigError, match="got: no response from a Ray cluster"):
            connect(address)


@pytest.mark.usefixtures("_not_connected")
def test_a_folder_with_a_long_path_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / ("x" * 60)))
    with pytest.raises(ConfigError, match="Set RAY_TMPDIR to a"):
        connect("local")


def test_standard_error_is_unchanged_and_the_home_folder_has_no_token(cluster):
    assert not (os.path.exists(os.path.expanduser("~/.ray/auth_token")))
    assert sys.stderr.writable()


def test_an_error_of_several_lines_becomes_one():
    assert first_line_of_ray_error(ValueError("\x1b[36ma\x1b[39m\n\n b.\nc\nd")) == "a b. c"
