"""What `regard look` does: trace a run or a Hugging Face model and draw it."""

import os
import socket
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args
from urllib.parse import urlsplit

from torch import nn

from regard._support.extras import needs_extra
from regard._support.text import escape_control
from regard.analysis import select_head
from regard.capture import trace_hf
from regard.cli.translate import warn_of_input
from regard.errors import RegardError
from regard.runs import load
from regard.trace import Rows, Trace, merge_subwords
from regard.viz import (
    describe_head,
    find_group,
    plot_all_heads,
    plot_head,
    render_all_heads,
    render_head,
    resolve_head,
    save_figure,
    save_page,
)


class HeadSelection(NamedTuple):
    """The head to draw; kind None selects cross-attention, layer and head None the clearest."""

    kind: str | None = None
    layer: int | None = None
    head: int | None = None


def trace_run(path: Path, sentence: str, target: str | None = None) -> Trace:
    """Trace a run that translates a sentence, or is teacher-forced to a given target.

    Warns on stderr if the sentence is unlike the training data.
    """
    run = load(path)
    warn_of_input(run, [sentence])
    return run.trace(sentence, target)


def trace_hf_model(name: str, text: str, target: str | None = None) -> Trace:
    """Load a Hugging Face model by its name or folder, and trace it as `regard.trace_hf` does."""
    model, tokenizer = load_hf_model(name)
    return trace_hf(model, tokenizer, text, target)


def draw(
    trace: Trace,
    selection: HeadSelection,
    words: bool,
    paths: Mapping[str, Path],
    all_heads: bool = False,
    rows: str = "output",
) -> str:
    """Draw a head or all heads, as text or to files by format; return the lines to print.

    The first line is the text and its translation. If the head was not given, a line says which
    was selected and why. Rows of cross-attention are named by `rows`, "output" or "input" words.
    """
    row_names = _check_rows(rows)
    trace = merge_subwords(trace) if words else trace
    lines = [escape_control(trace.title)] if trace.title else []
    if all_heads:
        kind = find_group(trace, selection.kind).name
    else:
        selection, reason = _select(trace, selection)
        lines += [escape_control(reason)] if reason else []
    if not paths:
        untitled = replace(trace, title="")  # the title is the first line already
        drawn = (
            render_all_heads(trace, kind, rows=row_names)
            if all_heads
            else render_head(untitled, *selection, rows=row_names)
        )
        return "\n\n".join(["\n".join(lines), drawn]).lstrip()
    for format, path in paths.items():
        if format == "html":
            save_page(trace, path, *selection, rows=row_names)
        else:
            figure = (
                plot_all_heads(trace, kind, rows=row_names)
                if all_heads
                else plot_head(trace, *selection, rows=row_names)
            )
            save_figure(figure, path, format)
    return "\n".join([*lines, *(escape_control(f"wrote {path}") for path in paths.values())])


def _check_rows(rows: str) -> Rows:
    if rows not in get_args(Rows):
        raise RegardError(f"--rows must be output or input, but it is {rows!r}")
    return cast(Rows, rows)


def open_in_browser(path: Path) -> str:
    """Open a page in the browser; return the line to print if there is none, else ""."""
    uri = path.resolve().as_uri()
    return "" if webbrowser.open(uri) else f"no browser was found; the page is {uri}"


def _select(trace: Trace, selection: HeadSelection) -> tuple[HeadSelection, str]:
    """Return a complete selection, and the reason if layer or head were not given."""
    group, layer, head = resolve_head(trace, *selection)
    complete = HeadSelection(group.name, layer, head)
    if None not in (selection.layer, selection.head):
        return complete, ""
    given = None if selection.layer is None else layer
    chosen = select_head(trace, group.maps, layer=given, head=selection.head)
    if chosen.candidates == 1:
        return complete, ""
    return complete, (
        f"{describe_head(group.name, layer, head)} has the {chosen.criterion} of "
        f"{chosen.candidates} heads, {chosen.value:.2f}; --all shows them all"
    )


def load_hf_model(name: str) -> tuple[nn.Module, Any]:
    """Return a model in evaluation mode and its tokenizer.

    Files in the cache are used as they are; only missing ones are downloaded.

    Args:
        name: a name on the Hugging Face hub, or a folder.

    Raises:
        RegardError: if the model is not found, cannot be loaded, or cannot be downloaded.
    """
    with needs_extra("hf", "--hf needs"):
        import transformers  # noqa: F401
    with _quiet():
        with suppress(OSError, ValueError, KeyError):
            return _load(name, local_files_only=True)
        if not Path(name).is_dir() and (host := _unreachable_host()):
            raise RegardError(
                f"{name!r} is neither a folder nor in the cache of Hugging Face models, and "
                f"{host} cannot be reached to download it"
            )
        try:
            return _load(name)
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).strip().splitlines()[0]
            raise RegardError(f"transformers cannot load {name!r}: {reason}") from error


def _load(name: str, **options: Any) -> tuple[nn.Module, Any]:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
    config = transformers.AutoConfig.from_pretrained(name, **options)
    auto_class = (
        transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModel
    )
    return auto_class.from_pretrained(name, **options).eval(), tokenizer


def _unreachable_host() -> str | None:
    """Return the host of the hub if its name has no address; retries would take a minute."""
    host = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co").hostname
    if host is None or any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy")):
        return None  # a proxy may know it
    try:
        socket.getaddrinfo(host, 443)
    except OSError:
        return host
    return None


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress progress bars and warnings of transformers and the hub."""
    hub_logging = import_module("huggingface_hub.utils.logging")
    transformers_logging = import_module("transformers.utils.logging")
    loggers = (transformers_logging, hub_logging)
    levels = [logger.get_verbosity() for logger in loggers]
    has_bars = transformers_logging.is_progress_bar_enabled()
    for logger in loggers:
        logger.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.set_verbosity(level)
        if has_bars:
            transformers_logging.enable_progress_bar()
