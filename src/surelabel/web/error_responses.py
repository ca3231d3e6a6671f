"""Convert errors to JSON responses with the messages of the command line."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as StarletteHTTPException

from surelabel.errors import (
    ConfigError,
    DataError,
    InputError,
    MissingPart,
    NotFitted,
    QuerySyntaxError,
    SurelabelError,
    UnknownName,
)

MAX_QUOTED_LENGTH = 60  # characters of an invalid value in a message
STATUS_OF_ERROR: Sequence[tuple[type[SurelabelError], int]] = (  # the first match counts
    (InputError, 400),
    (UnknownName, 404),
    (ConfigError, 501),
    (MissingPart, 501),
    (NotFitted, 501),
    (DataError, 500),  # the index is damaged
)


class ErrorMessage(BaseModel):
    """Response to a request that failed."""

    error: str = Field(description="Message of one line")
    position: int | None = Field(
        None,
        ge=0,
        description="Position of the wrong character of a query, counted from 0, if there is one",
    )


def describe_error(description: str) -> dict[str, Any]:
    """Return the description of a response with an error, for the OpenAPI schema.

    Args:
        description: Sentence on the error.
    """
    return {"description": description, "model": ErrorMessage}


OTHER_ERRORS: dict[int | str, dict[str, Any]] = {
    "default": describe_error("The request failed. The message states the reason.")
}  # without it, FastAPI describes a response with the status 422, which the server never sends


def error_response(error: SurelabelError, status: int | None = None) -> JSONResponse:
    """Return the JSON response for an error of this package, with its message on one line.

    For a syntax error in a query, the response contains the position of the error too.

    Args:
        error: Error.
        status: Status code. If None, the class of the error determines the status.
    """
    if status is None:
        status = next((code for kind, code in STATUS_OF_ERROR if isinstance(error, kind)), 500)
    if isinstance(error, QuerySyntaxError):
        content: dict[str, Any] = {"error": error.reason, "position": error.position}
    else:
        content = {"error": " ".join(str(error).split())}
    return JSONResponse(content, status)


def add_error_handlers(application: FastAPI) -> None:
    """Add the functions that convert exceptions to responses."""

    @application.exception_handler(SurelabelError)
    def respond_to_error(request: Request, error: SurelabelError) -> JSONResponse:
        return error_response(error)

    @application.exception_handler(StarletteHTTPException)
    def respond_to_http_error(request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    @application.exception_handler(RequestValidationError)
    def respond_to_invalid_argument(
        request: Request, error: RequestValidationError
    ) -> JSONResponse:
        return JSONResponse({"error": describe_invalid_argument(error)}, 400)

    @application.exception_handler(Exception)
    def respond_to_defect(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": "The server has a defect; see its standard error."}, 500)


def describe_invalid_argument(error: RequestValidationError) -> str:
    """Return one line for the first invalid argument of a request."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    if first["type"] == "missing":
        return f"The argument {name} is required; got a request without it."
    text = repr(first.get("input"))
    text = text if len(text) <= MAX_QUOTED_LENGTH else text[: MAX_QUOTED_LENGTH - 3] + "..."
    return f"The argument {name} is invalid: {first['msg']}; got {text}."
