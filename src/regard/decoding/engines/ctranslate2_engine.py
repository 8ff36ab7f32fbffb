"""Translation with CTranslate2: the same search on optimized and quantized kernels."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from regard._support.resources import available_threads
from regard.data import BOS, PAD, Tokenizers
from regard.decoding.engines.ctranslate2_conversion import max_positions
from regard.decoding.engines.quantization import check_quantization, max_batch_size
from regard.decoding.engines.torch_engine import TorchEngine
from regard.decoding.hypothesis import DecodingCancelled
from regard.decoding.sampling import SamplingConfig
from regard.decoding.search import ShouldStop
from regard.decoding.sentences import (
    SentenceBatch,
    Translation,
    TranslationOptions,
    TranslationScores,
)
from regard.errors import RegardError
from regard.models import Transformer

if TYPE_CHECKING:
    import ctranslate2

_TokenIds = Sequence[Sequence[int]]


class CTranslate2Engine:
    """Searches with CTranslate2 (Klein et al. 2020), on the CPU or a GPU.

    Torch searches what CTranslate2 would search differently:

    - Prefixes: any tokens may spell the last word of a prefix, and CTranslate2 forces given tokens.
      It also leaves their log-probabilities out of the score.
    - Samples with a seed, since CTranslate2 has one random generator for all requests; and with
      both `top_k` and `top_p`, which it applies to the probabilities of the `top_k` tokens.
    - Beams with a `min_length`, where CTranslate2 ranks by probabilities without that of EOS, and
      sentences whose beams exceed a given `max_length`, which it ranks without EOS.
    - Sentences that need more positions than the converted model has.

    Args:
        model: the model that was converted.
        tokenizers: of source and target.
        files: the converted model, by file name; see `save_ctranslate2`.
        quantization: one of `QUANTIZATIONS`, in which matrix products are computed.
        device: where it computes, a CPU or a GPU that CTranslate2 supports.
        threads: how many batches are translated at the same time; as many as torch has threads by
            default.

    Raises:
        RegardError: if the device has no kernels for the quantization, or the model is damaged.
        MissingExtraError: if CTranslate2 is not installed.
    """

    name = "ctranslate2"

    def __init__(
        self,
        model: Transformer,
        tokenizers: Tokenizers,
        files: Mapping[str, bytes],
        quantization: str = "float32",
        device: torch.device | str = "cpu",
        threads: int | None = None,
    ) -> None:
        self.device = torch.device(device)
        self.quantization = check_quantization(quantization, self.device)
        self.tokenizers = tokenizers
        self.max_positions = max_positions(model)
        self.max_batch_size = max_batch_size(quantization, self.device)
        self._torch = TorchEngine(model, tokenizers)
        self._translator = _load_translator(
            files, quantization, self.device, available_threads() if threads is None else threads
        )
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
        """Return the translations of each sentence of a batch, best first.

        CTranslate2 cannot be cancelled within a beam search: `should_stop` is called before and
        after a batch and, in greedy search and sampling, for every token of a single sentence.
        """
        is_beam_search = options.sampling is None and options.search.beam_size > 1
        is_different = is_beam_search and options.min_length > 0
        if any(batch.prefixes) or is_different or not _can_sample(options.sampling):
            return self._torch.translate_batch(batch, options, should_stop)
        longest = max(map(len, batch.sources))
        max_length = options.length_limits(longest, self._torch.model.max_length).max_length
        if max(longest, max_length + 1) > self.max_positions:
            return self._torch.translate_batch(batch, options, should_stop)
        if should_stop is not None and should_stop():
            raise DecodingCancelled
        sources = _to_tokens(self._source_tokens, batch.sources)
        # a step more than allowed, to recognize beams that would have to be cut
        has_extra_step = is_beam_search and options.max_length is not None
        results = self._translator.translate_batch(
            sources,
            max_batch_size=self.max_batch_size,
            max_input_length=0,
            min_decoding_length=options.min_length,
            max_decoding_length=max_length + 1 if has_extra_step else max_length,
            suppress_sequences=[[self._target_tokens[token]] for token in (PAD, BOS)],
            callback=_callback(should_stop, len(sources), is_beam_search),
            **self._search_arguments(options),
        )
        if should_stop is not None and should_stop():
            raise DecodingCancelled
        ids = self._target_ids
        targets = [
            [tuple(ids[token] for token in tokens) for tokens in result.hypotheses]
            for result in results
        ]
        penalty = options.search.length_penalty if options.sampling is None else 1.0
        scores = _BatchScores(self._score_batch, batch.sources, targets, penalty)
        translations = [
            [
                self._translation(tokens, scores, row, rank)
                for rank, tokens in enumerate(alternatives)
            ]
            for row, alternatives in enumerate(targets)
        ]
        if has_extra_step:
            self._search_cut_again(translations, batch, options, should_stop)
        return translations

    def _search_arguments(self, options: TranslationOptions) -> dict[str, Any]:
        sampling = options.sampling
        if sampling is None:
            return {
                "beam_size": options.search.beam_size,
                "num_hypotheses": options.n_best,
                "length_penalty": options.search.length_penalty,
            }
        return {
            "beam_size": 1,
            "sampling_topk": min(sampling.top_k or 0, len(self._target_tokens)),  # 0: all
            "sampling_topp": sampling.top_p,
            "sampling_temperature": sampling.temperature,
        }

    def _search_cut_again(
        self,
        translations: list[list[Translation]],
        batch: SentenceBatch,
        options: TranslationOptions,
        should_stop: ShouldStop | None,
    ) -> None:
        """Replace translations of sentences with one that is too long by those of torch."""
        assert options.max_length is not None
        rows = [
            row
            for row, alternatives in enumerate(translations)
            if any(len(each.tokens) > options.max_length for each in alternatives)
        ]
        if rows:
            part = SentenceBatch(
                [batch.rows[row] for row in rows],
                [batch.sources[row] for row in rows],
                [],
                [batch.numbers[row] for row in rows],
            )
            again = self._torch.translate_batch(part, options, should_stop)
            for row, alternatives in zip(rows, again, strict=True):
                translations[row] = alternatives

    def _translation(
        self, tokens: tuple[int, ...], scores: "_BatchScores", row: int, rank: int
    ) -> Translation:
        return Translation.with_deferred_scores(
            self.tokenizers.target.decode(tokens), tokens, lambda: scores.of(row, rank)
        )

    def _score_batch(self, sources: _TokenIds, targets: _TokenIds) -> list[tuple[float, ...]]:
        """Return the log-probability of each token of the targets and of EOS."""
        results = self._translator.score_batch(
            _to_tokens(self._source_tokens, sources),
            _to_tokens(self._target_tokens, targets),
            max_batch_size=self.max_batch_size,
            max_input_length=0,
        )
        return [tuple(result.log_probs) for result in results]


class _BatchScores:
    """Log-probabilities of the translations of a batch, computed when the first is read.

    CTranslate2 does not return them token by token. One pass with teacher forcing computes them,
    which takes about as long as greedy search and is often not needed.
    """

    def __init__(
        self,
        score_batch: Callable[[_TokenIds, _TokenIds], list[tuple[float, ...]]],
        sources: _TokenIds,
        targets: Sequence[_TokenIds],
        length_penalty: float,
    ) -> None:
        self._score_batch = score_batch
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
        results = iter(self._score_batch(sources, targets))
        return [[next(results) for _ in range(count)] for count in counts]


def _can_sample(sampling: SamplingConfig | None) -> bool:
    """Return whether CTranslate2 samples as torch does, or there is nothing to sample."""
    if sampling is None:
        return True
    return sampling.seed is None and (sampling.top_k is None or sampling.top_p == 1.0)


def _callback(
    should_stop: ShouldStop | None, num_sentences: int, is_beam_search: bool
) -> Callable[[Any], bool] | None:
    """Return what CTranslate2 calls for every token, to stop when it returns True.

    Of several sentences each would have to be stopped by itself, and the threads would wait for
    each other at every token.
    """
    if should_stop is None or num_sentences > 1 or is_beam_search:
        return None
    return lambda step: should_stop()


def _load_translator(
    files: Mapping[str, bytes], quantization: str, device: torch.device, threads: int
) -> "ctranslate2.Translator":
    import ctranslate2

    torch_threads = torch.get_num_threads()
    try:
        return ctranslate2.Translator(
            "model",
            files=dict(files),
            device=device.type,
            device_index=device.index or 0,
            compute_type=quantization,
            inter_threads=threads if device.type == "cpu" else 1,
            intra_threads=1,
        )
    except (RuntimeError, ValueError) as error:
        raise RegardError(f"CTranslate2 cannot load the converted model: {error}") from error
    finally:
        torch.set_num_threads(torch_threads)  # loading may change it


def _vocabulary(tokenizer: Any) -> Sequence[str]:
    tokens: Sequence[str] = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    return tokens


def _to_tokens(vocabulary: Sequence[str], sequences: _TokenIds) -> list[list[str]]:
    return [[vocabulary[token] for token in sequence] for sequence in sequences]
