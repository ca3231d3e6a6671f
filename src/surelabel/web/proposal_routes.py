"""Define the route that proposes images and targets to correct."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from surelabel.data.correction_log import CorrectionLog
from surelabel.web.correction_proposals import (
    propose_representative_images,
    propose_target_checks,
)
from surelabel.web.correction_responses import Proposals
from surelabel.web.index_session import IndexSession

MAX_PROPOSALS = 200
PROPOSALS = {"label_next": propose_representative_images, "audit": propose_target_checks}


def create_proposal_routes(session: IndexSession, log: CorrectionLog) -> APIRouter:
    """Return the route ``/proposals``.

    Args:
        session: Index of the server.
        log: File of the corrections.
    """
    router = APIRouter(tags=["corrections"])

    @router.get("/proposals", summary="Propose images to correct", response_model=Proposals)
    def propose(
        kind: Literal["label_next", "audit"],
        count: Annotated[int, Query(ge=1, le=MAX_PROPOSALS)] = 24,
    ) -> JSONResponse:
        """Return images that represent uncorrected images, or targets that are probably wrong.

        `label_next` chooses images by their vectors. `audit` compares the corrected targets with
        the stored probabilities. A `sentence` describes the result, or states what is missing.
        """
        index = session.current().index
        return JSONResponse({"kind": kind, **PROPOSALS[kind](index, log.history(), count)})

    return router
