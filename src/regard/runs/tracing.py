"""The attention of an actual output: one forced pass over a sentence and its translation."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

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
    """Record where every layer and head looks while the model is made to say the target.

    A Transformer looks at the translation of a word when it reads it, one step after it chose
    it; a recurrent model, before it writes it. Rows are named by the word in either case. A source
    is cut to as many tokens as the model has positions, as `translate` cuts it.

    Args:
        target: a text, or the tokens that a search found.
        words: the words to merge pieces to; by default what spaces and marks part.
    """
    tokens = tokenizers.target.encode(target) if isinstance(target, str) else list(target)
    text = tokenizers.target.decode(tokens)
    ids = tokenizers.source.encode(source)[: model.max_length]
    log_probabilities, looks = _pass(model, ids, tokens)
    spans = words or WordSpans(
        tokenizers.source.word_spans(source), tokenizers.target.word_spans(text)
    )
    return build_translation_trace(
        _tokens(tokenizers.source, ids, spans.source),
        _target(
            tokenizers.target, tokens, spans.target, log_probabilities, model.row_token == "input"
        ),
        encoder=[layer[0] for layer in looks.encoder],
        decoder=[layer[0] for layer in looks.decoder],
        cross=[layer[0] for layer in looks.cross],
        gold=spans.links,
        title=title,
        model=name,
    )


@torch.inference_mode()
def _pass(
    model: Seq2SeqModel, ids: list[int], tokens: list[int]
) -> tuple[Tensor, AttentionWeights]:
    """Give the log probabilities of the tokens and the end, and all looks."""
    device = model.output_weight.device
    source, lengths = pad_sequences([ids])
    inputs = torch.tensor([[BOS, *tokens]], device=device)
    states, looks = model.forward_with_weights(source.to(device), lengths.to(device), inputs)
    chosen = torch.tensor([*tokens, EOS], device=device)
    scores = model.logits(states[0]).log_softmax(dim=-1)
    return scores.gather(1, chosen[:, None])[:, 0], looks


def _tokens(tokenizer: Tokenizer, ids: Sequence[int], words: Sequence[Span]) -> TokenList:
    offsets = tokenizer.offsets(ids)
    return TokenList(tuple(tokenizer.convert_ids_to_tokens(ids)), assign_words(offsets, words))


def _target(
    tokenizer: Tokenizer,
    ids: Sequence[int],
    words: Sequence[Span],
    log_probabilities: Tensor,
    late: bool,
) -> TokenList:
    """Name the rows: the start and each token as it is read, or each token and the end."""
    plain = _tokens(tokenizer, ids, words)
    likely, numbers = log_probabilities.tolist(), plain.words or ()
    if late:
        return TokenList(
            (SPECIAL_TOKENS[BOS], *plain.pieces),
            (None, *numbers),
            special=(0,),
            log_probs=(None, *likely[:-1]),
        )
    return TokenList(
        (*plain.pieces, SPECIAL_TOKENS[EOS]),
        (*numbers, None),
        special=(len(plain),),
        log_probs=tuple(likely),
    )


def assign_words(pieces: Sequence[Span], words: Sequence[Span]) -> tuple[int | None, ...]:
    """Give each piece the number of the first word it touches; spaces belong to what follows."""
    numbers: list[int | None] = [None] * len(pieces)
    for word in reversed(range(len(words))):
        for piece in overlapping(pieces, words[word]):
            numbers[piece] = word
    for piece in reversed(range(len(pieces) - 1)):
        if numbers[piece] is None:
            numbers[piece] = numbers[piece + 1]
    return tuple(numbers)


def append_traces(
    path: Path, run: Run, sources: Sequence[str], translations: Sequence[Translation]
) -> None:
    """Append the traces of translations to a file, one JSON object a line."""
    with files.wrap_os_errors(path), path.open("a", encoding="utf-8") as file:
        for source, translation in zip(sources, translations, strict=True):
            file.write(_traced(run, source, translation).to_json() + "\n")


def _traced(run: Run, source: str, translation: Translation) -> Trace:
    if not translation.tokens:  # nothing was read, or nothing said: nobody looked
        nothing = {"source": TokenList(()), "target": TokenList(())}
        return Trace(tokens=nothing, maps=(), title=source, model=run.name)
    read = source.strip()  # as `translate` reads it
    return trace_translation(
        run.model, run.tokenizers, read, translation.tokens, title=read, name=run.name
    )
