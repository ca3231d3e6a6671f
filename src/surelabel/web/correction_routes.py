"""Define the routes that list, record and undo corrections of labels."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from surelabel.data.correction_log import CorrectionLog
from surelabel.data.labels.resolution.correction_rows import CorrectionRow
from surelabel.errors import InputError, UnknownName
from surelabel.records import RANDOM_ROW
from surelabel.web.correction_responses import CorrectionEvent, CorrectionPage, CurrentTargets
from surelabel.web.error_responses import describe_error
from surelabel.web.image_routes import UNKNOWN_IMAGE, Identifier
from surelabel.web.index_session import IndexedImage, IndexSession
from surelabel.web.indexed_images import find_images_by_path, identifier_of_image

MAX_PAGE = 200  # corrections of a page
MAX_QUERY_LENGTH = 2000  # characters of a recorded query
Target = Annotated[StrictInt, Field(ge=0, le=1)]


class ImageCorrections(BaseModel):
    """Body of a request that corrects labels of an image."""

    model_config = ConfigDict(extra="forbid")

    image: str = Field(max_length=64, description="Identifier of the image")
    labels: dict[str, Target | None] = Field(
        description="1 is positive, 0 is negative, null is unknown."
    )
    others: Annotated[StrictInt, Field(ge=0, le=0)] | None = Field(
        None, description="0: all other labels of the index are negative."
    )
    chosen_by: Literal["query", "similar", "label_next", "audit", "browse"] = "browse"
    query: str | None = Field(None, max_length=MAX_QUERY_LENGTH)
    rank: Annotated[StrictInt, Field(ge=0, le=2**40)] | None = Field(
        None, description="Position of the image in the result, counted from 0"
    )
    sample: StrictBool = Field(False, description="Complete check of an image of the sample")


class UndoneEvent(BaseModel):
    """Body of a request that undoes an event."""

    model_config = ConfigDict(extra="forbid")

    event: str = Field(max_length=64)


def create_correction_routes(session: IndexSession, log: CorrectionLog) -> APIRouter:
    """Return the routes ``/corrections``, ``/corrections/undo`` and ``/images/…/corrections``.

    Args:
        session: Index of the server.
        log: File of the corrections.
    """
    router = APIRouter(tags=["corrections"])

    @router.get("/corrections", summary="List corrections", response_model=CorrectionPage)
    def list_corrections(
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
    ) -> JSONResponse:
        """Return the corrections of labels, newest first, and the path of their file."""
        index, history = session.current().index, log.history()
        rows = [row for row in reversed(history.rows) if row.label]
        page = rows[offset : offset + limit]
        complete = history.complete_paths(index.names)
        images = find_images_by_path(index, [*(row.path for row in page), *complete])
        return JSONResponse(
            {
                "corrections": [
                    _correction_as_dict(row, images) | {"is_undone": row.event in history.undone}
                    for row in page
                ],
                "n_corrections": len(rows),
                "n_images": len(history.targets),
                "n_checked": sum(path in images for path in complete),
                "file": str(log.path),
                "note": log.note or None,
            }
        )

    @router.get(
        "/images/{identifier}/corrections",
        summary="Return the corrections of an image",
        response_model=CurrentTargets,
        responses=UNKNOWN_IMAGE,
    )
    def corrections_of_image(identifier: Identifier) -> JSONResponse:
        """Return the current target of each corrected label; unknown targets are left out.

        `is_checked` is true if the image belongs to the random sample and was checked for all
        labels.
        """
        revision, history = session.current(), log.history()
        path = revision.find_image(identifier).path
        targets = history.targets.get(path, {})
        return JSONResponse(
            {
                "labels": {k: int(v) for k, v in targets.items() if not math.isnan(v)},
                "is_checked": history.is_complete(path, revision.index.names),
            }
        )

    @router.post(
        "/corrections",
        summary="Correct labels of an image",
        response_model=CorrectionEvent,
        responses={400: describe_error("The body is invalid."), **UNKNOWN_IMAGE},
    )
    def record(body: ImageCorrections) -> JSONResponse:
        """Append the corrections of one image as one event.

        With `sample`, the targets of all labels are required, for example by `others`. The image
        must belong to the random sample.
        """
        revision = session.current()
        image = revision.find_image(body.image)
        names = revision.index.names
        targets = _complete_targets(body, names)
        probabilities = dict(zip(names, revision.label_probabilities(image).tolist(), strict=True))
        event = log.record(
            image.path,
            targets,
            chosen_by=RANDOM_ROW if body.sample else body.chosen_by,
            probabilities=probabilities,
            query=body.query or "",
            rank=body.rank,
        )
        return JSONResponse({"event": event, "n_labels": len(targets)})

    @router.post(
        "/corrections/undo",
        summary="Undo an event",
        response_model=CorrectionEvent,
        responses={
            400: describe_error("The event was undone before."),
            404: describe_error("The event is not in the corrections."),
        },
    )
    def undo(body: UndoneEvent) -> JSONResponse:
        """Withdraw all corrections of an event."""
        event, n_labels = log.undo(body.event)
        return JSONResponse({"event": event, "n_labels": n_labels})

    return router


def _complete_targets(body: ImageCorrections, names: list[str]) -> dict[str, float]:
    """Return the target of each corrected label, in the order of the index.

    Raises:
        UnknownName: If a label is not in the index.
        InputError: If there is no label, or if labels of a complete check are missing.
    """
    known_names = set(names)
    for label in body.labels:
        if label not in known_names:
            raise UnknownName(
                f"Label {label[:60]!r} is not in the index. Use a name of /api/labels."
            )
    if body.others is None and not body.labels:
        raise InputError("A correction requires at least one label; got none. Add a label.")
    if body.sample and body.others is None and len(body.labels) < len(names):
        raise InputError(
            f"A complete check requires targets of all {len(names)} labels; got "
            f'{len(body.labels)}. Add the other labels, or "others": 0 if they are negative.'
        )
    targets: dict[str, int | None] = {}
    if body.others is not None:
        targets |= dict.fromkeys(names, body.others)
    targets |= body.labels
    return {
        name: math.nan if (target := targets[name]) is None else float(target)
        for name in names
        if name in targets
    }


def _correction_as_dict(row: CorrectionRow, images: Mapping[str, IndexedImage]) -> dict[str, Any]:
    """Return a correction as a JSON object; the image is null if it is no longer in the index."""
    image = images.get(row.path)
    return {
        "event": row.event,
        "image": None if image is None else identifier_of_image(image),
        "path": row.path,
        "label": row.label,
        "corrected": None if math.isnan(row.target) else int(row.target),
        "probability": _number_or_null(row.probability),
        "chosen_by": row.chosen_by or None,
        "inclusion_probability": _number_or_null(row.inclusion_probability),
        "query": row.query or None,
        "rank": row.rank,
        "time": row.time,
    }


def _number_or_null(number: float) -> float | None:
    return None if math.isnan(number) else number
