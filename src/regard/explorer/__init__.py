"""The explorer: a web page to translate, look at attention and experiment with it, and its API.

`regard explore RUN…` calls `serve`. One request, `POST /api/translate`, takes this path:

1. `web.HTTPServer` accepts the connection; too many, and the one that is idle longest is
   closed (`web/connections.py`). `web/timeouts.py` has uvicorn's HTTP/1.1 parser with timeouts for
   clients that send headers or read responses too slowly.
2. `server.secure_app` has wrapped the app in six ASGI middlewares, outermost first:
   `SecurityHeadersMiddleware` (content security policy), `HostOriginMiddleware` (DNS rebinding,
   CSRF; 403), `auth.LoginMiddleware` (401, or the login page),
   `static_files.StaticFilesMiddleware` (answers requests for the page's files),
   `ConcurrencyLimitMiddleware` (503) and `BodyLimitMiddleware` (408, 413), which reads the body.
   All but the login and the files are of the package `web`, which the translation server shares.
3. `app.create_app`: FastAPI validates the JSON body as `schemas.TranslateRequest` and calls the
   route.
4. `workers.RequestPool.run` waits for one of a few worker threads; a full queue or a missed
   deadline is 503 with Retry-After. When the client disconnects, the request's
   `CancelToken` stops the work between two decoding steps (CTranslate2: before or
   after a beam search).
5. In the thread, `runs.RunRegistry.load` returns the model, from its cache or from disk, and
   `inference.translate_text` has the run's engine search and returns the translations with the
   log-probability of each token.
6. The result becomes JSON. Any exception on the way becomes `{"error": "one sentence"}`:
   `web.install_error_handlers` maps `HTTPException` to its status, `RegardError` and
   validation errors to 422, anything else to 500 with a traceback in the log.

The other routes differ in step 5: `traces.TraceRegistry` and uploads of trace files,
`traces.find_gold_alignment` for sentences of the phrasebook, `playground.attend_with_steps`,
`training_log.read_log`, and `web.render_api_docs` for the API reference at `/docs`. The page
itself is `static/`, plain ES modules.
"""

from regard._support.extras import needs_extra

with needs_extra("explorer", "the explorer needs"):
    from regard.explorer.app import create_app
    from regard.explorer.runs import RunRegistry
    from regard.explorer.server import secure_app, serve
    from regard.explorer.traces import TraceRegistry
    from regard.explorer.workers import RequestPool
    from regard.web import ServerAddress

__all__ = [
    "RequestPool",
    "RunRegistry",
    "ServerAddress",
    "TraceRegistry",
    "create_app",
    "secure_app",
    "serve",
]
