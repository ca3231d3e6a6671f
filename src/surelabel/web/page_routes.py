"""Define the routes of the page for browsers: its HTML, scripts, styles, login and report."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from surelabel.errors import DataError
from surelabel.web.access_control import AccessRules
from surelabel.web.index_session import IndexSession, OpenedRevision
from surelabel.web.page_rendering import render_page
from surelabel.web.report_file import REPORT_SECURITY_POLICY, ReportFile
from surelabel.web.security_headers import POLICY_HEADER
from surelabel.web.static_files import read_static_files

N_FIRST_LABELS = 60  # labels that the page contains before its scripts run
COUNT_SECONDS = 0.2  # time for which the page waits for the expected numbers
TABS = {
    "search": "Search",
    "check": "Check",
    "proposals": "Proposals",
    "tag": "Tag new images",
    "about": "About",
}


def create_page_routes(
    session: IndexSession, rules: AccessRules, report: ReportFile | None
) -> APIRouter:
    """Return the routes ``/``, ``/login``, ``/static`` and ``/report``.

    Args:
        session: Index of the server.
        rules: Host and token of the server.
        report: Report of an evaluation, or None.
    """
    router = APIRouter(include_in_schema=False)
    files = read_static_files()

    @router.get("/")
    def page() -> HTMLResponse:
        """Return the page, with the labels that have the highest expected number of images."""
        return render_page("page.html", page_content(session, has_report=report is not None))

    @router.get("/login")
    async def login() -> HTMLResponse:
        """Return the form for the token."""
        return render_page("login.html", {"is_needed": rules.token is not None})

    @router.get("/static/{name}")
    async def static(name: str, request: Request) -> Response:
        """Return a script, a style sheet or an icon."""
        file = files.get(name)
        if file is None:
            raise HTTPException(404, "The page has no such file.")
        headers = {"cache-control": "no-cache", "etag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.content_type, headers=headers)

    @router.get("/report")
    async def report_page() -> HTMLResponse:
        """Return the report of an evaluation, without scripts."""
        if report is None:
            raise HTTPException(404, "The server has no report. Start it with --report.")
        try:
            content = await run_in_threadpool(report.read)
        except DataError as error:
            raise HTTPException(404, "The file of the report cannot be read.") from error
        return HTMLResponse(content, headers={POLICY_HEADER: REPORT_SECURITY_POLICY})

    return router


def page_content(session: IndexSession, *, has_report: bool) -> dict[str, Any]:
    """Return the values of the template of the page.

    Args:
        session: Index of the server.
        has_report: Whether the server has a report.
    """
    revision = session.current()
    return {
        "name": Path(session.folder).resolve().name,
        "root": revision.index.root,
        "n_images": len(revision.index),
        "n_labels": len(revision.index.names),
        "calibration": revision.index.calibration,
        "labels": first_labels(revision),
        "has_report": has_report,
        "tabs": TABS,
        "version": version("surelabel"),
    }


def first_labels(revision: OpenedRevision) -> list[tuple[str, float | None]]:
    """Return the labels with the highest expected number of images, and this number.

    If the numbers are not computed in time, the first labels of the index are returned with None.

    Args:
        revision: Revision of an index.
    """
    names = revision.index.names
    try:
        counts = revision.expected_counts.wait(COUNT_SECONDS)
    except DataError:  # /api/labels returns this error
        counts = None
    if counts is None:
        return [(name, None) for name in names[:N_FIRST_LABELS]]
    order = np.argsort(-counts, kind="stable")[:N_FIRST_LABELS].tolist()
    return [(names[column], float(counts[column])) for column in order]
