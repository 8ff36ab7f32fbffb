"""Translation with CTranslate2: the same search on optimized and quantized kernels."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from regard._support.extras import needs_extra
from regard._support.threads import available_threads
from regard.data import BOS, PAD, Tokenizers
from regard.decoding.batching import max_target_length
from regard.decoding.engines.conversion import max_positions
from regard.decoding.engines.torch_engine import TorchEngine
from regard.decoding.hypothesis import DecodingCancelled
from regard.decoding.search import ShouldStop
from regard.decoding.sentences import (
    SentenceBatch,
    Translation,
    TranslationOptions,
    TranslationScores,
)
from regard.errors import RegardError, unknown_name
from regard.models import Transformer

if TYPE_CHECKING:
    import ctranslate2

QUANTIZATIONS = (
    "float32",
    "int8",
    "int8_float32",
    "int16",
    "float16",
    "int8_float16",
    "bfloat16",
    "int8_bfloat16",
)


class CTranslate2Engine:
    """Searches with CTranslate2 (Klein et al. 2020), on the CPU.

    Samples and translations with a prefix, whose last word may be completed, are left to torch;
    so are sentences that need more positions than the converted model has.

    Args:
        model: the model that was converted.
        tokenizers: of source and target.
        files: the converted model, by file name; see `save_ctranslate2`.
        quantization: one of `QUANTIZATIONS`, in which matrix products are computed.

    Raises:
        RegardError: if the CPU has no kernels for the quantization, or the model is damaged.
        MissingExtraError: if CTranslate2 is not installed.
    """

    name = "ctranslate2"

    def __init__(
        self,
        model: Transformer,
        tokenizers: Tokenizers,
        files: Mapping[str, bytes],
        quantization: str = "float32",
    ) -> None:
        self.quantization = check_quantization(quantization)
        self.tokenizers = tokenizers
        self.max_positions = max_positions(model)
        self._torch = TorchEngine(model, tokenizers)
        self._translator = _load_translator(files, quantization)
        self._source_tokens = _vocabulary(tokenizers.source)
        self._target_tokens = _vocabulary(tokenizers.target)
        self._target_ids = {token: n for n, token in enumerate(self._target_tokens)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(quantization={self.quantization!r})"

    def translate_batch(
        self,
        batch: SentenceBatch,
        options: TranslationOptions,
        should_stop: ShouldStop | None = None,
    ) -> list[list[Translation]]:
        """Return the translations of each sentence of a batch, best first."""
        longest = max(map(len, batch.sources))
        max_length = max_target_length(longest)
        if self._torch.model.max_length is not None:
            max_length = min(max_length, self._torch.model.max_length - 1)
        needs_torch = options.sampling is not None or any(batch.prefixes)
        if needs_torch or max(longest, max_length + 1) > self.max_positions:
            return self._torch.translate_batch(batch, options, should_stop)
        if should_stop is not None and should_stop():
            raise DecodingCancelled
        sources = [[self._source_tokens[token] for token in source] for source in batch.sources]
        results = self._translator.translate_batch(
            sources,
            beam_size=options.search.beam_size,
            num_hypotheses=options.n_best,
            length_penalty=options.search.length_penalty,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=max_length,
            suppress_sequences=[[self._target_tokens[token]] for token in (PAD, BOS)],
        )
        targets = [result.hypotheses for result in results]
        scores = _BatchScores(self._translator, sources, targets, options.search.length_penalty)
        return [
            [
                self._translation(tokens, scores, row, rank)
                for rank, tokens in enumerate(alternatives)
            ]
            for row, alternatives in enumerate(targets)
        ]

    def _translation(
        self, tokens: list[str], scores: "_BatchScores", row: int, rank: int
    ) -> Translation:
        ids = tuple(self._target_ids[token] for token in tokens)
        return Translation.with_deferred_scores(
            self.tokenizers.target.decode(ids), ids, lambda: scores.of(row, rank)
        )


class _BatchScores:
    """Log-probabilities of the translations of a batch, computed when the first is read.

    CTranslate2 does not return them token by token. One pass with teacher forcing computes them,
    which takes about as long as greedy search and is often not needed.
    """

    def __init__(
        self,
        translator: "ctranslate2.Translator",
        sources: list[list[str]],
        targets: list[list[list[str]]],
        length_penalty: float,
    ) -> None:
        self._translator = translator
        self._sources = sources
        self._targets = targets
        self._length_penalty = length_penalty

    def of(self, row: int, rank: int) -> TranslationScores:
        """Return the scores of one translation."""
        log_probs = self._log_probs[row][rank]
        total = sum(log_probs)
        return TranslationScores(total, log_probs, total / len(log_probs) ** self._length_penalty)

    @cached_property
    def _log_probs(self) -> list[list[tuple[float, ...]]]:
        counts = [len(alternatives) for alternatives in self._targets]
        sources = [
            source
            for source, count in zip(self._sources, counts, strict=True)
            for _ in range(count)
        ]
        targets = [target for alternatives in self._targets for target in alternatives]
        results = iter(self._translator.score_batch(sources, targets, max_input_length=0))
        return [[tuple(next(results).log_probs) for _ in range(count)] for count in counts]


def check_quantization(quantization: str) -> str:
    """Return the name of a quantization that this CPU can compute.

    Raises:
        RegardError: if there is no such quantization, or the CPU lacks it.
        MissingExtraError: if CTranslate2 is not installed.

    Example:
        >>> check_quantization("int9")
        Traceback (most recent call last):
        regard.errors.RegardError: no quantization is called 'int9'. Did you mean 'int8'? ...
    """
    if quantization not in QUANTIZATIONS:
        raise unknown_name("quantization", quantization, QUANTIZATIONS)
    with needs_extra("fast", "the CTranslate2 engine needs"):
        import ctranslate2
    supported = ctranslate2.get_supported_compute_types("cpu")
    if quantization not in supported:
        offered = ", ".join(name for name in QUANTIZATIONS if name in supported)
        raise RegardError(
            f"quantization must be one that this CPU supports ({offered}), but it is {quantization}"
        )
    return quantization


def _load_translator(files: Mapping[str, bytes], quantization: str) -> "ctranslate2.Translator":
    import ctranslate2
    import torch

    threads = torch.get_num_threads()
    try:
        return ctranslate2.Translator(
            "model",
            files=dict(files),
            compute_type=quantization,
            inter_threads=available_threads(),
            intra_threads=1,
        )
    except (RuntimeError, ValueError) as error:
        raise RegardError(f"CTranslate2 cannot load the converted model: {error}") from error
    finally:
        torch.set_num_threads(threads)  # loading may change it


def _vocabulary(tokenizer: Any) -> Sequence[str]:
    tokens: Sequence[str] = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    return tokens
