"""The trace of tests/fixtures/trace.json, which the Python and the JavaScript tests read.

`python tests/helpers/sample_trace.py` writes the fixture again after a change of the format.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from regard.trace import (
    AttentionMap,
    AttentionSummary,
    PatchImage,
    TokenList,
    build_translation_trace,
)

FIXTURE = Path(__file__).parents[1] / "fixtures" / "trace.json"
HEADS, QUERIES, KEYS = 2, 4, 5


def sample_trace():
    """Build the trace of the fixture: the same values on every machine."""
    source = TokenList(
        ("▁The", "▁cat", "▁sit", "s", "</s>"), words=(0, 1, 2, 2, None), special=(4,)
    )
    target = TokenList(
        ("▁猫", "▁坐", "着", "</s>"),
        words=(0, 1, 1, None),
        special=(3,),
        log_probs=(-0.125, -0.5, -0.0625, None),
    )
    decoder_input = TokenList(("<s>", "▁猫", "▁坐", "着"), words=(None, 0, 1, 1), special=(0,))
    causal = np.tril(peaked_weights(QUERIES, QUERIES))
    trace = build_translation_trace(
        source,
        target,
        encoder=[peaked_weights(KEYS, KEYS)],
        decoder=[causal / causal.sum(-1, keepdims=True)],
        cross=[peaked_weights(QUERIES, KEYS), peaked_weights(QUERIES, KEYS)[::-1]],
        decoder_input=decoder_input,
        title='a <script>"cat"</script>',
        model="a hand-made translator",
        gold=[(1, 0), (2, 1)],
    )
    pixels = np.arange(3 * 4 * 6, dtype=np.uint8).reshape(4, 6, 3)
    image = PatchImage(pixels, grid=(2, 2))
    return replace(trace, maps=(*trace.maps, summarized_map()), images={"source": image})


def peaked_weights(queries, keys):
    """Return weights in which head h of query q attends mostly to key q + h."""
    weights = np.ones((HEADS, queries, keys))
    for head in range(HEADS):
        for query in range(queries):
            weights[head, query, (query + head) % keys] = 9
    return weights / weights.sum(-1, keepdims=True)


def summarized_map():
    """Return a map that has a summary in place of weights, and value norms."""
    weights = peaked_weights(QUERIES, KEYS).astype(np.float32)
    top_keys = np.argsort(-weights, axis=-1, kind="stable")[..., :2]
    top_weights = np.take_along_axis(weights, top_keys, -1)
    distances = np.abs(np.arange(KEYS) - np.arange(QUERIES)[:, None])
    summary = AttentionSummary(
        top_keys=top_keys,
        top_weights=top_weights,
        remainder=1 - top_weights.sum(-1),
        tiles=weights.reshape(HEADS, 2, 2, KEYS).mean(2),
        entropy=-(weights * np.log(weights)).sum(-1),
        received=weights.mean(1),
        distance=(weights * distances).sum(-1),
    )
    return AttentionMap(
        name="decoder.layers.1.cross",
        kind="cross",
        queries="target",
        query_inputs="decoder_input",
        keys="source",
        summary=summary,
        heads=(0, 3),
        call=1,
        call_site="model.py:41",
        value_norms=np.arange(1, 1 + HEADS * KEYS, dtype=np.float32).reshape(HEADS, KEYS),
    )


if __name__ == "__main__":
    sample_trace().save(FIXTURE)
