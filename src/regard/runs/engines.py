"""Choice of the engine that translates with a run, and its converted model in the run folder."""

import json
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, NamedTuple

import torch

from regard._support import files, user_cache
from regard._support.extras import needs_extra
from regard._support.reading import read_bounded
from regard._support.resources import available_threads
from regard.data import Tokenizers
from regard.decoding import SentenceBatch, ShouldStop, Translation, TranslationOptions
from regard.decoding.engines import (
    QUANTIZATIONS,
    CTranslate2Engine,
    Engine,
    TorchEngine,
    check_quantization,
    save_ctranslate2,
    unsupported_part,
)
from regard.errors import RegardError, unknown_name
from regard.models import Seq2SeqModel, Transformer
from regard.runs import parameters

ENGINES = ("auto", "torch", "ctranslate2")
"""Names of engines; "auto" is CTranslate2 where it is installed and supports the model."""

MANIFEST = "manifest.txt"  # a signature, and a JSON object of the other files
MAX_OTHER_BYTES = 2**28  # of vocabularies and position tables
CONVERSION_VERSION = 1  # of the files that the conversion writes


class EngineChoice(NamedTuple):
    """Name of an engine, and the reason why it is taken."""

    name: str
    reason: str


def choose_engine(
    model: Seq2SeqModel,
    tokenizers: Tokenizers,
    folder: Path | None,
    engine: str = "auto",
    quantization: str | None = None,
) -> Engine:
    """Return the engine for a model, on the device where the model is.

    Args:
        model: the model.
        tokenizers: its tokenizers.
        folder: where the converted model is kept; None keeps it in memory only.
        engine: "torch", "ctranslate2", or "auto", which takes CTranslate2 if it is installed and
            can represent the model, and torch otherwise.
        quantization: in which CTranslate2 computes matrix products, such as "int8"; float32 by
            default.

    Raises:
        RegardError: if there is no such engine or quantization, CTranslate2 cannot represent the
            model, or a quantization is given that the engine does not have.
        MissingExtraError: if CTranslate2 is asked for and not installed.
    """
    device = model.output_weight.device
    check_engine(engine, quantization, device)
    choice = _choose(model, device, engine)
    if choice.name == "ctranslate2":
        assert isinstance(model, Transformer)
        return _ConvertedEngine(model, tokenizers, folder, quantization or "float32", device)
    if quantization not in (None, "float32"):
        raise RegardError(
            f"quantization must be float32, but it is {quantization}: torch has no other, and "
            f"{choice.reason}"
        )
    return TorchEngine(model, tokenizers)


def check_engine_names(engine: str, quantization: str | None = None) -> None:
    """Raise RegardError, with the nearest name, unless there are such engine and quantization."""
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    if quantization is not None and quantization not in QUANTIZATIONS:
        raise unknown_name("quantization", quantization, QUANTIZATIONS)


def check_engine(
    engine: str, quantization: str | None = None, device: torch.device | str = "cpu"
) -> None:
    """Raise unless an engine can translate some model with a quantization on a device.

    Raises:
        RegardError: if there is no such engine or quantization, the device lacks the quantization,
            or the engine is torch and it is not float32.
        MissingExtraError: if CTranslate2 is asked for and not installed.

    Example:
        >>> check_engine("torhc")
        Traceback (most recent call last):
        regard.errors.RegardError: no engine is called 'torhc'. Did you mean 'torch'? ...
    """
    check_engine_names(engine, quantization)
    is_quantized = quantization not in (None, "float32")
    if engine == "torch" and is_quantized:
        raise RegardError(
            f"quantization must be float32, but it is {quantization}: torch has no other, and the "
            "engine is torch"
        )
    if engine == "ctranslate2" or is_quantized:
        check_quantization(quantization or "float32", device)


def describe_engine(engine: Engine, model: Seq2SeqModel, asked: str = "auto") -> str:
    """Return one line that says which engine translates with a model, and why.

    Args:
        engine: the engine that `choose_engine` has returned.
        model: the model.
        asked: the engine that `choose_engine` was asked for.

    Example:
        >>> describe_engine(TorchEngine(run.model, run.tokenizers), run.model, "torch")
        'engine: TorchEngine(), since the engine is torch'
    """
    line = f"engine: {engine!r}, since {_choose(model, model.output_weight.device, asked).reason}"
    if engine.name == "torch":
        return line
    return (
        f"{line}; torch searches prefixes, beams with a min_length, samples with a seed or with "
        "both top_k and top_p, and traces attention"
    )


def _choose(model: Seq2SeqModel, device: torch.device, engine: str) -> EngineChoice:
    """Choose between torch and CTranslate2; raise if CTranslate2 is asked for and cannot do it."""
    if engine == "torch":
        return EngineChoice("torch", "the engine is torch")
    if engine == "auto" and find_spec("ctranslate2") is None:
        return EngineChoice("torch", "CTranslate2 is not installed (pip install 'regard[fast]')")
    problem = _problem(model, device)
    if problem and engine == "ctranslate2":
        raise RegardError(f"{problem}; use engine='torch'")
    if problem:
        return EngineChoice("torch", problem)
    reason = "the engine is ctranslate2"
    if engine == "auto":
        reason = "CTranslate2 is installed and can represent the model"
    return EngineChoice("ctranslate2", reason)


