"""The FastAPI app: LibreTranslate's API over a `TranslationService`."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, Response

from regard import __version__
from regard.serving.languages import LanguagePair
from regard.serving.schemas import (
    HealthResponse,
    LibreTranslateForm,
    LibreTranslateRequest,
    LibreTranslateResponse,
    SupportedLanguage,
)
from regard.serving.service import TranslationService
from regard.web import ERROR_RESPONSES, install_error_handlers, render_api_docs

FORM_BODY = {
    "requestBody": {
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {"$ref": "#/components/schemas/LibreTranslateForm"}
            }
        }
    }
}


def create_app(service: TranslationService) -> FastAPI:
    """Return the app that translates with a service, which runs as long as the app.

    It has no access control of its own: wrap it with `secure_app`.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(
        title="regard translation server",
        version=__version__,
        summary="LibreTranslate's API for models trained with regard.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses={status: each for status, each in ERROR_RESPONSES.items() if status != 422},
    )
    install_error_handlers(app, invalid_status=400)
    _add_translation_routes(app, service)
    _add_operation_routes(app, service)
    _document_request(app, service)
    return app


def _add_translation_routes(app: FastAPI, service: TranslationService) -> None:
    @app.post("/translate", response_model=LibreTranslateResponse, openapi_extra=FORM_BODY)
    async def translate(body: LibreTranslateRequest) -> Response:
        """Translate a text, or several; each line is translated as one sentence."""
        start = time.perf_counter()
        texts = [body.q] if isinstance(body.q, str) else body.q
        pair = LanguagePair(body.source, body.target)
        results = await service.translate(texts, pair, body.alternatives + 1)
        service.metrics.latency.observe(time.perf_counter() - start)
        return JSONResponse(_response(body, results))

    @app.get("/languages", response_model=list[SupportedLanguage])
    async def languages() -> list[SupportedLanguage]:
        """List the languages, each with those it can be translated into."""
        return service.languages()


def _add_operation_routes(app: FastAPI, service: TranslationService) -> None:
    @app.get("/health", response_model=HealthResponse)
    async def health() -> HealthResponse:
        """Answer that the server is able to translate; needs no token."""
        return HealthResponse()

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Return the metrics in Prometheus' text format."""
        return Response(service.metrics.render(), media_type=service.metrics.content_type)

    @app.api_route("/docs", methods=["GET", "HEAD"], include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(render_api_docs(app.openapi()))


def _document_request(app: FastAPI, service: TranslationService) -> None:
    """Add forms and the languages to the OpenAPI document, which FastAPI makes once."""
    schemas = app.openapi()["components"]["schemas"]
    schemas["LibreTranslateForm"] = LibreTranslateForm.model_json_schema()
    languages = service.languages()
    targets = dict.fromkeys(code for language in languages for code in language.targets)
    for name in ("LibreTranslateRequest", "LibreTranslateForm"):
        properties = schemas[name]["properties"]
        properties["source"]["enum"] = [each.code for each in languages if each.targets]
        properties["target"]["enum"] = list(targets)


def _response(body: LibreTranslateRequest, results: list[list[str]]) -> dict[str, object]:
    """Return lists for a list of texts, and single values for a single text."""
    best = [alternatives[0] for alternatives in results]
    others = [alternatives[1:] for alternatives in results]
    is_single = isinstance(body.q, str)
    response: dict[str, object] = {"translatedText": best[0] if is_single else best}
    if body.alternatives:
        response["alternatives"] = others[0] if is_single else others
    return response
