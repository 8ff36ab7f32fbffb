"""The routes: each asks one function, and gives its answer as JSON."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.staticfiles import StaticFiles

from regard import __version__
from regard.explorer import api_docs, gold_alignments, inference, playground, schemas, training_log
from regard.explorer import traces as saved
from regard.explorer.cancellation import Stop
from regard.explorer.error_handlers import RESPONSES, explain
from regard.explorer.errors import Refused
from regard.explorer.limits import LIMITS, Limits
from regard.explorer.runs import Shelf
from regard.explorer.traces import Saved
from regard.explorer.workers import Line
from regard.viz.page import STATIC_FOLDER as PICTURES

STATIC = FilePath(__file__).parent / "static"

Name = Annotated[str, Path(max_length=255)]
Number = Annotated[int, Query(ge=1, le=2**31, description="which trace of the file, from 1 on")]
Offset = Annotated[int, Query(ge=0, le=2**53, description="the `next_offset` of the answer before")]


Answers = Callable[[Callable[[Stop], Any], Request], Awaitable[Response]]
"""Have some work done for a request, and give what comes of it."""


def create_app(
    shelf: Shelf, traces: Saved, line: Line | None = None, limits: Limits = LIMITS
) -> FastAPI:
    """Make the app that shows some runs and traces, and no others."""
    line = line or Line()

    async def answer(work: Callable[[Stop], Any], request: Request) -> Response:
        return _json(await line.do(work, request.receive))

    app = FastAPI(
        title="regard explorer",
        version=__version__,
        summary="Translate, look, and play with attention.",
        docs_url=None,
        redoc_url=None,
        responses=RESPONSES,
    )
    explain(app)
    _add_runs(app, shelf, limits)
    _add_model(app, shelf, answer, limits)
    _add_traces(app, traces, answer, limits)
    _add_playground(app, answer, limits)
    _add_pages(app)
    return app


def _add_runs(app: FastAPI, shelf: Shelf, limits: Limits) -> None:
    @app.get("/api/runs", response_model=schemas.RunsAnswer)
    def runs() -> Response:
        """List the runs named at start, and what may be asked for."""
        return _json(
            {
                "runs": [shelf.facts(name) for name in shelf.names],
                "limits": asdict(limits),
                "playground": playground.known(),
            }
        )

    @app.get("/api/runs/{run}/log", response_model=schemas.LogAnswer)
    def log(run: Name, offset: Offset = 0) -> Response:
        """Give the lines of a run's log that were written from an offset on."""
        return _json(training_log.log(shelf.folder(run), offset))

    @app.get("/api/runs/{run}/checkpoints", response_model=schemas.CheckpointsAnswer)
    def checkpoints(run: Name) -> Response:
        """List the weights that a run has kept, in order of steps."""
        kept = [{"id": each.id, "step": each.step} for each in shelf.checkpoints(run)]
        return _json({"checkpoints": kept})


def _add_model(app: FastAPI, shelf: Shelf, answer: Answers, limits: Limits) -> None:
    @app.post("/api/translate", response_model=schemas.TranslateAnswer)
    async def translate(form: schemas.TranslateForm, request: Request) -> Response:
        """Translate a text; a blank one has no translations."""

        def work(stop: Stop) -> dict[str, Any]:
            run = shelf.run(form.run)
            found = inference.translations(
                run, form.text, form.beam_size, form.n_best, stop, limits
            )
            return {"translations": found}

        return await answer(work, request)

    @app.post("/api/traces", response_model=schemas.TraceAnswer)
    async def trace(form: schemas.TraceForm, request: Request) -> Response:
        """Tell where every layer and head looks while the model is made to say the target."""

        def work(stop: Stop) -> dict[str, Any]:
            run = shelf.run(form.run, form.checkpoint)
            source, target = form.source.strip(), form.target.strip()
            words = gold_alignments.words(shelf.phrasebook(form.run), source, target)
            return inference.trace(run, source, target, words, limits)

        return await answer(work, request)


def _add_traces(app: FastAPI, traces: Saved, answer: Answers, limits: Limits) -> None:
    @app.get("/api/traces", response_model=schemas.TracesAnswer)
    def list_traces() -> Response:
        """List the traces named at start."""
        return _json({"traces": traces.list()})

    @app.get("/api/traces/{name}", response_model=schemas.TraceAnswer)
    async def read_trace(name: Name, request: Request) -> Response:
        """Give a trace that was named at start."""
        return await answer(lambda _: traces.read(name), request)

    file = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}

    @app.post(
        "/api/traces/open",
        response_model=schemas.TraceAnswer,
        openapi_extra={"requestBody": {"content": file, "required": True}},
    )
    async def open_trace(request: Request, number: Number = 1) -> Response:
        """Read a trace of a file, compressed or not; nothing of it is kept."""
        data = await request.body()
        return await answer(lambda _: saved.opened(data, number, limits), request)

    @app.post(
        "/api/traces/contents",
        response_model=schemas.TracesAnswer,
        openapi_extra={"requestBody": {"content": file, "required": True}},
    )
    async def list_contents(request: Request) -> Response:
        """List the traces of a file, which may have one a line; nothing of it is kept."""
        data = await request.body()
        return await answer(lambda _: {"traces": saved.contents(data, limits)}, request)


def _add_playground(app: FastAPI, answer: Answers, limits: Limits) -> None:
    @app.post("/api/attend", response_model=schemas.AttendAnswer)
    async def attend(form: schemas.AttendForm, request: Request) -> Response:
        """Let a few vectors look at each other, and show every step."""
        return await answer(lambda _: playground.attend(form, limits), request)


def _add_pages(app: FastAPI) -> None:
    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    def index() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.api_route("/docs", methods=["GET", "HEAD"], include_in_schema=False)
    def read_docs() -> HTMLResponse:
        return HTMLResponse(api_docs.page(app.openapi()))

    app.mount("/static", StaticFiles(directory=STATIC))
    app.mount("/viz", StaticFiles(directory=PICTURES))


def _json(content: Any) -> Response:
    """Write JSON as ASCII: half of a surrogate pair, which UTF-8 cannot say, stays what it is."""
    try:
        text = json.dumps(content, allow_nan=False)
    except (ValueError, RecursionError) as problem:
        raise Refused(422, f"what came of it cannot be said in JSON: {problem}") from problem
    return Response(text, media_type="application/json")
