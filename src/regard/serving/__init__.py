"""A translation server with LibreTranslate's API, for runs that were trained with regard.

`regard serve RUN…` calls `serve`. One request, `POST /translate`, takes this path:

1. The package `web` accepts the connection and bounds what clients can do; `middleware.secure_app`
   stacks its middlewares and adds two for LibreTranslate's clients: `FormMiddleware`, since they
   may send HTML forms, and `ApiKeyMiddleware`, since they put the token into the body.
2. `app.create_app`: FastAPI validates the body as `schemas.LibreTranslateRequest`.
3. `service.TranslationService` finds the run of the two languages, splits texts into lines, encodes
   them and checks their lengths. A request that is invalid gets 400.
4. `dynamic_batching.DynamicBatcher` queues the lines and translates them in threads, together with
   those of other requests. A full queue or a missed deadline is 503 with Retry-After.
5. `served_run.LoadedRun` sorts a batch by length and passes it to the run's engine.

`served_run.ServedRun` loads a run again when its files change; requests that are in progress finish
with the model they began with. `prometheus` counts all of that for Prometheus. With several worker
processes, each has its own models and queue, and they share the listening socket
(`server.serve`). No process has any state that outlives a request, so that any load balancer can
share requests between machines.
"""

from regard._support.extras import needs_extra

with needs_extra("serve", "the translation server needs"):
    import fastapi as _  # noqa: F401  # before `web`, which names the extra of the explorer

    from regard.serving.app import create_app
    from regard.serving.dynamic_batching import DynamicBatcher, QueueFullError
    from regard.serving.languages import LanguagePair, language_name, parse_run
    from regard.serving.middleware import secure_app
    from regard.serving.prometheus import Metrics
    from regard.serving.schemas import ServingLimits
    from regard.serving.served_run import ServedRun
    from regard.serving.server import ServingConfig, build_server, serve
    from regard.serving.service import TranslationService

__all__ = [
    "DynamicBatcher",
    "LanguagePair",
    "Metrics",
    "QueueFullError",
    "ServedRun",
    "ServingConfig",
    "ServingLimits",
    "TranslationService",
    "build_server",
    "create_app",
    "language_name",
    "parse_run",
    "secure_app",
    "serve",
]
