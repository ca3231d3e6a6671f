"""Respond with the bytes of an image file, or with the part that a client requests."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import blake2b
from typing import Any, BinaryIO

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from surelabel.web.byte_ranges import ByteRange, parse_byte_range
from surelabel.web.file_access import open_servable_file

CHUNK_BYTES = 2**18


def file_response(real_path: str, content_type: str, request: Request) -> Response:
    """Return the response to a GET or HEAD request for a file, which is read in parts.

    The status is 206 for a part, 304 for a file that the client has, and 416 for a part that
    contains no byte of the file. The ETag of the file changes with its path, inode, size and
    modification time.

    Args:
        real_path: Result of ``resolve_servable_file`` for a file.
        content_type: Content type of the file.
        request: Request of the client.

    Raises:
        DataError: If the file cannot be opened, or was replaced while it was opened.
    """
    with ExitStack() as stack:
        stream, status = stack.enter_context(open_servable_file(real_path))
        size, tag = status.st_size, _file_tag(real_path, status)
        headers = content_headers(content_type) | {"accept-ranges": "bytes", "etag": tag}
        if has_current_file(request, tag):
            return Response(status_code=304, headers=headers)
        part = _requested_part(request, size, tag)
        if part is not None and not part.n_bytes:
            return _unsatisfiable_response(size)
        code = 200 if part is None else 206
        if part is not None:
            headers["content-range"] = part.content_range(size)
        sent_part = part or ByteRange(0, size)
        headers["content-length"] = str(sent_part.n_bytes)
        if request.method == "HEAD":
            return Response(status_code=code, headers=headers, media_type=content_type)
        chunks = _read_chunks(stream, sent_part)
        return _ClosingResponse(stack.pop_all(), chunks, code, headers, content_type)


def content_headers(content_type: str) -> dict[str, str]:
    """Return the headers of an image. A browser downloads a file whose format is not an image type.

    Args:
        content_type: Content type of the image.
    """
    disposition = "inline" if content_type.startswith("image/") else "attachment"
    return {"cache-control": "private, no-cache", "content-disposition": disposition}


def has_current_file(request: Request, tag: str) -> bool:
    """Return whether the client has the content with a tag.

    Args:
        request: Request of the client.
        tag: Value of the header ``etag``.
    """
    return request.headers.get("if-none-match") == tag


class _ClosingResponse(StreamingResponse):
    """Response that closes a file, also if the client disconnects before the first part."""

    def __init__(self, stack: ExitStack, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._stack:
            await super().__call__(scope, receive, send)


def _requested_part(request: Request, size: int, tag: str) -> ByteRange | None:
    """Return the requested part, or None for the whole file.

    The header ``Range`` is ignored for HEAD, and if the header ``If-Range`` has another tag.
    """
    if request.method != "GET" or request.headers.get("if-range", tag) != tag:
        return None
    return parse_byte_range(request.headers.get("range"), size)


def _unsatisfiable_response(size: int) -> JSONResponse:
    message = f"The range must contain a byte of the file, which has {size} bytes."
    headers = {"accept-ranges": "bytes", "content-range": f"bytes */{size}"}
    return JSONResponse({"error": message}, 416, headers)


def _read_chunks(stream: BinaryIO, part: ByteRange) -> Iterator[bytes]:
    """Yield the bytes of a part of a file."""
    stream.seek(part.start)
    remaining = part.n_bytes
    while remaining and (chunk := stream.read(min(CHUNK_BYTES, remaining))):
        remaining -= len(chunk)
        yield chunk


def _file_tag(real_path: str, status: os.stat_result) -> str:
    """Return the header ``etag`` of an opened file."""
    text = repr((real_path, status.st_ino, status.st_size, status.st_mtime_ns))
    return f'"{blake2b(os.fsencode(text), digest_size=16).hexdigest()}"'
