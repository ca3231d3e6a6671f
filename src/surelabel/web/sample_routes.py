"""Define the route that samples images at random for complete checks."""

from typing import Annotated

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from surelabel.data.correction_log import CorrectionLog
from surelabel.web.correction_responses import SampleResult
from surelabel.web.error_responses import describe_error
from surelabel.web.index_sample import IndexSampler
from surelabel.web.index_session import IndexSession
from surelabel.web.indexed_images import describe_images

MAX_IMAGES = 200  # images of a response


class SampleRequest(BaseModel):
    """Body of a request for images to check."""

    model_config = ConfigDict(extra="forbid")

    count: Annotated[StrictInt, Field(ge=0, le=MAX_IMAGES)] = Field(
        30, description="Number of images to return that are not checked"
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=2**31)] = 0


def create_sample_routes(session: IndexSession, log: CorrectionLog) -> APIRouter:
    """Return the route ``/sample``.

    Args:
        session: Index of the server.
        log: File of the corrections.
    """
    router = APIRouter(tags=["corrections"])
    sampler = IndexSampler(log)

    @router.post(
        "/sample",
        summary="Sample images at random",
        response_model=SampleResult,
        responses={400: describe_error("The body or the seed is invalid.")},
    )
    def sample(body: SampleRequest) -> JSONResponse:
        """Extend the random sample until it has `count` unchecked images, and return these.

        Earlier images of the sample that are not checked are returned first.
        """
        index = session.current().index
        state = sampler.extend(index, n_unchecked=body.count, seed=body.seed)
        descriptions = describe_images(index, state.unchecked[: body.count])
        return JSONResponse(
            {
                "images": [{**image, "is_checked": False} for image in descriptions],
                "n_drawn": len(state.images),
                "n_checked": sum(state.is_checked),
                "inclusion_probability": state.inclusion_probability,
                "n_images": len(index),
            }
        )

    return router
