"""What a run makes of a sentence: its translations, how sure it is, and where it looks."""

import math
from dataclasses import replace
from typing import Any

from regard.data import Tokenizer, WordSpans
from regard.decoding import Translation, translate
from regard.explorer.cancellation import Stop
from regard.explorer.errors import Refused
from regard.explorer.limits import LIMITS, Limits
from regard.runs import Run, assign_words, trace_translation
from regard.viz.page import page_payload


def translations(
    run: Run,
    text: str,
    beam_size: int | None,
    n_best: int,
    stop: Stop | None = None,
    limits: Limits = LIMITS,
) -> list[dict[str, Any]]:
    """Give the best translations of a text, with the probability of each piece and word."""
    limits, text = _within(limits, run), text.strip()  # as `translate` reads it
    ids = _checked(run.tokenizers.source, "text", text, limits)
    if not ids:
        return []
    own = min(run.settings.search.beam_size, limits.max_beam_size)
    beam_size = max(own, n_best) if beam_size is None else beam_size
    if n_best > beam_size:
        raise Refused(422, f"n_best must be at most beam_size, {beam_size}, but it is {n_best}")
    settings = replace(run.settings.search, beam_size=beam_size)
    should_stop = None if stop is None else stop.is_set
    (found,) = translate(
        run.model, run.tokenizers, [text], settings, n_best=n_best, should_stop=should_stop
    )
    return [_told(run, translation) for translation in found]


def trace(
    run: Run, source: str, target: str, words: WordSpans | None = None, limits: Limits = LIMITS
) -> dict[str, Any]:
    """Record where a run looks while it is made to say the target."""
    limits = _within(limits, run)
    source, target = source.strip(), target.strip()
    for name, text, tokenizer in (
        ("source", source, run.tokenizers.source),
        ("target", target, run.tokenizers.target),
    ):
        if not _checked(tokenizer, name, text, limits):
            raise Refused(422, f"{name} must have a word or more, but it is empty")
    return page_payload(
        trace_translation(
            run.model, run.tokenizers, source, target, words=words, title=source, name=run.name
        )
    )


def _within(limits: Limits, run: Run) -> Limits:
    """Allow no more tokens than the run's model has positions for, one of them the start's."""
    room = run.model.max_length
    return limits if room is None else replace(limits, max_tokens=min(limits.max_tokens, room - 1))


def _checked(tokenizer: Tokenizer, name: str, text: str, limits: Limits) -> list[int]:
    ids = tokenizer.encode(text)
    if len(ids) > limits.max_tokens:
        raise Refused(
            422, f"{name} must be at most {limits.max_tokens} tokens long, but it has {len(ids)}"
        )
    return ids


def _told(run: Run, translation: Translation) -> dict[str, Any]:
    tokenizer = run.tokenizers.target
    likely = list(translation.token_log_probs[:-1])  # without EOS
    return {
        "text": translation.text,
        "score": translation.score,
        "log_prob": translation.log_prob,
        "tokens": tokenizer.convert_ids_to_tokens(translation.tokens),
        "token_log_probs": likely,
        "words": _words(tokenizer, translation, likely),
    }


def _words(
    tokenizer: Tokenizer, translation: Translation, likely: list[float]
) -> list[dict[str, Any]]:
    """Give each word the probability of all its pieces."""
    words = tokenizer.word_spans(translation.text)
    sums = [0.0] * len(words)
    pieces = tokenizer.offsets(translation.tokens)
    for word, number in zip(assign_words(pieces, words), likely, strict=True):
        if word is not None:
            sums[word] += number
    return [
        {"text": translation.text[start:end], "probability": math.exp(total)}
        for (start, end), total in zip(words, sums, strict=True)
    ]
