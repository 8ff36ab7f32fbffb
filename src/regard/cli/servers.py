"""The commands that serve over HTTP: `regard explore` and `regard serve`."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import (
    BeamSize,
    EngineOption,
    Quantization,
    Verbose,
    command,
    echo,
    interruptible,
)

Host = Annotated[
    str,
    typer.Option(
        "--host", help="Address to listen on; any but localhost is open to other machines."
    ),
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 picks a free one.")]
NoToken = Annotated[
    bool,
    typer.Option(
        "--no-token",
        help="Disable authentication; only for localhost, whose users all get access.",
    ),
]


@command()
def explore(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN …]", help="Run folders; demo-model if none are given."),
    ] = None,
    trace: Annotated[
        list[Path] | None, typer.Option(help="Trace file to show; repeatable.")
    ] = None,
    port: Port = 8765,
    host: Host = "127.0.0.1",
    no_token: NoToken = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    engine: EngineOption = "auto",
    quantization: Quantization = None,
    verbose: Verbose = False,
) -> None:
    """Translate sentences and look at attention in a browser."""
    from regard.explorer import serve as serve_explorer

    with interruptible():
        serve_explorer(
            runs or [],
            trace or [],
            host,
            port,
            needs_token=not no_token,
            open_page=open_page,
            engine=engine,
            quantization=quantization,
            verbose=verbose,
            echo=echo,
        )


@command()
def serve(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN …", help="Run folders, or demo-model; RUN=en:fr names its languages."
        ),
    ],
    host: Host = "127.0.0.1",
    port: Port = 5000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="REGARD_TOKEN",
            show_envvar=True,
            help="Secret that requests carry. Default: a random one, which is printed.",
        ),
    ] = None,
    no_token: NoToken = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with its own models.")] = 1,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Host name under which a proxy passes requests; repeatable.",
        ),
    ] = None,
    engine: EngineOption = "auto",
    quantization: Quantization = None,
    beam_size: BeamSize = None,
    max_batch_size: Annotated[
        int, typer.Option(min=1, help="Lines that are translated together; 1 disables batching.")
    ] = 64,
    max_queue_size: Annotated[
        int, typer.Option(min=1, help="Lines that may wait in a process; more get 503.")
    ] = 1024,
    verbose: Verbose = False,
) -> None:
    """Serve translations over HTTP, with LibreTranslate's API."""
    from regard.serving import serve as serve_runs

    with interruptible():
        serve_runs(
            runs,
            host,
            port,
            token=token,
            needs_token=not no_token,
            workers=workers,
            allowed_hosts=allowed_hosts or (),
            engine=engine,
            quantization=quantization,
            beam_size=beam_size,
            max_batch_size=max_batch_size,
            max_queue_size=max_queue_size,
            verbose=verbose,
            echo=echo,
        )
