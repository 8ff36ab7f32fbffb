"""Whatever goes wrong, told to the browser in one sentence."""

import re
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from regard.errors import RegardError
from regard.explorer.errors import Refused
from regard.explorer.schemas import Problem

SENTENCES = {
    400: "the request cannot be read",
    404: "there is nothing at this address",
    405: "this address does not know that method",
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": description}
    for status, description in {
        400: "The request cannot be read.",
        401: "A token is needed.",
        403: "The request comes from another site.",
        404: "There is no such thing, or not now.",
        408: "The request came too slowly.",
        413: "The request is too large.",
        422: "The request asks for what cannot be.",
        500: "A mistake of the server, noted in its log.",
        503: "The server is busy; Retry-After says when to come again.",
    }.items()
}


def answer(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Write the answer to a request that failed."""
    plain = " ".join(sentence.splitlines()).encode("utf-8", "replace").decode().rstrip(".")
    return JSONResponse({"error": f"{plain}."}, status, headers)


def explain(app: FastAPI) -> None:
    """Let an app answer everything that goes wrong with one sentence."""

    @app.exception_handler(Refused)
    async def refused(_: Request, problem: Refused) -> JSONResponse:
        return answer(problem.status, problem.sentence, problem.headers)

    @app.exception_handler(RegardError)
    async def repairable(_: Request, problem: RegardError) -> JSONResponse:
        return answer(422, str(problem))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, problem: RequestValidationError) -> JSONResponse:
        first = problem.errors()[0]
        return answer(400 if first["type"] == "json_invalid" else 422, sentence(first))

    @app.exception_handler(HTTPException)
    async def failed(_: Request, problem: HTTPException) -> JSONResponse:
        told = SENTENCES.get(problem.status_code, str(problem.detail))
        return answer(problem.status_code, told, dict(problem.headers or {}))

    @app.exception_handler(Exception)
    async def unexpected(_: Request, problem: Exception) -> JSONResponse:
        return answer(500, "the server made a mistake; its log says which")


def sentence(error: dict[str, Any]) -> str:
    """Put what pydantic found into words: where, and what would do."""
    where = ".".join(str(part)[:80] for part in error["loc"][1:])
    kind, told = error["type"], str(error["msg"])
    if kind == "json_invalid":
        return f"the body must be JSON, but at character {where} it is not"
    if kind == "missing":
        return f"{where or 'a JSON body'} is needed"
    if kind == "extra_forbidden":
        return f"{where} is not known here"
    if kind == "string_pattern_mismatch":
        return f"{where} must be text without NUL"
    told = re.sub(r"^\w+ should ", "must ", told)
    return f"{where or 'the body'} {told}" if told.startswith("must ") else f"{where}: {told}"
