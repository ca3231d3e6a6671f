"""Define the route that predicts the labels of uploaded images."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from surelabel.counts import format_count
from surelabel.errors import DataError
from surelabel.web.error_responses import describe_error
from surelabel.web.image_responses import UploadResult
from surelabel.web.index_session import IndexSession
from surelabel.web.recognizer_service import RecognizerService

FIELD = "images"
MAX_IMAGES = 16
MAX_NAME_LENGTH = 255  # characters of a file name in the response
FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": [FIELD],
                    "properties": {
                        FIELD: {
                            "type": "array",
                            "minItems": 1,
                            "maxItems": MAX_IMAGES,
                            "items": {"type": "string", "format": "binary"},
                        }
                    },
                }
            }
        },
    }
}


def create_upload_routes(session: IndexSession, recognizer: RecognizerService) -> APIRouter:
    """Return the route ``/tag``.

    Args:
        session: Index of the server.
        recognizer: Recognizer of the index.
    """
    router = APIRouter(tags=["uploads"])

    @router.post(
        "/tag",
        summary="Predict the labels of uploaded images",
        response_model=UploadResult,
        openapi_extra=FORM,
        responses={
            400: describe_error("The form is invalid."),
            413: describe_error("The body is too large."),
            501: describe_error("The recognizer of the index is missing."),
        },
    )
    async def tag(
        request: Request, threshold: Annotated[float, Query(ge=0, le=1)] = 0.5
    ) -> JSONResponse:
        """Return the labels of each image whose probability is at least the threshold.

        The form field `images` is repeated, with at most 16 files. An image that cannot be read
        has the field `error` instead of `labels`. No file is stored after the request.
        """
        index = (await run_in_threadpool(session.current)).index
        recognizer.start_loading(index)  # fails before the body is read
        async with request.form(max_files=MAX_IMAGES, max_fields=MAX_IMAGES) as form:
            files = [
                value
                for name, value in form.multi_items()
                if name == FIELD and isinstance(value, UploadFile)
            ]
            n_others = len(form.multi_items()) - len(files)
            if not files or n_others:
                raise HTTPException(
                    400,
                    f"The form must contain 1 to {MAX_IMAGES} files in the field {FIELD}; got "
                    f"{format_count(len(files), 'file')} in this field and "
                    f"{format_count(n_others, 'other value')}.",
                )
            results = []
            for file in files:
                result: dict[str, Any] = {"name": (file.filename or "")[:MAX_NAME_LENGTH]}
                try:
                    values = await recognizer.predict_labels(index, await file.read())
                    result["labels"] = _select_labels(values, threshold)
                except DataError as error:
                    result["error"] = " ".join(str(error).split())
                results.append(result)
        return JSONResponse({"images": results, "threshold": threshold})

    return router


def _select_labels(values: dict[str, float], threshold: float) -> list[dict[str, Any]]:
    """Return the labels at or above a threshold, most probable labels first."""
    selected = [(name, value) for name, value in values.items() if value >= threshold]
    selected.sort(key=lambda pair: -pair[1])
    return [{"label": name, "probability": value} for name, value in selected]
