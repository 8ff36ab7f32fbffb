"""Choice of the engine that translates with a run, and its converted model in the run folder."""

import json
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import torch

from regard._support import files, user_cache
from regard._support.reading import read_bounded
from regard.data import Tokenizers
from regard.decoding import SentenceBatch, Translation, TranslationOptions
from regard.decoding.engines import (
    CTranslate2Engine,
    Engine,
    TorchEngine,
    check_quantization,
    save_ctranslate2,
    unsupported_part,
)
from regard.decoding.search import ShouldStop
from regard.errors import RegardError, unknown_name
from regard.models import Seq2SeqModel, Transformer

ENGINES = ("auto", "torch", "ctranslate2")
MANIFEST = "manifest.txt"  # a signature, and a JSON object of the other files
MAX_OTHER_BYTES = 2**28  # of vocabularies and position tables
CONVERSION_VERSION = 1  # of the files that the conversion writes


def choose_engine(
    model: Seq2SeqModel,
    tokenizers: Tokenizers,
    folder: Path | None,
    engine: str = "auto",
    quantization: str | None = None,
) -> Engine:
    """Return the engine for a model.

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
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    if quantization is not None:
        check_quantization(quantization)
    part = unsupported_part(model)
    if engine == "auto":
        engine = "torch" if part or find_spec("ctranslate2") is None else "ctranslate2"
    elif engine == "ctranslate2":
        check_quantization(quantization or "float32")  # CTranslate2 may be missing
        if part:
            raise RegardError(
                f"CTranslate2 cannot represent {part} of this model; use engine='torch'"
            )
    if engine == "torch" and quantization not in (None, "float32"):
        reason = f"CTranslate2 cannot represent {part}" if part else "the engine is torch"
        raise RegardError(
            f"quantization must be float32, but it is {quantization}: torch has no other, and "
            f"{reason}"
        )
    if engine == "torch":
        return TorchEngine(model, tokenizers)
    assert isinstance(model, Transformer)
    return _ConvertedEngine(model, tokenizers, folder, quantization or "float32")


class _ConvertedEngine:
    """A `CTranslate2Engine` that is loaded for the first translation."""

    name = "ctranslate2"

    def __init__(
        self, model: Transformer, tokenizers: Tokenizers, folder: Path | None, quantization: str
    ) -> None:
        self.model, self.tokenizers = model, tokenizers
        self.folder, self.quantization = folder, quantization
        self._lock = Lock()  # of loading: several threads translate
        self._loaded: CTranslate2Engine | None = None

    def __repr__(self) -> str:
        return f"CTranslate2Engine(quantization={self.quantization!r})"

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
                    self.model, self.tokenizers, content, self.quantization
                )
            return self._loaded


def converted_model(
    model: Transformer, tokenizers: Tokenizers, folder: Path | None
) -> dict[str, bytes]:
    """Return the files of the converted model by name, from a folder if it has them.

    A folder that is missing, damaged, of other parameters or of another user is written anew; one
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

    Whoever made a run folder could put any file into it, and CTranslate2 is not made for files
    that somebody wrote to harm: hence the signature.
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
        for name, data in content.items():
            files.write_file(folder / name, data)
        files.write_file(folder / MANIFEST, f"{user_cache.sign(text.encode())}\n{text}")
    except (OSError, RegardError):
        return  # the cache only saves time


def _identity(model: Transformer, tokenizers: Tokenizers) -> str:
    """Return a hash of all that the converted model depends on."""
    import ctranslate2

    digest = sha256(f"{CONVERSION_VERSION} {ctranslate2.__version__}".encode())
    for tokenizer in tokenizers:
        digest.update(json.dumps(tokenizer.to_dict(), sort_keys=True).encode())
    digest.update(repr(model).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
