"""The trace of a translation, built from the weights of encoder, decoder and cross-attention."""

from collections.abc import Iterable, Sequence
from typing import Any

from regard.trace.attention_map import AttentionMap, Kind, TokenList
from regard.trace.quantization import to_array
from regard.trace.trace import Trace


def build_translation_trace(
    source: TokenList | Sequence[str],
    target: TokenList | Sequence[str],
    *,
    encoder: Iterable[Any] = (),
    decoder: Iterable[Any] = (),
    cross: Iterable[Any] = (),
    decoder_input: TokenList | Sequence[str] | None = None,
    title: str = "",
    model: str = "",
    gold: Iterable[tuple[int, int]] | None = None,
) -> Trace:
    """Build the trace of an encoder-decoder model from its attention weights.

    Args:
        source: tokens that the encoder reads.
        target: tokens that the decoder writes, such as "chat", "</s>": row i of `cross` must belong
            to the step that writes piece i.
        encoder: weights of each layer, (head, query, key) of one batch item.
        decoder: the same, of the decoder's self-attention.
        cross: the same, of cross-attention.
        decoder_input: tokens that the decoder reads at those steps, such as "<s>", "chat": they
            name the rows and columns of `decoder`, and the rows of `cross` if a picture is asked
            for the input words. Without them, `decoder` is between tokens of `target`.
        title: what was read.
        model: what computed it.
        gold: links (source word, target word) of a reference alignment.

    Returns:
        The trace.

    Raises:
        RegardError: if the number of tokens does not fit the weights.

    Example:
        >>> trace = build_translation_trace(["the", "cat"], ["chat"], cross=[[[[0.25, 0.75]]]])
        >>> trace.maps[0].name, trace.maps[0].queries, trace.maps[0].keys
        ('cross.0', 'target', 'source')
    """
    tokens = {"source": _token_list(source), "target": _token_list(target)}
    inputs = None if decoder_input is None else "decoder_input"
    if decoder_input is not None:
        tokens["decoder_input"] = _token_list(decoder_input)
    read = inputs or "target"
    groups: tuple[tuple[str, Kind, str, str, str | None, Iterable[Any]], ...] = (
        ("encoder", "self", "source", "source", None, encoder),
        ("decoder", "causal", read, read, None, decoder),
        ("cross", "cross", "target", "source", inputs, cross),
    )
    maps = tuple(
        AttentionMap(
            name=f"{name}.{n}",
            kind=kind,
            queries=queries,
            keys=keys,
            query_inputs=query_inputs,
            weights=to_array(weights),
        )
        for name, kind, queries, keys, query_inputs, layers in groups
        for n, weights in enumerate(layers)
    )
    links = None if gold is None else tuple(sorted((int(s), int(t)) for s, t in gold))
    return Trace(tokens=tokens, maps=maps, title=title, model=model, gold=links)


def _token_list(tokens: TokenList | Sequence[str]) -> TokenList:
    return tokens if isinstance(tokens, TokenList) else TokenList(tuple(tokens))
