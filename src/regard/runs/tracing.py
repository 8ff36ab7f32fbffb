"""Traces of translations: attention weights of one teacher-forced pass, and attributions."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from regard import analysis
from regard._support.arguments import to_integer
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
from regard.errors import RegardError
from regard.models import AttentionWeights, Seq2SeqModel
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
    log-probabilities that step-by-step decoding would give. A row of cross-attention is the step
    that writes its token of the list "target"; what is read there is in "decoder_input".

    Args:
        model: a translation model.
        tokenizers: its tokenizers.
        source: the source text, truncated to the model's positions as `translate` does.
        target: the target text, or its token ids.
        words: the words that subwords are merged to, and gold links between them; by default
            words are split at spaces and punctuation.
        title: title of the trace; by default "source → target".
        name: name of the model.

    Returns:
        The trace, with log-probabilities of the target tokens and the end token.
    """
    ids = _target_ids(tokenizers.target, target)
    text = tokenizers.target.decode(ids)
    source_ids = tokenizers.source.encode(source)[: model.max_length]
    log_probs, weights = _forced_pass(model, source_ids, ids)
    if words is None:
        words = WordSpans(tokenizers.source.word_spans(source), tokenizers.target.word_spans(text))
    target_tokens = _token_list(tokenizers.target, ids, words.target)
    return build_translation_trace(
        _token_list(tokenizers.source, source_ids, words.source),
        _written(target_tokens, log_probs),
        decoder_input=_read(target_tokens),
        encoder=[layer[0] for layer in weights.encoder],
        decoder=[layer[0] for layer in weights.decoder],
        cross=[layer[0] for layer in weights.cross],
        gold=words.links,
        title=title or f"{source} → {target if isinstance(target, str) else text}",
        model=name,
    )


def attribute_translation(
    model: Seq2SeqModel,
    tokenizers: Tokenizers,
    source: str,
    target: str | Sequence[int],
    *,
    method: str,
    token: int | None = None,
    steps: int = 50,
    name: str = "",
) -> Trace:
    """Attribute the log-probabilities of the target tokens to source and target.

    Args:
        model: a translation model.
        tokenizers: its tokenizers.
        source: the source text.
        target: the target text, or its token ids.
        method: one of `analysis.METHODS`.
        token: position of one target token, the end token being last; by default all of them.
        steps: of integrated gradients.
        name: name of the model.

    Raises:
        RegardError: if there is no such method or token.
    """
    ids = _target_ids(tokenizers.target, target)
    text = tokenizers.target.decode(ids)
    written_ids = torch.tensor([*ids, EOS], device=model.output_weight.device)
    if token is not None and not 0 <= token < len(written_ids):
        raise RegardError(
            f"token must be a position from 0 to {len(ids)}, where the end token is the last, but "
            f"it is {token}"
        )
    source_ids = tokenizers.source.encode(source)[: model.max_length]

    def log_probs(states: torch.Tensor) -> torch.Tensor:
        chosen = model.logits(states[0]).log_softmax(-1).gather(1, written_ids[:, None])[:, 0]
        return chosen if token is None else chosen[token]

    padded, lengths = pad_sequences([source_ids])
    device = model.output_weight.device
    inputs = (padded.to(device), lengths.to(device), torch.tensor([[BOS, *ids]], device=device))
    target_tokens = _token_list(tokenizers.target, ids, tokenizers.target.word_spans(text))
    trace = analysis.attribute(
        model,
        inputs,
        log_probs,
        method=method,
        tokens=_token_list(tokenizers.source, source_ids, tokenizers.source.word_spans(source)),
        target_tokens=_read(target_tokens),
        written=_written(target_tokens, [0.0] * len(written_ids)),
        steps=steps,
    )
    tokens = {n: replace(t, log_probs=None) for n, t in trace.tokens.items()}
    return replace(trace, tokens=tokens, title=f"{source} → {text}", model=name or trace.model)


def _target_ids(tokenizer: Tokenizer, target: str | Sequence[int]) -> list[int]:
    """Return the token ids of a target; raise unless given ids are of the vocabulary."""
    if isinstance(target, str):
        return tokenizer.encode(target)
    ids = [to_integer("each target token", token) for token in target]
    for token in ids:
        if not 0 <= token < len(tokenizer):
            raise RegardError(
                f"target must be token ids from 0 to {len(tokenizer) - 1}, but one is {token}"
            )
    return ids


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


def _written(target: TokenList, log_probs: Sequence[float]) -> TokenList:
    """Return the tokens that the decoder writes: the target and EOS."""
    return TokenList(
        (*target.pieces, SPECIAL_TOKENS[EOS]),
        (*(target.words or ()), None),
        special=(len(target),),
        log_probs=tuple(log_probs),
    )


def _read(target: TokenList) -> TokenList:
    """Return the tokens that the decoder reads at the same steps: BOS and the target."""
    return TokenList(
        (SPECIAL_TOKENS[BOS], *target.pieces), (None, *(target.words or ())), special=(0,)
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
