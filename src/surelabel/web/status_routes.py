"""Define the routes of the state of the server, of metrics, and of the page of all operations."""

from collections.abc import Callable, Mapping

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool

from surelabel.web.index_session import IndexSession
from surelabel.web.page_rendering import render_page
from surelabel.web.recognizer_service import RecognizerService
from surelabel.web.request_metrics import RequestMetrics
from surelabel.web.status_responses import ServerHealth

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def create_status_routes(
    session: IndexSession,
    recognizer: RecognizerService,
    metrics: RequestMetrics,
    gauges: Callable[[], Mapping[str, float]],
) -> APIRouter:
    """Return the routes ``/health``, ``/metrics`` and ``/docs``.

    Args:
        session: Index of the server.
        recognizer: Recognizer of the index.
        metrics: Numbers and times of the requests.
        gauges: Function that returns other values of the metrics by name.
    """
    router = APIRouter(tags=["status"])

    @router.get("/health", summary="Describe the state of the server", response_model=ServerHealth)
    def health() -> JSONResponse:
        """Return the state of the index and of the recognizer."""
        index = session.current().index
        return JSONResponse(
            {
                "status": "ok" if session.error is None else "degraded",
                "index": {
                    "images": len(index),
                    "labels": len(index.names),
                    "revision": index.revision,
                    "calibration": index.calibration,
                    "error": session.error,
                },
                "recognizer": recognizer.state(index),
            }
        )

    @router.get(
        "/metrics",
        summary="Return metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics_text() -> PlainTextResponse:
        """Return numbers and times of requests in the text format of Prometheus."""
        text = metrics.format(await run_in_threadpool(gauges))
        return PlainTextResponse(text, media_type=METRICS_TYPE)

    @router.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        """Return a page with all operations, without scripts."""
        return render_page("operations.html", request.app.openapi())

    return router
