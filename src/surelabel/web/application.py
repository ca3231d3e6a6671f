"""Create the ASGI application of a server."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from surelabel.data.correction_log import CorrectionLog
from surelabel.errors import MissingPart
from surelabel.web.access_control import AccessControlMiddleware, AccessRules, create_login_routes
from surelabel.web.correction_routes import create_correction_routes
from surelabel.web.error_responses import OTHER_ERRORS, add_error_handlers
from surelabel.web.image_routes import create_image_routes
from surelabel.web.image_worker import ImageWorkerPool
from surelabel.web.index_session import IndexSession
from surelabel.web.page_routes import create_page_routes
from surelabel.web.proposal_routes import create_proposal_routes
from surelabel.web.recalibration_routes import create_recalibration_routes
from surelabel.web.recalibration_service import RecalibrationService
from surelabel.web.recognizer_service import RecognizerService
from surelabel.web.report_file import ReportFile
from surelabel.web.request_limits import RequestLimits, RequestLimitsMiddleware
from surelabel.web.request_metrics import RequestMetrics, RequestMetricsMiddleware
from surelabel.web.sample_routes import create_sample_routes
from surelabel.web.search_routes import create_search_routes
from surelabel.web.security_headers import SecurityHeadersMiddleware
from surelabel.web.status_routes import create_status_routes
from surelabel.web.thumbnail_cache import ThumbnailCache
from surelabel.web.upload_routes import create_upload_routes
from surelabel.web.wrong_tokens import WrongTokenLimit

IMAGE_TASKS = "surelabel.web.image_tasks"
MAX_IMAGE_WORKERS = 4


def create_application(
    session: IndexSession,
    log: CorrectionLog,
    recognizer: RecognizerService,
    rules: AccessRules,
    limits: RequestLimits,
    report: ReportFile | None = None,
) -> ASGIApp:
    """Return the application of a server: the API below ``/api``, and the page for browsers.

    Args:
        session: Index of the server.
        log: File of the corrections.
        recognizer: Recognizer of the index.
        rules: Host and token of the server.
        limits: Limits of the requests.
        report: Report of an evaluation, or None.
    """
    metrics, thumbnails = RequestMetrics(), ThumbnailCache()
    recalibration = RecalibrationService(session, log, recognizer)
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
        with suppress(MissingPart):  # routes that need the recognizer raise this error
            recognizer.start_loading(session.current().index)
        try:
            yield
        finally:
            session.close()
            recalibration.close()
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
    router = APIRouter(prefix="/api", responses=OTHER_ERRORS)
    router.include_router(create_search_routes(session))
    router.include_router(create_image_routes(session, workers, recognizer, thumbnails))
    router.include_router(create_upload_routes(session, recognizer))
    router.include_router(create_correction_routes(session, log))
    router.include_router(create_sample_routes(session, log))
    router.include_router(create_proposal_routes(session, log))
    router.include_router(create_recalibration_routes(session, recalibration, recognizer))
    router.include_router(create_status_routes(session, recognizer, metrics, gauges))
    wrong_tokens = WrongTokenLimit(limits.n_wrong_tokens, limits.wrong_token_seconds)
    router.include_router(create_login_routes(rules, wrong_tokens))
    application.include_router(router)
    application.include_router(create_page_routes(session, rules, report))
    add_error_handlers(application)
    # add_middleware would leave out the responses to defects, which FastAPI sends outside of it
    guarded = AccessControlMiddleware(application, rules, wrong_tokens)
    limited = RequestLimitsMiddleware(guarded, limits)
    return RequestMetricsMiddleware(SecurityHeadersMiddleware(limited), metrics)
