"""Translation of sentences: tokenize, batch by length, search, detokenize."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from warnings import warn

import torch

from regard._support.progress import track
from regard._support.threads import available_threads, parallel_map
from regard.config import SearchConfig
from regard.data import Tokenizers, pad_sequences
from regard.decoding.batching import length_batches, max_target_length
from regard.decoding.hypothesis import Hypothesis, LengthLimits
from regard.decoding.sampling import SamplingConfig, sample
from regard.decoding.search import ShouldStop, beam_search
from regard.errors import RegardError
from regard.models import Seq2SeqModel


class Translation(NamedTuple):
    """One translation of a sentence.

    Attributes:
        text: the translation.
        tokens: its token ids, without BOS and EOS.
        log_prob: log-probability of the tokens and of EOS, by the model.
        token_log_probs: log-probability of each token given those before it; the last one is
            EOS's. They sum to `log_prob`. Empty for the translation of an empty sentence.
        score: by which alternatives are ranked; see `Hypothesis`.
    """

    text: str
    tokens: tuple[int, ...] = ()
    log_prob: float = 0.0
    token_log_probs: tuple[float, ...] = ()
    score: float = 0.0


def translate(
    model: Seq2SeqModel,
    tokenizers: Tokenizers,
    sentences: Sequence[str] | Sequence[Sequence[int]],
    config: SearchConfig | None = None,
    *,
    n_best: int = 1,
    sampling: SamplingConfig | None = None,
    progress: bool = False,
    should_stop: ShouldStop | None = None,
) -> list[list[Translation]]:
    """Translate sentences, in batches of similar length over all of torch's threads.

    Args:
        model: the model, in evaluation mode.
        tokenizers: of source and target.
        sentences: the sources, whitespace around which is ignored, or their token ids.
        config: beam size and length penalty; the defaults of `SearchConfig` if None.
        n_best: number of translations of each sentence; a smaller beam is enlarged to it.
        sampling: sample one translation instead of searching for the best.
        progress: whether to report progress on stderr.
        should_stop: called before every decoding step, from several threads; the translation is
            cancelled when it returns True.

    Returns:
        The translations of each sentence, best first, in the order of the sentences. An empty
        sentence has empty translations.

    Raises:
        RegardError: if `n_best` is out of range, or a sentence has no translation (NaN logits).
        DecodingCancelled: if `should_stop` returned True.

    Example:
        >>> from regard.config import ModelConfig
        >>> from regard.data import train_tokenizer
        >>> from regard.models import build
        >>> tokenizer = train_tokenizer(["a cat", "a dog"], "characters")
        >>> config = ModelConfig(width=32, layers=1, heads=2, positions="learned", max_positions=9)
        >>> model = build(config, (len(tokenizer), len(tokenizer))).eval()
        >>> results = translate(model, Tokenizers(tokenizer, tokenizer), ["a cat", ""], n_best=2)
        >>> [len(translations) for translations in results]
        [2, 2]
    """
    config = _search_config(config, n_best, sampling)
    sources = _truncate(_source_tokens(tokenizers, sentences), model.max_length)
    # samples depend on the batches, which must not depend on the machine: one thread, one beam
    beam_size, threads = (1, 1) if sampling else (config.beam_size, available_threads())
    batches = list(length_batches(sources, beam_size, threads))

    def search(batch: tuple[int, list[int]]) -> list[list[Hypothesis]]:
        index, rows = batch
        own_sampling = sampling and sampling.for_batch(index)
        batch_sources = [sources[row] for row in rows]
        return _search(model, batch_sources, config, n_best, own_sampling, should_stop)

    translations = [[Translation("")] * n_best for _ in sentences]
    results = zip(batches, parallel_map(search, enumerate(batches)), strict=True)
    total = sum(map(len, batches))
    for rows, batch_hypotheses in track(
        results, "sentences", total, size=lambda result: len(result[0]), visible=progress
    ):
        for row, hypotheses in zip(rows, batch_hypotheses, strict=True):
            translations[row] = [_translation(each, tokenizers) for each in hypotheses]
    return translations


def format_lines(translations: Sequence[Translation]) -> str:
    """Format the translations of one sentence as lines.

    Args:
        translations: one or more translations.

    Returns:
        The text of a single translation; of several, a line `score<tab>text` each.

    Example:
        >>> format_lines([Translation("Le chat dort.")])
        'Le chat dort.'
    """
    if len(translations) == 1:
        return _one_line(translations[0].text)
    return "\n".join(f"{each.score:.4f}\t{_one_line(each.text)}" for each in translations)


def _search_config(
    config: SearchConfig | None, n_best: int, sampling: SamplingConfig | None
) -> SearchConfig:
    """Check the arguments, and have at least as many beams as translations."""
    if n_best < 1:
        raise RegardError(f"n_best must be 1 or more, but it is {n_best}")
    if sampling is not None and n_best > 1:
        raise RegardError(
            f"n_best must be 1 with sampling, but it is {n_best}; sample again with another seed"
        )
    config = SearchConfig() if config is None else config
    return replace(config, beam_size=max(config.beam_size, n_best))


def _source_tokens(
    tokenizers: Tokenizers, sentences: Sequence[str] | Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return the token ids of sentences; token ids are returned as they are."""
    # as in training, spaces around a sentence are no part of it
    texts = [sentence.strip() for sentence in sentences if isinstance(sentence, str)]
    encoded = iter(tokenizers.source.encode_batch(texts))
    return [next(encoded) if isinstance(each, str) else list(each) for each in sentences]


def _truncate(sources: list[list[int]], max_length: int | None) -> list[list[int]]:
    """Cut sources to as many tokens as the model has positions, with a warning."""
    too_long = 0 if max_length is None else sum(len(source) > max_length for source in sources)
    if too_long:
        warn(
            f"sentences must have at most {max_length} tokens, as many as the model has "
            f"positions, but {too_long} of {len(sources)} have more; the rest of them is not "
            "translated",
            stacklevel=3,
        )
    return [source[:max_length] for source in sources]


@torch.inference_mode()
def _search(
    model: Seq2SeqModel,
    sources: Sequence[Sequence[int]],
    config: SearchConfig,
    n_best: int,
    sampling: SamplingConfig | None,
    should_stop: ShouldStop | None,
) -> list[list[Hypothesis]]:
    """Search or sample the translations of one batch."""
    device = model.output_weight.device
    source, lengths = (tensor.to(device) for tensor in pad_sequences(sources))
    max_length = max_target_length(int(lengths.max()))
    if model.max_length is not None:
        max_length = min(max_length, model.max_length - 1)  # BOS takes one position
    limits = LengthLimits(max_length=max_length)
    if sampling is not None:
        samples = sample(
            model, source, lengths, sampling=sampling, limits=limits, should_stop=should_stop
        )
        return [[hypothesis] for hypothesis in samples]
    return beam_search(
        model,
        source,
        lengths,
        beam_size=config.beam_size,
        n_best=n_best,
        length_penalty=config.length_penalty,
        limits=limits,
        should_stop=should_stop,
    )


def _translation(hypothesis: Hypothesis, tokenizers: Tokenizers) -> Translation:
    return Translation(tokenizers.target.decode(hypothesis.tokens), *hypothesis)


def _one_line(text: str) -> str:
    """Replace line breaks that the model may have produced by spaces."""
    return " ".join(text.splitlines())
