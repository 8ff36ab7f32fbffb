"""The FastAPI app: each route calls one function and returns its result as JSON."""

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from regard import __version__
from regard.explorer import (
    inference,
    playground,
    schemas,
    traces,
    training_log,
)
from regard.explorer.runs import RunRegistry
from regard.explorer.schemas import LIMITS, MAX_NAME_CHARACTERS, ExplorerLimits
from regard.explorer.traces import TraceRegistry
from regard.explorer.workers import CancelToken, RequestPool
from regard.runs import find_unseen_words
from regard.web import ERROR_RESPONSES, install_error_handlers, render_api_docs

Name = Annotated[str, Path(max_length=MAX_NAME_CHARACTERS)]
TraceNumber = Annotated[int, Query(ge=1, le=2**31, description="of the file's traces, from 1")]
Offset = Annotated[int, Query(ge=0, le=2**53, description="`next_offset` of the last response")]

RunInPool = Callable[[Callable[[CancelToken], Any], Request], Awaitable[Response]]
"""Runs work in the worker pool and returns its result as a JSON response."""


def create_app(
    runs: RunRegistry,
    traces: TraceRegistry,
    workers: RequestPool | None = None,
    limits: ExplorerLimits = LIMITS,
) -> FastAPI:
    """Return the app that serves some runs and traces.

    It has no access control of its own and no page: wrap it with `secure_app`.

    Args:
        runs: the runs to serve.
        traces: the traces to serve.
        workers: the pool in which models run; a new one if None.
        limits: largest values of a request.
    """
    pool = workers or RequestPool()

    async def run_in_pool(work: Callable[[CancelToken], Any], request: Request) -> Response:
        return _json_response(await pool.run(work, request.receive))

    app = FastAPI(
        title="regard explorer",
        version=__version__,
        summary="Translate, look at attention, and experiment with it.",
        docs_url=None,
        redoc_url=None,
        responses=ERROR_RESPONSES,
    )
    install_error_handlers(app)
    _add_run_routes(app, runs, limits)
    _add_model_routes(app, runs, run_in_pool, limits)
    _add_trace_routes(app, traces, run_in_pool, limits)
    _add_playground_routes(app, run_in_pool, limits)
    _add_docs_route(app)
    return app


def _add_run_routes(app: FastAPI, runs: RunRegistry, limits: ExplorerLimits) -> None:
    @app.get("/api/runs", response_model=schemas.RunsResponse)
    def list_runs() -> Response:
        """List the served runs, the limits, and the choices of the playground."""
        return _json_response(
            {
                "runs": [runs.info(name) for name in runs.names],
                "limits": limits.model_dump(),
                "playground": playground.playground_options(),
            }
        )

    @app.get("/api/runs/{run}/log", response_model=schemas.LogResponse)
    def read_log(run: Name, offset: Offset = 0) -> Response:
        """Return the records of a run's training log from a byte offset on."""
        return _json_response(training_log.read_log(runs.folder(run), offset))

    @app.get("/api/runs/{run}/checkpoints", response_model=schemas.CheckpointsResponse)
    def list_checkpoints(run: Name) -> Response:
        """List the checkpoints of a run in order of steps."""
        checkpoints = [{"id": each.id, "step": each.step} for each in runs.checkpoints(run)]
        return _json_response({"checkpoints": checkpoints})


def _add_model_routes(
    app: FastAPI, runs: RunRegistry, run_in_pool: RunInPool, limits: ExplorerLimits
) -> None:
    @app.post("/api/translate", response_model=schemas.TranslateResponse)
    async def translate(body: schemas.TranslateRequest, request: Request) -> Response:
        """Translate a text; a blank one has no translations."""

        def work(token: CancelToken) -> dict[str, Any]:
            run = runs.load(body.run)
            translations = inference.translate_text(
                run, body.text, body.beam_size, body.n_best, token, limits
            )
            unseen_words = find_unseen_words(run.folder, body.text)
            return {"translations": translations, "unseen_words": unseen_words}

        return await run_in_pool(work, request)

    @app.post("/api/traces", response_model=schemas.TraceResponse)
    async def create_trace(body: schemas.TraceRequest, request: Request) -> Response:
        """Trace the attention of every layer and head while the target is teacher-forced."""

        def work(token: CancelToken) -> dict[str, Any]:
            run = runs.load(body.run, body.checkpoint)
            token.raise_if_cancelled()
            source, target = body.source.strip(), body.target.strip()
            language = runs.phrasebook(body.run)
            gold = traces.find_gold_alignment(language, source, target)
            return inference.trace_text(run, source, target, gold, limits)

        return await run_in_pool(work, request)


def _add_trace_routes(
    app: FastAPI, registry: TraceRegistry, run_in_pool: RunInPool, limits: ExplorerLimits
) -> None:
    @app.get("/api/traces", response_model=schemas.TracesResponse)
    def list_traces() -> Response:
        """List the traces that were named at start."""
        return _json_response({"traces": registry.list()})

    @app.get("/api/traces/{name}", response_model=schemas.TraceResponse)
    async def read_trace(name: Name, request: Request) -> Response:
        """Return a trace that was named at start."""
        return await run_in_pool(lambda _: registry.read(name), request)

    binary = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    upload = {"requestBody": {"content": binary, "required": True}}

    @app.post("/api/traces/open", response_model=schemas.TraceResponse, openapi_extra=upload)
    async def open_trace(request: Request, number: TraceNumber = 1) -> Response:
        """Return one trace of an uploaded file, gzipped or not; the file is not stored."""
        data = await request.body()
        return await run_in_pool(lambda _: traces.open_upload(data, number, limits), request)

    @app.post("/api/traces/contents", response_model=schemas.TracesResponse, openapi_extra=upload)
    async def list_contents(request: Request) -> Response:
        """List the traces of an uploaded file, gzipped or not; the file is not stored."""
        data = await request.body()
        return await run_in_pool(lambda _: {"traces": traces.list_upload(data, limits)}, request)


def _add_playground_routes(app: FastAPI, run_in_pool: RunInPool, limits: ExplorerLimits) -> None:
    @app.post("/api/attend", response_model=schemas.AttendResponse)
    async def attend(body: schemas.AttendRequest, request: Request) -> Response:
        """Compute attention between a few vectors, and return every step."""
        return await run_in_pool(lambda _: playground.attend_with_steps(body, limits), request)


def _add_docs_route(app: FastAPI) -> None:
    @app.api_route("/docs", methods=["GET", "HEAD"], include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(render_api_docs(app.openapi()))


def _json_response(content: Any) -> Response:
    """Return JSON in ASCII, which can represent lone surrogates; reject NaN and infinity."""
    try:
        text = json.dumps(content, allow_nan=False)
    except RecursionError as error:
        raise HTTPException(422, "the result is nested too deeply for JSON") from error
    except ValueError as error:
        message = "the result contains NaN or infinity, which JSON cannot represent"
        raise HTTPException(422, message) from error
    return Response(text, media_type="application/json")
