"""Define the routes of health, metrics, and the description of the interface."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.concurrency import run_in_threadpool

from surelabel.markup import join_markup, markup_element, markup_header_cells, markup_table_region
from surelabel.web.index_session import IndexSession
from surelabel.web.recognizer_service import RecognizerService
from surelabel.web.request_metrics import RequestMetrics

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

    @router.get("/health", summary="Describe the state of the server")
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

    @router.get("/metrics", summary="Return metrics", response_class=PlainTextResponse)
    async def metrics_text() -> PlainTextResponse:
        """Return numbers and times of requests in the text format of Prometheus."""
        text = metrics.format(await run_in_threadpool(gauges))
        return PlainTextResponse(text, media_type=METRICS_TYPE)

    @router.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        """Return a page with all operations, without scripts."""
        return HTMLResponse(render_operations(request.app.openapi()))

    return router


def render_operations(description: Mapping[str, Any]) -> str:
    """Return an HTML page with the operations of an OpenAPI description.

    Args:
        description: OpenAPI description as a JSON object.
    """
    rows = [
        markup_element(
            "tr",
            markup_element("td", markup_element("code", f"{method.upper()} {path}")),
            markup_element("td", operation.get("summary", "")),
            markup_element(
                "td",
                ", ".join(argument["name"] for argument in operation.get("parameters", ())),
            ),
            markup_element("td", " ".join(operation.get("description", "").split())),
        )
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
    ]
    title = f"{description['info']['title']} {description['info']['version']}"
    header = markup_header_cells(["operation", "summary", "arguments", "description"])
    link = markup_element("a", "OpenAPI description", href="/api/openapi.json")
    body = join_markup(
        markup_element("h1", title),
        markup_element("p", link),
        markup_table_region("Operations", header, rows),
    )
    head = join_markup(markup_element("meta", charset="utf-8"), markup_element("title", title))
    page = markup_element(
        "html", markup_element("head", head), markup_element("body", body), lang="en"
    )
    return f"<!doctype html>{page}"
