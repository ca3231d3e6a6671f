"""Define the routes of one image: its labels, its file, its thumbnail and its heat maps."""

import os
from functools import cache
from hashlib import blake2b
from io import BytesIO
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from PIL import Image, ImageDraw
from starlette.concurrency import run_in_threadpool

from surelabel.errors import DataError, UnknownName
from surelabel.storage.stored_images import stored_image_status
from surelabel.web.error_responses import describe_error
from surelabel.web.file_access import is_plain_file, resolve_servable_file
from surelabel.web.file_responses import content_headers, file_response, has_current_file
from surelabel.web.image_responses import ImageDescription
from surelabel.web.image_worker import ImageWorkerPool
from surelabel.web.index_session import IndexedImage, IndexSession
from surelabel.web.recognizer_service import RecognizerService
from surelabel.web.thumbnail_cache import ThumbnailCache

PLACEHOLDER_HEADER = "x-surelabel-placeholder"
UNKNOWN_IMAGE: dict[int | str, dict[str, Any]] = {
    404: describe_error("The image or label is not in the index, or the image has no file.")
}
UNCHANGED = {"description": "The client has the current content."}
Identifier = Annotated[str, Path(max_length=64, description="Identifier of an image")]
Side = Annotated[int, Query(alias="size", ge=64, le=512, description="Longer side, in pixels")]


def create_image_routes(
    session: IndexSession,
    workers: ImageWorkerPool,
    recognizer: RecognizerService,
    thumbnails: ThumbnailCache,
) -> APIRouter:
    """Return the routes below ``/images/{identifier}``.

    Args:
        session: Index of the server.
        workers: Processes that decode images.
        recognizer: Recognizer of the index.
        thumbnails: Cache of encoded thumbnails and heat maps.
    """
    router = APIRouter(prefix="/images/{identifier}", tags=["images"], responses=UNKNOWN_IMAGE)

    @router.get("", summary="Describe an image", response_model=ImageDescription)
    def describe(
        identifier: Identifier, limit: Annotated[int, Query(ge=1, le=1000)] = 20
    ) -> JSONResponse:
        """Return path, date and size of an image, and its labels with the highest probability."""
        revision = session.current()
        image = revision.find_image(identifier)
        probabilities = revision.label_probabilities(image)
        order = np.argsort(-probabilities, kind="stable")[:limit].tolist()
        names = revision.index.names
        labels = [{"label": names[i], "probability": float(probabilities[i])} for i in order]
        return JSONResponse(
            {"id": identifier, "path": image.path, **_file_metadata(image), "labels": labels}
        )

    @router.head("/thumbnail", include_in_schema=False)
    @router.get(
        "/thumbnail",
        summary="Return a thumbnail as JPEG",
        response_class=Response,
        responses={200: describe_content("image/jpeg"), 304: UNCHANGED},
    )
    async def thumbnail(identifier: Identifier, request: Request, side: Side = 256) -> Response:
        """Return an upright JPEG without metadata.

        If the image cannot be read, the response is a placeholder with the header
        `x-surelabel-placeholder`, whose value is the reason.
        """
        try:
            real_path, tag = await run_in_threadpool(_find_file, session, identifier, side)
            if has_current_file(request, f'"{tag}"'):
                return Response(status_code=304, headers=_cache_headers(tag))
            content = thumbnails.get(tag)
            if content is None:
                _, content = await workers.run("encode_thumbnail", path=real_path, side=side)
                thumbnails.put(tag, content)
        except DataError as error:
            return _placeholder_response(side, error)
        return Response(content, media_type="image/jpeg", headers=_cache_headers(tag))

    @router.head("/file", include_in_schema=False)
    @router.get(
        "/file",
        summary="Return the image file",
        response_class=Response,
        responses={
            200: describe_content("image/*", "application/octet-stream"),
            206: describe_content("image/*", "application/octet-stream"),
            304: UNCHANGED,
            416: describe_error("The range contains no byte of the file."),
        },
    )
    async def file(identifier: Identifier, request: Request) -> Response:
        """Return the unchanged bytes, with the content type of the detected format.

        Of a file, a part can be requested with the header `Range`; then the status is 206, or 416
        if the part contains no byte of the file. An image in a container or an object store is
        always sent as a whole.
        """
        try:
            real_path, tag = await run_in_threadpool(_find_file, session, identifier)
            if await run_in_threadpool(is_plain_file, real_path):
                content_type, _ = await workers.run("read_content_type", path=real_path)
                return await run_in_threadpool(file_response, real_path, content_type, request)
            if has_current_file(request, f'"{tag}"'):
                return Response(status_code=304, headers=_cache_headers(tag))
            content_type, content = await workers.run("read_content", path=real_path)
            headers = content_headers(content_type) | _cache_headers(tag)
            return Response(content, media_type=content_type, headers=headers)
        except DataError as error:
            raise HTTPException(404, _without_path(error)) from error

    @router.get(
        "/heat-map",
        summary="Return a heat map as PNG",
        response_class=Response,
        responses={
            200: describe_content("image/png"),
            304: UNCHANGED,
            422: describe_error("The image cannot be read."),
            501: describe_error("The recognizer is missing, or computes no heat maps."),
        },
    )
    async def heat_map(
        identifier: Identifier,
        request: Request,
        label: Annotated[str, Query(max_length=1000)],
        side: Side = 256,
    ) -> Response:
        """Return the image with the heat map of a label.

        The colours are scaled to the minimum and maximum of the map, so the colours of different
        maps cannot be compared.
        """
        index = (await run_in_threadpool(session.current)).index
        if label not in index.names:
            raise UnknownName(
                f"Label {label[:60]!r} is not in the index. Use a name of /api/labels."
            )
        try:
            real_path, tag = await run_in_threadpool(
                _find_file, session, identifier, side, label, index.model
            )
        except DataError as error:
            raise HTTPException(404, _without_path(error)) from error
        if has_current_file(request, f'"{tag}"'):
            return Response(status_code=304, headers=_cache_headers(tag))
        content = thumbnails.get(tag)
        if content is None:
            try:
                content = await recognizer.encode_heat_map(index, real_path, label, side)
            except DataError as error:
                raise HTTPException(422, _without_path(error)) from error
            thumbnails.put(tag, content)
        return Response(content, media_type="image/png", headers=_cache_headers(tag))

    return router


