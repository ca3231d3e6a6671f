import json
import logging
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest
from huggingface_hub import constants

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Hub(BaseHTTPRequestHandler):
    """The addresses of the hub that its client reads: the start page, files and their list."""

    def do_GET(self):
        self.server.requests.append(f"{self.command} {self.path}")
        file = re.fullmatch(r"/(.+)/resolve/[^/]+/(.+)", self.path)
        listing = re.fullmatch(r"/api/models/(.+)/(?:revision|tree)/[^/?]+(?:\?.*)?", self.path)
        repository = (file or listing) and self.server.folder / (file or listing)[1]
        if self.path == "/":
            self.answer(200, b"")
        elif not repository or not repository.is_dir():
            self.answer(404, b"", **{"X-Error-Code": "RepoNotFound"})
        elif (repository / "GATED").exists():
            self.answer(403, b"")
        elif listing:
            self.answer(200, self.listing(repository), **{"Content-Type": "application/json"})
        elif (repository / file[2]).is_file():
            self.answer(200, (repository / file[2]).read_bytes(), ETag=f'"{file[2]}"')
        else:
            self.answer(404, b"", **{"X-Error-Code": "EntryNotFound"})

    do_HEAD = do_GET

    def listing(self, repository):
        files = [{"rfilename": file.name} for file in repository.iterdir()]
        tree = [
            {"type": "file", "path": f.name, "size": f.stat().st_size, "oid": f.name}
            for f in repository.iterdir()
        ]
        description = {"id": "x", "sha": COMMIT, "siblings": files}
        return json.dumps(tree if "/tree/" in self.path else description).encode()

    def answer(self, status, content, **headers):
        self.send_response(status)
        headers = {"X-Repo-Commit": COMMIT, "Content-Length": str(len(content)), **headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A local hub without repositories.

    ``repository(name)`` is a new folder in ``folder`` whose files the hub serves, and
    ``requests`` is what the client requested. ``GATED`` marks a repository that refuses.
    """
    with HTTPServer(("127.0.0.1", 0), _Hub) as server:
        server.folder, server.requests = tmp_path / "hub", []
        threading.Thread(target=server.serve_forever, args=[0.01]).start()
        address = f"http://127.0.0.1:{server.server_port}"
        files = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))

        def repository(name):
            (server.folder / name).mkdir(parents=True)
            return server.folder / name

        yield SimpleNamespace(folder=server.folder, repository=repository, requests=server.requests)
        server.shutdown()


@pytest.fixture
def log_lines():
    """The messages that the package logs with the level INFO."""
    lines, handler, logger = [], logging.Handler(), logging.getLogger("surelabel")
    handler.emit = lambda record: lines.append(record.getMessage())
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)
