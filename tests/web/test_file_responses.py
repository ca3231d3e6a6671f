import asyncio
import os

import pytest
from starlette.requests import Request

from surelabel.errors import DataError
from surelabel.web.file_responses import CHUNK_BYTES, content_headers, file_response

SIZE = 2 * CHUNK_BYTES + 7
CONTENT = bytes(range(256)) * (SIZE // 256 + 1)


@pytest.fixture
def path(tmp_path):
    """Return a file of three chunks, the last of which is short."""
    file = tmp_path / "a.bin"
    file.write_bytes(CONTENT[:SIZE])
    return str(file)


def send(path, method="GET", **headers):
    """Return status, headers and body of the response to a request."""
    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "headers": fields}
    response = file_response(path, "image/png", Request(scope))
    messages = []

    async def receive():
        await asyncio.Event().wait()

    async def collect(message):
        messages.append(message)

    asyncio.run(response(scope, receive, collect))
    body = b"".join(message.get("body", b"") for message in messages[1:])
    return response.status_code, dict(response.headers), body


def test_a_whole_file_is_sent_with_its_length_and_its_tag(path):
    status, headers, body = send(path)
    assert (status, body) == (200, CONTENT[:SIZE])
    assert headers["content-length"] == str(SIZE)
    assert headers["accept-ranges"] == "bytes"
    assert headers["content-type"] == "image/png"


@pytest.mark.parametrize(
    ("value", "start", "stop"),
    [
        ("bytes=5-9", 5, 10),
        (f"bytes={CHUNK_BYTES - 1}-{CHUNK_BYTES}", CHUNK_BYTES - 1, CHUNK_BYTES + 1),
        ("bytes=1-", 1, SIZE),
        ("bytes=-9", SIZE - 9, SIZE),
    ],
)
def test_a_part_of_a_file_is_sent(path, value, start, stop):
    status, headers, body = send(path, range=value)
    assert (status, body) == (206, CONTENT[start:stop])
    assert headers["content-length"] == str(stop - start)
    assert headers["content-range"] == f"bytes {start}-{stop - 1}/{SIZE}"


def test_a_part_after_the_end_is_refused_with_the_size(path):
    status, headers, body = send(path, range=f"bytes={SIZE}-")
    assert status == 416
    assert headers["content-range"] == f"bytes */{SIZE}"
    assert b"must contain a byte of the file" in body


def test_several_ranges_are_answered_with_the_whole_file(path):
    status, headers, body = send(path, range="bytes=0-1,4-5")
    assert (status, len(body)) == (200, SIZE)
    assert "content-range" not in headers


def test_the_head_of_a_file_has_no_body(path):
    status, headers, body = send(path, "HEAD", range="bytes=0-1")
    assert (status, body) == (200, b"")
    assert headers["content-length"] == str(SIZE)
    assert headers == send(path)[1]


def test_a_part_of_a_file_that_was_changed_is_the_whole_file(path):
    tag = send(path)[1]["etag"]
    assert send(path, range="bytes=0-1", if_range=tag)[0] == 206
    with open(path, "ab") as file:
        file.write(b"more")
    status, headers, body = send(path, range="bytes=0-1", if_range=tag)
    assert (status, len(body)) == (200, SIZE + 4)
    assert headers["etag"] != tag


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_file_that_the_client_has_is_not_sent_again(path, method):
    tag = send(path)[1]["etag"]
    assert send(path, method, if_none_match=tag)[::2] == (304, b"")
    assert send(path, method, if_none_match='"another"')[0] == 200


def opened_paths():
    """Return the paths of the open files of this process."""
    names = os.listdir("/proc/self/fd")
    return [os.readlink(f"/proc/self/fd/{name}") for name in names if is_open(name)]


def is_open(name):
    return os.path.lexists(f"/proc/self/fd/{name}")


@pytest.mark.parametrize("n_messages", [0, 1, 2])
def test_the_file_is_closed_if_the_client_disconnects(path, n_messages):
    scope = {"type": "http", "method": "GET", "headers": []}
    response = file_response(path, "image/png", Request(scope))
    assert path in opened_paths()
    messages = []

    async def receive():
        await asyncio.Event().wait()

    async def disconnect(message):
        if len(messages) == n_messages:
            raise ConnectionError("disconnected")
        messages.append(message)

    with pytest.raises(ConnectionError, match="disconnected"):
        asyncio.run(response(scope, receive, disconnect))
    assert path not in opened_paths()


def test_a_link_is_not_followed(path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(DataError, match="cannot be opened"):
        send(str(tmp_path / "link"))


def test_a_browser_shows_images_and_stores_other_formats():
    assert content_headers("image/png")["content-disposition"] == "inline"
    assert content_headers("application/octet-stream")["content-disposition"] == "attachment"
