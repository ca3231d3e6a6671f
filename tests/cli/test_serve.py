import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

from surelabel.records import Predictions
from surelabel.retrieval import Index
from surelabel.web.serving import open_correction_log


@pytest.fixture
def index(tmp_path):
    """Write an index of two images without files and without a recognizer."""
    logits = np.zeros((2, 1), np.float32)
    paths = [str(tmp_path / "a.jpg"), str(tmp_path / "b.jpg")]
    Index.create(tmp_path / "index", Predictions(paths, ["dog"], logits, logits, "tested", "m"))
    return tmp_path / "index"


def error_of(done):
    """Return the one line of an error with exit code 1."""
    assert done.code == 1
    assert done.err.count("\n") == 1
    return done.err


def test_a_server_answers_and_stops_with_one_line(index):
    command = [sys.executable, "-m", "surelabel", "serve", str(index), "--port", "0", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, env=os.environ | {"SURELABEL_TOKEN": "t"}) as server:
        started = json.loads(server.stdout.readline())
        assert started["images"] == 2
        request = urllib.request.Request(
            f"{started['url']}/api/search?q=dog", headers={"Authorization": "Bearer t"}
        )
        with urllib.request.urlopen(request, timeout=20) as response:
            assert len(json.load(response)["hits"]) == 2
        time.sleep(0.2)
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=20)
    assert (server.returncode, out, err) == (0, "", "The server was stopped.\n")


def test_another_host_without_a_token_is_refused(run, index):
    assert "requires --token" in error_of(run("serve", index, "--host", "0.0.0.0"))


def test_a_missing_index_is_refused(run, tmp_path):
    assert "must be the folder of an index" in error_of(run("serve", tmp_path / "nothing"))


def test_an_empty_index_is_refused(run, index, tmp_path):
    Index.open(index).remove([str(tmp_path / "a.jpg"), str(tmp_path / "b.jpg")])
    assert "got an empty index" in error_of(run("serve", index))


def test_a_port_that_is_in_use_is_refused(run, index):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"Port {port} of 127.0.0.1 must be free" in error_of(
            run("serve", index, "--port", port)
        )


def test_an_unknown_host_is_refused(run, index):
    message = error_of(run("serve", index, "--host", "no.such.invalid", "--token", "t"))
    assert "--host must be a name or address of this machine" in message


def test_a_missing_extra_is_named(run, index, monkeypatch):
    monkeypatch.setattr("surelabel.web.web_extra.WEB_PACKAGES", {"no_such_module": "fastapi"})
    assert "pip install 'surelabel[web]'" in error_of(run("serve", index))


def test_the_first_correction_creates_the_file_beside_the_index(index):
    server = open_server(index)
    assert server == index.with_name("index.corrections.csv")
    assert not server.exists()
    assert open_server(f"{index}{os.sep}") == server


def open_server(folder, path=None):
    """Return the path of the file of corrections of a server that is not started."""
    return open_correction_log(path, str(folder)).path


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("index/x.csv", "must be a .csv file outside of the folder of the index"),
        ("x.txt", "must be a .csv file"),
        ("missing/x.csv", "The folder of --corrections must exist"),
        ("damaged.csv", "line 2: the cell in the column corrected must be 1, 0"),
    ],
)
def test_an_invalid_file_of_corrections_is_refused(run, index, file, message):
    damaged = index.with_name("damaged.csv")
    damaged.write_text("path,label,corrected\na.jpg,dog,2\n")
    path = index.with_name(file) if "/" not in file else index.parent / file
    assert message in error_of(run("serve", index, "--port", "0", "--corrections", path))
    assert damaged.read_text().endswith("2\n")


def test_a_missing_report_is_refused(run, index, tmp_path):
    message = error_of(run("serve", index, "--report", tmp_path / "nothing.html"))
    assert "nothing.html must be a readable file" in message
