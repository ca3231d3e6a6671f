"""Fixtures: an index with hostile files, and servers that run in threads of this process."""

import http.client
import os
import re
import shutil
import struct
import zlib
from contextlib import contextmanager
from copy import deepcopy
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from jsonschema import Draft202012Validator
from PIL import Image

from surelabel.data import collection
from surelabel.decisions import record_validation
from surelabel.errors import InputError
from surelabel.records import Predictions
from surelabel.retrieval import Index
from surelabel.web.request_limits import RequestLimits
from surelabel.web.serving import IndexServer

NAMES = ["lion", "coffee", "guitar", "<script>alert(1)</script>"]
N_PHOTOGRAPHS = 4
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
QUICK = RequestLimits(
    upload_bytes=2**20,
    body_bytes=2**12,
    body_seconds=0.6,
    header_seconds=0.6,
    image_seconds=20.0,
    n_connections=100,
)


def png_bomb(side=60_000):
    """Return a PNG file of a few bytes whose header states a large image."""

    def chunk(kind, data):
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(10_000))
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", pixels), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def write_rotated_image(path):
    """Write a JPEG of 300 x 100 stored pixels that is upright with 100 x 300, with metadata."""
    image = Image.new("RGB", (300, 100), "red")
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "secret description"
    image.save(path, exif=exif, comment=b"secret comment")


def write_index(folder, paths, root, *, names=NAMES, seed=0):
    """Write an index of random log-odds, and return it."""
    shape = (len(paths), len(names))
    logits = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    predictions = Predictions([str(path) for path in paths], names, logits, logits, "tested", "m")
    return Index.create(folder, predictions, root=root)


class ResponseSchemas:
    """Schemas of the responses of a server, in its OpenAPI description.

    Args:
        description: OpenAPI description.
    """

    def __init__(self, description):
        self.paths = description["paths"]
        self._components = deepcopy(description["components"])
        for schema in self._components["schemas"].values():
            if "properties" in schema:
                schema["additionalProperties"] = False  # each property must be described
        self._patterns = {
            path: re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))) for path in self.paths
        }

    def check(self, response):
        """Check that a response has a status, a type and a content of the description."""
        method = response.request.method.lower().replace("head", "get")
        for path, pattern in self._patterns.items():
            if pattern.fullmatch(response.url.path) and method in self.paths[path]:
                self._check(response, self.paths[path][method]["responses"])

    def _check(self, response, descriptions):
        status = str(response.status_code)
        contents = descriptions.get(status, descriptions["default"]).get("content", {})
        content_type = response.headers.get("content-type", "").partition(";")[0]
        group = content_type.partition("/")[0] + "/*"
        assert content_type in contents or group in contents or not response.read()
        if content_type == "application/json" and response.read():
            schema = contents[content_type]["schema"] | {"components": self._components}
            Draft202012Validator(schema).validate(response.json())


def response_schemas(application):
    """Return the schemas of the responses of an application, which is inside of others."""
    while not isinstance(application, FastAPI):
        application = application._application
    return ResponseSchemas(application.openapi())


def no_encoder(index):
    raise InputError("no recognizer")


@pytest.fixture(scope="session")
def photographs():
    """Return the paths of images of the package."""
    return [Path(path) for path in collection("scenes-80", split="test").paths[:N_PHOTOGRAPHS]]