def describe_content(*content_types: str) -> dict[str, Any]:
    """Return the description of a response of bytes, for the OpenAPI schema.

    Args:
        content_types: Possible content types.
    """
    schema = {"type": "string", "format": "binary"}
    return {
        "description": "Bytes of the image",
        "content": {content_type: {"schema": schema} for content_type in content_types},
    }


def _file_metadata(image: IndexedImage) -> dict[str, Any]:
    """Return date, width and height, which are null if the index does not contain them."""
    names = ["date", "width", "height"]
    if not image.shard.has_file_metadata:
        return dict.fromkeys(names)
    values = image.shard.mapped_files.read_row(image.row, names)
    date = values["date"]
    return values | {"date": None if date is None else date.isoformat(timespec="seconds")}


def _find_file(session: IndexSession, identifier: str, *key: object) -> tuple[str, str]:
    """Return the real path of an image, and a tag of its file and of a key.

    The tag changes with the path, the size and the modification time of the file, and with the key.

    Raises:
        UnknownName: If the image is not in the index.
        DataError: If there is no file, or the file must not be read.
    """
    revision = session.current()
    image = revision.find_image(identifier)
    real_path = resolve_servable_file(image.path, revision.index.root)
    status = stored_image_status(real_path)
    if status is None:
        raise DataError("The file does not exist.")
    text = repr((real_path, status.size, status.mtime_ns, *key))
    return real_path, blake2b(os.fsencode(text), digest_size=16).hexdigest()


def _cache_headers(tag: str) -> dict[str, str]:
    """Return headers with which a browser caches a content, and revalidates it at each use."""
    return {"cache-control": "private, no-cache", "etag": f'"{tag}"'}


def _placeholder_response(side: int, error: DataError) -> Response:
    """Return the placeholder of an image that cannot be read."""
    headers = {"cache-control": "no-store", PLACEHOLDER_HEADER: _header_text(_without_path(error))}
    return Response(_placeholder(side), media_type="image/jpeg", headers=headers)


@cache
def _placeholder(side: int) -> bytes:
    """Return a grey JPEG with a diagonal cross."""
    image = Image.new("RGB", (side, side), (224, 224, 224))
    draw = ImageDraw.Draw(image)
    for line in ((0, 0, side, side), (0, side, side, 0)):
        draw.line(line, fill=(150, 150, 150), width=max(1, side // 64))
    file = BytesIO()
    image.save(file, "JPEG", quality=80)
    return file.getvalue()


def _without_path(error: DataError) -> str:
    """Return a message without the path of the file at its beginning."""
    text = " ".join(str(error).split())
    return text.rpartition(": ")[2] if os.sep in text.partition(": ")[0] else text


def _header_text(text: str) -> str:
    return text.encode("ascii", "replace").decode()[:200]
