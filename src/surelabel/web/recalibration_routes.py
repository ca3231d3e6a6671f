"""Define the routes that evaluate and apply a recalibration, and that return uncertainties."""

from contextlib import suppress
from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from surelabel.errors import DataError, MissingPart
from surelabel.web.error_responses import describe_error
from surelabel.web.file_access import resolve_servable_file
from surelabel.web.image_routes import UNKNOWN_IMAGE, Identifier
from surelabel.web.index_session import IndexSession
from surelabel.web.recalibration_responses import (
    ImageUncertainty,
    RecalibrationEvaluation,
    RecalibrationStart,
    RecalibrationState,
)
from surelabel.web.recalibration_service import CheckedImages, RecalibrationService
from surelabel.web.recognizer_service import RecognizerService

REFUSED: dict[int | str, dict[str, Any]] = {
    400: describe_error("There are too few checked images, or the recalibration is refused.")
}


def create_recalibration_routes(
    session: IndexSession, recalibration: RecalibrationService, recognizer: RecognizerService
) -> APIRouter:
    """Return the routes below ``/recalibration``, and ``/images/{identifier}/uncertainty``.

    Args:
        session: Index of the server.
        recalibration: Recalibration of the index.
        recognizer: Recognizer of the index.
    """
    router = APIRouter(tags=["recalibration"])

    @router.get(
        "/recalibration",
        summary="Describe the state of the recalibration",
        response_model=RecalibrationState,
    )
    def state() -> JSONResponse:
        """Return the number of checked images, and the state of the last recalibration.

        `state` is `idle`, `running`, `applied` or `failed`.
        """
        return JSONResponse(recalibration.status())

    @router.post(
        "/recalibration",
        summary="Evaluate a recalibration",
        response_model=RecalibrationEvaluation,
        responses=REFUSED,
    )
    async def evaluate() -> JSONResponse:
        """Fit a scale and a shift on the checked images of the random sample.

        All metrics after the recalibration are cross-fitted. The index is not changed. Images on
        which the recognizer was fitted are left out.
        """
        images = await run_in_threadpool(recalibration.read_checked_images)
        are_of_fit = await find_images_of_fit(recognizer, images)
        evaluated = await run_in_threadpool(recalibration.evaluate, images, are_of_fit)
        return JSONResponse(evaluated.as_dict())

    @router.post(
        "/recalibration/apply",
        summary="Apply the evaluated recalibration",
        status_code=202,
        response_model=RecalibrationStart,
        responses=REFUSED | {501: describe_error("The recognizer of the index is missing.")},
    )
    def apply() -> JSONResponse:
        """Save the recalibrated recognizer beside the index, and compute all log-odds again.

        The response is sent at the start; `GET /api/recalibration` returns the state. Searches
        continue meanwhile.
        """
        recalibration.start_applying()
        return JSONResponse({"state": "running"}, 202)

    @router.get(
        "/images/{identifier}/uncertainty",
        summary="Return the uncertainty of the labels of an image",
        response_model=ImageUncertainty,
        responses=UNKNOWN_IMAGE,
    )
    async def uncertainty(identifier: Identifier) -> JSONResponse:
        """Return the uncertainty of each label by kind.

        If the recognizer is missing, or its method estimates no uncertainty, `kinds` is empty, and
        `reason` states why.
        """
        revision = await run_in_threadpool(session.current)
        image = revision.find_image(identifier)
        try:
            real_path = await run_in_threadpool(
                resolve_servable_file, image.path, revision.index.root
            )
        except DataError as error:
            raise HTTPException(404, str(error)) from error
        try:
            kinds, reason = await recognizer.compute_uncertainty(revision.index, real_path)
        except DataError as error:
            raise HTTPException(422, " ".join(str(error).split())) from error
        except MissingPart as error:
            kinds, reason = {}, " ".join(str(error).split())
        return JSONResponse({"kinds": kinds, "reason": reason})

    return router


async def find_images_of_fit(recognizer: RecognizerService, images: CheckedImages) -> list[bool]:
    """Return whether the recognizer of the index was fitted on each checked image.

    The value is False for an image whose file cannot be read, and for all images if the recognizer
    is missing.

    Args:
        recognizer: Recognizer of the index.
        images: Checked images of the random sample.

    Raises:
        DataError: If the worker process fails.
    """
    real_paths = await run_in_threadpool(_real_path_by_position, images)
    are_of_fit = [False] * len(images.paths)
    with suppress(MissingPart):
        values = await recognizer.images_of_fit(images.index, list(real_paths.values()))
        for position, value in zip(real_paths, values, strict=True):
            are_of_fit[position] = value
    return are_of_fit


def _real_path_by_position(images: CheckedImages) -> dict[int, str]:
    """Return the real path of each image whose file the server may read, by its position."""
    real_paths = {}
    for position, path in enumerate(images.paths):
        with suppress(DataError):
            real_paths[position] = resolve_servable_file(path, images.index.root)
    return real_paths