@pytest.fixture(scope="session")
def home(tmp_path_factory, photographs):
    """Create a folder with images, hostile files and an index without a recognizer."""
    home = tmp_path_factory.mktemp("web")
    images, outside = home / "images", home / "outside"
    images.mkdir()
    outside.mkdir()
    for path in photographs:
        shutil.copy(path, images)
        shutil.copy(path, outside)
    paths = sorted(images.glob("*.jpg"))
    (images / "svg.jpg").write_text(SVG)
    (images / "bomb.png").write_bytes(png_bomb())
    (images / "<img src=x onerror=alert(1)>.jpg").write_bytes(paths[0].read_bytes())
    write_rotated_image(images / "rotated.jpg")
    os.symlink(outside / paths[1].name, images / "link.jpg")
    os.symlink(paths[1], images / "inner.jpg")
    os.symlink(outside / paths[2].name, outside / "outer-link.jpg")
    special = ["svg.jpg", "bomb.png", "<img src=x onerror=alert(1)>.jpg", "rotated.jpg"]
    special += ["link.jpg", "inner.jpg", "missing.jpg"]
    others = [outside / paths[3].name, outside / "outer-link.jpg"]
    indexed = [*paths, *(images / name for name in special), *others]
    write_index(home / "index", indexed, images)
    return home


@contextmanager
def running_server(folder, **options):
    """Run a server in a thread; yield its client, address and `IndexServer`.

    Each response to the client is compared with the description of the interface.
    """
    options = {"limits": QUICK, "load_encoder": no_encoder, "port": 0} | options
    server = IndexServer(str(folder), **options)
    schemas = response_schemas(server.application)
    hooks = {"response": [schemas.check]}
    thread = Thread(target=server.run)
    thread.start()
    try:
        with httpx.Client(
            base_url=server.url, timeout=30, trust_env=False, event_hooks=hooks
        ) as client:
            port = int(server.url.rpartition(":")[2])
            values = {"client": client, "url": server.url, "port": port, "server": server}
            yield SimpleNamespace(**values, schemas=schemas)
    finally:
        server.stop()
        thread.join()


@pytest.fixture(scope="session")
def served(home):
    """Start the server of the index without a recognizer."""
    with running_server(home / "index") as served:
        yield served


@pytest.fixture
def client(served):
    return served.client


@pytest.fixture
def get(served):
    """Return a function that returns the status and the content of a URL, which is sent as is."""

    def send(url):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=15)
        connection.request("GET", url)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, content.decode(errors="replace")

    return send


@pytest.fixture
def identifier(client):
    """Return a function that returns the identifier of an image by the end of its path."""
    hits = client.get("/api/search", params={"q": "lion", "limit": 200}).json()["hits"]

    def find(end):
        return next(hit["id"] for hit in hits if hit["path"].endswith(end))

    return find


@pytest.fixture(scope="module")
def _forked_recognizers():
    """Fork the worker processes of a module, which a new interpreter would start for seconds.

    The tests of uploads start new interpreters, as a server does.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surelabel.web.image_worker.get_context", lambda _: get_context("fork"))
        yield


@pytest.fixture(scope="session", name="running_server")
def _running_server():
    """Return the context manager that runs a server of an index."""
    return running_server


@pytest.fixture(scope="session", name="write_index")
def _write_index():
    """Return the function that writes an index of random log-odds."""
    return write_index


@pytest.fixture(name="png_bomb")
def _png_bomb():
    return png_bomb()


@pytest.fixture
def svg():
    return SVG.encode()


@pytest.fixture(scope="session")
def scenes():
    """Return 70 annotated scenes of the package."""
    return collection("scenes-80", split="test").take(range(70))


@pytest.fixture(scope="session")
def miscalibrated_index(tmp_path_factory, scenes):
    """Return a folder with the index of 70 scenes and its recognizer, whose log-odds are 2z + 1."""
    from surelabel.recognizer import Recognizer, index_images_with_recognizer

    home = tmp_path_factory.mktemp("miscalibrated")
    recognizer = Recognizer.zero_shot("tiny-vit", scenes.names)
    record = record_validation(recognizer.predict(scenes).logits, scenes.targets)
    recognizer.calibration = recognizer.calibration.recalibrated(2.0, 1.0, record)
    recognizer.save(home / "recognizer")
    paths = [str(path) for path in scenes.paths]
    index_images_with_recognizer(
        home / "index",
        recognizer,
        paths,
        model=str(home / "recognizer"),
        root=Path(paths[0]).parent,
    )
    return home
