"""Traces of translations: one teacher-forced pass that records all attention weights."""

from collections.abc import Sequence
from pathlib import Path

import torch

from regard._support import files
from regard.data import (
    BOS,
    EOS,
    SPECIAL_TOKENS,
    Span,
    Tokenizer,
    Tokenizers,
    WordSpans,
    overlapping,
    pad_sequences,
)
from regard.decoding import Translation
from regard.models import AttentionWeights, Seq2SeqModel
from regard.runs.run import Run
from regard.trace import TokenList, Trace, build_translation_trace


def trace_translation(
    model: Seq2SeqModel,
    tokenizers: Tokenizers,
    source: str,
    target: str | Sequence[int],
    *,
    words: WordSpans | None = None,
    title: str = "",
    name: str = "",
) -> Trace:
    """Return the attention of every layer and head while the model is fed the target.

    The decoder runs once over the whole target (teacher forcing), which gives the weights and
    log-probabilities that step-by-step decoding would give. A row of cross-attention is named by
    a target token: in a Transformer by the one it reads as input, one step after it was predicted;
    in a recurrent model by the one it predicts.

    Args:
        model: a translation model.
        tokenizers: its tokenizers.
        source: the source text, truncated to the model's positions as `translate` does.
        target: the target text, or its token ids.
        words: the words that subwords are merged to, and gold links between them; by default
            words are split at spaces and punctuation.
        title: title of the trace.
        name: name of the model.

    Returns:
        The trace, with log-probabilities of the target tokens.
    """
    ids = tokenizers.target.encode(target) if isinstance(target, str) else list(target)
    text = tokenizers.target.decode(ids)
    source_ids = tokenizers.source.encode(source)[: model.max_length]
    log_probs, weights = _forced_pass(model, source_ids, ids)
    if words is None:
        words = WordSpans(tokenizers.source.word_spans(source), tokenizers.target.word_spans(text))
    return build_translation_trace(
        _token_list(tokenizers.source, source_ids, words.source),
        _target_rows(model, tokenizers.target, ids, words.target, log_probs),
        encoder=[layer[0] for layer in weights.encoder],
        decoder=[layer[0] for layer in weights.decoder],
        cross=[layer[0] for layer in weights.cross],
        gold=words.links,
        title=title,
        model=name,
    )


@torch.inference_mode()
def _forced_pass(
    model: Seq2SeqModel, source_ids: list[int], target_ids: list[int]
) -> tuple[list[float], AttentionWeights]:
    """Return the log-probabilities of the target tokens and EOS, and all attention weights."""
    device = model.output_weight.device
    source, lengths = pad_sequences([source_ids])
    inputs = torch.tensor([[BOS, *target_ids]], device=device)
    states, weights = model.forward_with_weights(source.to(device), lengths.to(device), inputs)
    targets = torch.tensor([*target_ids, EOS], device=device)
    log_probs = model.logits(states[0]).log_softmax(dim=-1)
    return log_probs.gather(1, targets[:, None])[:, 0].tolist(), weights


def _token_list(tokenizer: Tokenizer, ids: Sequence[int], words: Sequence[Span]) -> TokenList:
    pieces = tuple(tokenizer.convert_ids_to_tokens(ids))
    return TokenList(pieces, assign_words(tokenizer.offsets(ids), words))


def _target_rows(
    model: Seq2SeqModel,
    tokenizer: Tokenizer,
    ids: Sequence[int],
    words: Sequence[Span],
    log_probs: Sequence[float],
) -> TokenList:
    """Return the tokens that name the rows: BOS and the input tokens, or the output and EOS."""
    plain = _token_list(tokenizer, ids, words)
    word_numbers = plain.words or ()
    if model.row_token == "input":
        return TokenList(
            (SPECIAL_TOKENS[BOS], *plain.pieces),
            (None, *word_numbers),
            special=(0,),
            log_probs=(None, *log_probs[:-1]),
        )
    return TokenList(
        (*plain.pieces, SPECIAL_TOKENS[EOS]),
        (*word_numbers, None),
        special=(len(plain),),
        log_probs=tuple(log_probs),
    )


def assign_words(tokens: Sequence[Span], words: Sequence[Span]) -> tuple[int | None, ...]:
    """Return for each token the index of the first word it overlaps, None after the last word.

    A token that overlaps none, such as a space, belongs to the word of the next token.

    Example:
        >>> assign_words([(0, 2), (2, 3), (3, 4)], [(0, 2), (3, 4)])
        (0, 1, 1)
    """
    assigned: list[int | None] = [None] * len(tokens)
    for word in reversed(range(len(words))):
        for token in overlapping(tokens, words[word]):
            assigned[token] = word
    for token in reversed(range(len(tokens) - 1)):
        if assigned[token] is None:
            assigned[token] = assigned[token + 1]
    return tuple(assigned)


def append_traces(
    path: Path, run: Run, sources: Sequence[str], translations: Sequence[Translation]
) -> None:
    """Append the traces of translations to a file, one JSON object per line.

    Args:
        path: the file; created if it does not exist.
        run: the run that translated.
        sources: the source texts.
        translations: their translations; an empty one gives a trace without maps.

    Raises:
        RegardError: if the file cannot be written.
    """
    with files.wrap_os_errors(path), path.open("a", encoding="utf-8") as file:
        for source, translation in zip(sources, translations, strict=True):
            file.write(_trace(run, source, translation).to_json() + "\n")


def _trace(run: Run, source: str, translation: Translation) -> Trace:
    if not translation.tokens:  # of an empty source, or an empty translation
        empty = {"source": TokenList(()), "target": TokenList(())}
        return Trace(tokens=empty, maps=(), title=source, model=run.name)
    text = source.strip()  # as `translate` does
    return trace_translation(
        run.model, run.tokenizers, text, translation.tokens, title=text, name=run.name
    )
