"""Create the ASGI application of a server."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from surelabel.errors import MissingPart
from surelabel.web.access_control import AccessControlMiddleware, AccessRules, create_login_routes
from surelabel.web.error_responses import add_error_handlers
from surelabel.web.image_routes import create_image_routes
from surelabel.web.image_worker import ImageWorkerPool
from surelabel.web.index_session import IndexSession
from surelabel.web.recognizer_service import RecognizerService
from surelabel.web.request_limits import RequestLimits, RequestLimitsMiddleware
from surelabel.web.request_metrics import RequestMetrics, RequestMetricsMiddleware
from surelabel.web.search_routes import create_search_routes
from surelabel.web.security_headers import SecurityHeadersMiddleware
from surelabel.web.status_routes import create_status_routes
from surelabel.web.thumbnail_cache import ThumbnailCache
from surelabel.web.upload_routes import create_upload_routes

IMAGE_TASKS = "surelabel.web.image_tasks"
MAX_IMAGE_WORKERS = 4


def create_application(
    session: IndexSession,
    recognizer: RecognizerService,
    rules: AccessRules,
    limits: RequestLimits,
) -> ASGIApp:
    """Return the application of a server, whose routes begin with ``/api``.

    Args:
        session: Index of the server.
        recognizer: Recognizer of the index.
        rules: Host and token of the server.
        limits: Limits of the requests.
    """
    metrics, thumbnails = RequestMetrics(), ThumbnailCache()
    workers = ImageWorkerPool(
        IMAGE_TASKS,
        n_workers=min(os.cpu_count() or 1, MAX_IMAGE_WORKERS),
        seconds=limits.image_seconds,
    )

    def gauges() -> Mapping[str, float]:
        return {
            "http_requests_in_work": metrics.n_in_work,
            "index_images": len(session.current().index),
            "thumbnail_cache_entries": len(thumbnails),
            "thumbnail_cache_bytes": thumbnails.n_bytes,
            "thumbnail_cache_max_bytes": thumbnails.max_bytes,
            "replaced_worker_processes": workers.n_replaced + recognizer.n_replaced,
        }

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
        workers.start()
        with suppress(MissingPart):  # routes that need the recognizer say what is missing
            recognizer.start_loading(session.current().index)
        try:
            yield
        finally:
            session.close()
            recognizer.close()
            workers.close()

    application = FastAPI(
        title="Surelabel",
        version=version("surelabel"),
        openapi_url="/api/openapi.json",
        docs_url=None,  # these pages load scripts from other hosts
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    router = APIRouter(prefix="/api")
    router.include_router(create_search_routes(session))
    router.include_router(create_image_routes(session, workers, recognizer, thumbnails))
    router.include_router(create_upload_routes(session, recognizer))
    router.include_router(create_status_routes(session, recognizer, metrics, gauges))
    router.include_router(create_login_routes(rules))
    application.include_router(router)
    add_error_handlers(application)
    # add_middleware would leave out the responses to defects, which FastAPI sends outside of it
    guarded = AccessControlMiddleware(application, rules)
    limited = RequestLimitsMiddleware(guarded, limits)
    return RequestMetricsMiddleware(SecurityHeadersMiddleware(limited), metrics)
