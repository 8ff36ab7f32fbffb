"""Error responses: every failed request is answered with a status and one sentence as JSON."""

import re
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from regard.errors import RegardError


class ErrorResponse(BaseModel):
    """Why a request failed, in one sentence."""

    error: str


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "The request cannot be parsed.",
        401: "Authentication failed: a token is required.",
        403: "The Host or Origin header is not allowed.",
        404: "No such resource, or it cannot be read at the moment.",
        408: "The request body took too long to arrive.",
        413: "The request body is too large.",
        422: "The request is invalid.",
        500: "Internal server error; the server's log has the traceback.",
        503: "The server is busy; Retry-After gives the seconds to wait.",
    }.items()
}
"""What the OpenAPI document says of failed requests, by status."""

RETRY_STATUSES = (429, 503)
DEFAULT_RETRY_SECONDS = "1"
_FRAMEWORK_MESSAGES = {  # of Starlette's router and FastAPI
    "Not Found": "no such path",
    "Method Not Allowed": "method not allowed for this path",
    "There was an error parsing the body": (
        "the body must be JSON in UTF-8, without deep nesting or very long numbers"
    ),
}
_MAX_LOCATION_CHARACTERS = 80  # of each key in a message: keys come from the client


def error_response(
    status: int, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return `{"error": message}` as one line of valid UTF-8 that ends with a full stop.

    A status that asks to try again has a Retry-After header.
    """
    if status in RETRY_STATUSES:
        headers = {"Retry-After": DEFAULT_RETRY_SECONDS, **(headers or {})}
    line = " ".join(message.splitlines()).encode("utf-8", "replace").decode().rstrip(".")
    return JSONResponse({"error": f"{line}."}, status, headers)


def install_error_handlers(app: FastAPI, invalid_status: int = 422) -> None:
    """Register exception handlers that answer every error with an `ErrorResponse`.

    Args:
        app: the app.
        invalid_status: status of requests that can be parsed but are invalid.
    """

    @app.exception_handler(HTTPException)
    async def handle_http_exception(_: Request, error: HTTPException) -> JSONResponse:
        message = _FRAMEWORK_MESSAGES.get(error.detail, error.detail)
        return error_response(error.status_code, message, dict(error.headers or {}))

    @app.exception_handler(RegardError)
    async def handle_regard_error(_: Request, error: RegardError) -> JSONResponse:
        return error_response(invalid_status, str(error))

    @app.exception_handler(RequestValidationError)
    async def handle_validation_error(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        status = 400 if first["type"] == "json_invalid" else invalid_status
        return error_response(status, validation_message(first))

    @app.exception_handler(Exception)
    async def handle_unexpected(_: Request, error: Exception) -> JSONResponse:
        return error_response(500, "internal server error; the server's log has the details")


def validation_message(error: dict[str, Any]) -> str:
    """Turn one of pydantic's errors into a sentence: which field, and what it must be."""
    field = ".".join(str(part)[:_MAX_LOCATION_CHARACTERS] for part in error["loc"][1:])
    kind, message = error["type"], str(error["msg"])
    if kind == "json_invalid":
        return f"the body must be JSON, but it is invalid at character {field}"
    if (
        kind == "model_attributes_type"
    ):  # also of a body whose type is not JSON, which is not parsed
        body = field or "the body"
        return f"{body} must be a JSON object, sent as Content-Type: application/json"
    if kind == "missing":
        return f"{field or 'a JSON body'} is required"
    if kind == "extra_forbidden":
        return f"{field} is not a known field"
    if kind == "string_pattern_mismatch":
        return f"{field} must not contain NUL characters"
    message = re.sub(r"^\w+ should ", "must ", message)
    if message.startswith("must "):
        return f"{field or 'the body'} {message}"
    return f"{field}: {message}"