def _problem(model: Seq2SeqModel, device: torch.device) -> str | None:
    """Return why CTranslate2 cannot translate with a model on a device; None if it can."""
    with needs_extra("fast", "the CTranslate2 engine needs"):
        import ctranslate2
    if part := unsupported_part(model):
        return f"CTranslate2 cannot represent {part} of this model"
    if device.type == "cuda" and ctranslate2.get_cuda_device_count() <= (device.index or 0):
        return f"CTranslate2 cannot use the device {device}"
    return None


class _ConvertedEngine:
    """A `CTranslate2Engine` that is loaded for the first translation."""

    name = "ctranslate2"

    def __init__(
        self,
        model: Transformer,
        tokenizers: Tokenizers,
        folder: Path | None,
        quantization: str,
        device: torch.device,
    ) -> None:
        self.model, self.tokenizers = model, tokenizers
        self.folder, self.quantization, self.device = folder, quantization, device
        self.threads = available_threads()
        self._lock = Lock()  # of loading: several threads translate
        self._loaded: CTranslate2Engine | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # what CTranslate2 has loaded cannot be copied; a copy loads it again
        arguments = (self.model, self.tokenizers, self.folder, self.quantization, self.device)
        return type(self), arguments

    def __repr__(self) -> str:
        device = "" if self.device.type == "cpu" else f", device='{self.device}'"
        return f"CTranslate2Engine(quantization={self.quantization!r}{device})"

    def translate_batch(
        self,
        batch: SentenceBatch,
        options: TranslationOptions,
        should_stop: ShouldStop | None = None,
    ) -> list[list[Translation]]:
        """Return the translations of each sentence of a batch, best first."""
        return self._load().translate_batch(batch, options, should_stop)

    def _load(self) -> CTranslate2Engine:
        with self._lock:
            if self._loaded is None:
                content = converted_model(self.model, self.tokenizers, self.folder)
                self._loaded = CTranslate2Engine(
                    self.model,
                    self.tokenizers,
                    content,
                    self.quantization,
                    self.device,
                    self.threads,
                )
            return self._loaded


def converted_model(
    model: Transformer, tokenizers: Tokenizers, folder: Path | None
) -> dict[str, bytes]:
    """Return the files of the converted model by name, from a folder if it has them.

    A folder that is missing, damaged, of other parameters or of another user is rewritten; one
    that cannot be written is left as it is.
    """
    identity = _identity(model, tokenizers)
    max_bytes = MAX_OTHER_BYTES + 8 * sum(parameter.numel() for parameter in model.parameters())
    content = None if folder is None else _read(folder, identity, max_bytes)
    if content is None:
        with TemporaryDirectory() as temp:
            save_ctranslate2(model, tokenizers, Path(temp))
            content = {path.name: path.read_bytes() for path in sorted(Path(temp).iterdir())}
        if folder is not None:
            _write(folder, identity, content)
    return content


def _read(folder: Path, identity: str, max_bytes: int) -> dict[str, bytes] | None:
    """Return the files of a folder; None unless this user wrote them for this model.

    A run folder may come from anyone, and CTranslate2 does not guard against malicious files: only
    files that this user has signed are loaded.
    """
    try:
        signature, _, text = read_bounded(folder / MANIFEST, max_bytes).partition(b"\n")
        if not user_cache.is_signed(text, signature.decode()):
            return None
        manifest = json.loads(text)
        if manifest["model"] != identity:
            return None
        content = {name: read_bounded(folder / name, max_bytes) for name in manifest["files"]}
    except (OSError, ValueError, LookupError, TypeError):
        return None
    is_intact = all(_digest(content[name]) == digest for name, digest in manifest["files"].items())
    return content if is_intact else None


def _write(folder: Path, identity: str, content: dict[str, bytes]) -> None:
    digests = {name: _digest(data) for name, data in content.items()}
    text = json.dumps({"model": identity, "files": digests}, indent=2) + "\n"
    try:
        if folder.is_symlink():
            return  # it may lead anywhere
        signed = f"{user_cache.sign(text.encode())}\n{text}".encode()
        for name, data in {**content, MANIFEST: signed}.items():
            files.write_file(folder / name, data, replace_link=True)
    except (OSError, RegardError):
        return  # the cache only saves time


def _identity(model: Transformer, tokenizers: Tokenizers) -> str:
    """Return a hash of all that the converted model depends on."""
    import ctranslate2

    versions = f"{CONVERSION_VERSION} {ctranslate2.__version__}"
    parts = (versions, tokenizers.digest, repr(model), parameters.digest(model.state_dict()))
    return _digest("\n".join(parts).encode())


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
