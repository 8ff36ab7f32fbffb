"""Translation of sentences: tokenize, batch by length, search, detokenize."""

from collections.abc import Iterable, Sequence
from warnings import warn

from regard._support.progress import track
from regard._support.resources import parallel_map
from regard.config import SearchConfig
from regard.data import Tokenizers
from regard.decoding.batching import length_batches
from regard.decoding.engines import Engine, TorchEngine
from regard.decoding.sampling import SamplingConfig
from regard.decoding.search import ShouldStop
from regard.decoding.sentences import SentenceBatch, Translation, TranslationOptions
from regard.errors import RegardError, wrong_type
from regard.models import Seq2SeqModel


def translate(
    model: Seq2SeqModel,
    tokenizers: Tokenizers,
    sentences: Iterable[str | Sequence[int]],
    config: SearchConfig | None = None,
    *,
    n_best: int = 1,
    sampling: SamplingConfig | None = None,
    min_length: int = 0,
    max_length: int | None = None,
    prefixes: Sequence[str] | None = None,
    progress: bool = False,
    should_stop: ShouldStop | None = None,
    engine: Engine | None = None,
) -> list[list[Translation]]:
    """Translate sentences, in batches of similar length over all of torch's threads.

    Args:
        model: the model, in evaluation mode.
        tokenizers: of source and target.
        sentences: the sources, any iterable of texts, whitespace around which is ignored, or of
            token ids.
        config: beam size and length penalty; the defaults of `SearchConfig` if None, with a beam
            of `n_best` if that is larger.
        n_best: number of translations of each sentence, at most the beam size.
        sampling: sample one translation instead of searching for the best.
        min_length: least number of tokens of a translation.
        max_length: greatest number of tokens; by default it depends on the source.
        prefixes: what the translations begin with, one text for each sentence. The last word of a
            prefix may be completed: "le ch" allows "le chat".
        progress: whether to report progress on stderr.
        should_stop: called before every decoding step, or as often as the engine can, from several
            threads; the translation is cancelled when it returns True.
        engine: what searches, such as a `CTranslate2Engine`; torch by default.

    Returns:
        The translations of each sentence, best first, in the order of the sentences. An empty
        sentence has empty translations.

    Raises:
        RegardError: if `n_best` or a length is out of range, there is not a prefix for each
            sentence, or a sentence has no translation (NaN logits).
        TypeError: if `sentences` is one string.
        DecodingCancelled: if `should_stop` returned True.

    Example:
        >>> from regard.config import ModelConfig
        >>> from regard.data import train_tokenizer
        >>> from regard.models import build
        >>> tokenizer = train_tokenizer(["a cat", "a dog"], "characters")
        >>> config = ModelConfig(width=32, layers=1, heads=2, positions="learned", max_positions=9)
        >>> model = build(config, vocab_size=len(tokenizer)).eval()
        >>> results = translate(model, Tokenizers(tokenizer, tokenizer), ["a cat", ""], n_best=2)
        >>> [len(translations) for translations in results]
        [2, 2]
    """
    if isinstance(sentences, str):  # a sequence of strings, too: its characters
        raise wrong_type("sentences", "a list of sentences", sentences)
    sentences = list(sentences)  # read several times
    config = SearchConfig().with_n_best(n_best) if config is None else config
    options = TranslationOptions(config, n_best, sampling, min_length, max_length)
    batches = sentence_batches(model, tokenizers, sentences, options, prefixes)
    translations = [[Translation("")] * n_best for _ in sentences]
    if engine is None:
        engine = TorchEngine(model, tokenizers)
    results = parallel_map(
        lambda batch: engine.translate_batch(batch, options, should_stop), batches
    )
    total = sum(len(batch.rows) for batch in batches)
    for batch, batch_translations in track(
        zip(batches, results, strict=True),
        "sentences",
        total,
        size=lambda result: len(result[0].rows),
        visible=progress,
    ):
        for row, alternatives in zip(batch.rows, batch_translations, strict=True):
            translations[row] = alternatives
    return translations


def sentence_batches(
    model: Seq2SeqModel,
    tokenizers: Tokenizers,
    sentences: Sequence[str | Sequence[int]],
    options: TranslationOptions,
    prefixes: Sequence[str] | None = None,
    first: int = 0,
) -> list[SentenceBatch]:
    """Tokenize sentences, and split them into batches; empty sentences are in none.

    Args:
        model: the model, for its greatest length.
        tokenizers: of source and target.
        sentences: texts or token ids.
        options: how they will be translated.
        prefixes: one for each sentence.
        first: number of the first sentence among all that are translated.

    Raises:
        RegardError: if there is not a prefix for each sentence.
    """
    if prefixes is not None and len(prefixes) != len(sentences):
        raise RegardError(
            f"prefixes must be one for each of {len(sentences)} sentences, but there are "
            f"{len(prefixes)}"
        )
    sources = _truncate(_source_tokens(tokenizers, sentences), model.max_length)
    beam_size = 1 if options.sampling else options.search.beam_size
    return [
        SentenceBatch(
            rows,
            [sources[row] for row in rows],
            [prefixes[row] for row in rows] if prefixes else [],
            [first + row for row in rows],
        )
        for rows in length_batches(sources, beam_size)
    ]


def _source_tokens(
    tokenizers: Tokenizers, sentences: Sequence[str | Sequence[int]]
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
            stacklevel=4,
        )
    return [source[:max_length] for source in sources]
