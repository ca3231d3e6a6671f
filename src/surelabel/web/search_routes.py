"""Define the routes of searches and of labels."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from surelabel.errors import InputError, UnknownName
from surelabel.retrieval import parse
from surelabel.web.error_responses import describe_error, error_response
from surelabel.web.index_session import IndexSession
from surelabel.web.search_responses import LabelPage, SearchPage

MAX_PAGE = 200  # images of a page
COUNT_SECONDS = 1.0  # time for which a request waits for the expected numbers
INVALID_QUERY: dict[int | str, dict[str, Any]] = {
    400: describe_error("The query or another argument is invalid.")
}


def create_search_routes(session: IndexSession) -> APIRouter:
    """Return the routes ``/search`` and ``/labels``.

    Args:
        session: Index of the server.
    """
    router = APIRouter(tags=["search"])

    @router.get(
        "/search", summary="Search images", response_model=SearchPage, responses=INVALID_QUERY
    )
    def search(
        q: Annotated[str, Query(description="Query, such as `lion & !guitar`")],
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
        min_probability: Annotated[float, Query(ge=0, le=1)] = 0.0,
    ) -> JSONResponse:
        """Return the images with the highest probability of a query, and the next offset."""
        revision = session.current()
        try:
            query = parse(q)
            hits = revision.search(
                query,
                limit + 1,  # one more, to know whether there is a next page
                min_probability=min_probability,
                offset=offset,
            )
        except (InputError, UnknownName) as error:
            return error_response(error, 400)
        identifiers = revision.identifiers_of_hits(hits)
        results = [
            {"id": identifier, **hit.as_dict()}
            for identifier, hit in zip(identifiers[:limit], hits[:limit], strict=True)
        ]
        return JSONResponse(
            {
                "query": str(query),
                "hits": results,
                "offset": offset,
                "next_offset": offset + limit if len(hits) > limit else None,
                "notes": revision.index.approximation(query).sentences,
            }
        )

    @router.get("/labels", summary="List labels", response_model=LabelPage, responses=INVALID_QUERY)
    def labels(
        prefix: Annotated[str, Query(max_length=200, description="Case is ignored.")] = "",
        limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    ) -> JSONResponse:
        """Return labels in the order of the index, with their expected number of images.

        The expected number is the sum of the probabilities of all images. Until the sums are
        computed, `is_complete` is false, and the numbers are null.
        """
        revision = session.current()
        counts = revision.expected_counts.wait(COUNT_SECONDS)
        start = prefix.casefold()
        columns = [
            column
            for column, name in enumerate(revision.index.names)
            if name.casefold().startswith(start)
        ]
        names = revision.index.names
        results: list[dict[str, Any]] = [
            {
                "name": names[column],
                "expected_images": None if counts is None else round(float(counts[column]), 3),
            }
            for column in columns[:limit]
        ]
        return JSONResponse(
            {
                "labels": results,
                "n_labels": len(columns),
                "n_images": len(revision.index),
                "is_complete": counts is not None,
            }
        )

    return router
