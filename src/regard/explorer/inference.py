"""Inference with a run: translations with their probabilities, and traces by teacher forcing."""

import math
from dataclasses import replace
from typing import Any

from starlette.exceptions import HTTPException

from regard.data import Tokenizer, WordSpans
from regard.decoding import Translation, translate
from regard.explorer.schemas import LIMITS, ExplorerLimits
from regard.explorer.workers import CancelToken
from regard.runs import Run, assign_words, trace_translation
from regard.viz import page_payload


def translate_text(
    run: Run,
    text: str,
    beam_size: int | None = None,
    n_best: int = 1,
    token: CancelToken | None = None,
    limits: ExplorerLimits = LIMITS,
) -> list[dict[str, Any]]:
    """Return the best translations of a text with the probability of each token and word.

    Args:
        run: the run whose model translates.
        text: the text; a blank one has no translations.
        beam_size: the run's own, or `n_best` if that is larger, when None.
        n_best: number of translations, at most `beam_size`.
        token: cancels the search between two steps; a beam search of CTranslate2 cannot be
            interrupted, and is finished first.
        limits: largest values of the arguments.
    """
    text = text.strip()  # as `translate` does
    if not _encode(run.tokenizers.source, "text", text, _max_tokens(run, limits)):
        return []
    if beam_size is None:
        beam_size = max(min(run.settings.search.beam_size, limits.max_beam_size), n_best)
    config = replace(run.settings.search, beam_size=beam_size)
    (translations,) = translate(
        run.model,
        run.tokenizers,
        [text],
        config,
        n_best=n_best,
        should_stop=None if token is None else token.is_cancelled,
        engine=run.engine,
    )
    return [_translation_record(run.tokenizers.target, each) for each in translations]


def trace_text(
    run: Run,
    source: str,
    target: str,
    words: WordSpans | None = None,
    limits: ExplorerLimits = LIMITS,
) -> dict[str, Any]:
    """Return a trace of the attention while the model is forced to produce the target."""
    max_tokens = _max_tokens(run, limits)
    source, target = source.strip(), target.strip()
    for name, text, tokenizer in (
        ("source", source, run.tokenizers.source),
        ("target", target, run.tokenizers.target),
    ):
        if not _encode(tokenizer, name, text, max_tokens):
            raise HTTPException(422, f"{name} must have at least one word, but it is empty")
    return page_payload(
        trace_translation(run.model, run.tokenizers, source, target, words=words, name=run.name)
    )


def _max_tokens(run: Run, limits: ExplorerLimits) -> int:
    """Return the longest text in tokens: the model needs a position for each, one for START."""
    positions = run.model.max_length
    return limits.max_tokens if positions is None else min(limits.max_tokens, positions - 1)


def _encode(tokenizer: Tokenizer, name: str, text: str, max_tokens: int) -> list[int]:
    ids = tokenizer.encode(text)
    if len(ids) > max_tokens:
        message = f"{name} must be at most {max_tokens} tokens long, but it has {len(ids)}"
        raise HTTPException(422, message)
    return ids


def _translation_record(tokenizer: Tokenizer, translation: Translation) -> dict[str, Any]:
    token_log_probs = list(translation.token_log_probs[:-1])  # without EOS
    return {
        "text": translation.text,
        "score": translation.score,
        "log_prob": translation.log_prob,
        "tokens": tokenizer.convert_ids_to_tokens(translation.tokens),
        "token_log_probs": token_log_probs,
        "words": _word_probabilities(tokenizer, translation, token_log_probs),
    }


def _word_probabilities(
    tokenizer: Tokenizer, translation: Translation, token_log_probs: list[float]
) -> list[dict[str, Any]]:
    """Return each word with the product of the probabilities of its tokens."""
    words = tokenizer.word_spans(translation.text)
    log_probs = [0.0] * len(words)
    offsets = tokenizer.offsets(translation.tokens)
    for word, log_prob in zip(assign_words(offsets, words), token_log_probs, strict=True):
        if word is not None:
            log_probs[word] += log_prob
    return [
        {"text": translation.text[start:end], "probability": math.exp(log_prob)}
        for (start, end), log_prob in zip(words, log_probs, strict=True)
    ]
