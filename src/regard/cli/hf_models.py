"""Hugging Face models by name: from the cache or the network, without foreign output."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from torch import nn

from regard._support.extras import needs_extra
from regard.errors import RegardError


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
