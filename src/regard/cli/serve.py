"""The command `regard serve`."""

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


@command()
def serve(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN …", help="Run folders, or demo-model; RUN=en:fr names its languages."
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but localhost is open to other machines.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 5000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="REGARD_TOKEN",
            show_envvar=True,
            help="Secret that requests carry. Default: a random one, which is printed.",
        ),
    ] = None,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token",
            help="Disable authentication; only for localhost, whose users all get access.",
        ),
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with its own models.")] = 1,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Host name under which a proxy passes requests; repeatable."
        ),
    ] = None,
    engine: EngineOption = "auto",
    quantization: Quantization = None,
    beam_size: BeamSize = None,
    max_batch: Annotated[
        int, typer.Option(min=1, help="Lines that are translated together; 1 disables batching.")
    ] = 64,
    max_queue: Annotated[
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
            proxy_names=allow_host or (),
            engine=engine,
            quantization=quantization,
            beam_size=beam_size,
            max_batch_size=max_batch,
            max_queued=max_queue,
            verbose=verbose,
            echo=echo,
        )
