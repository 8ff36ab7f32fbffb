import numpy as np
import pytest

from regard.trace import Look, Reduced, Tokens, Trace, translation

HEADS, QUERIES, KEYS = 2, 4, 5


def sample():
    """Build the trace of tests/fixtures/trace.json: the same numbers on every machine."""
    source = Tokens(("▁The", "▁cat", "▁sit", "s", "</s>"), words=(0, 1, 2, 2, None), special=(4,))
    target = Tokens(
        ("<s>", "▁猫", "▁坐", "着"),
        words=(None, 0, 1, 1),
        special=(0,),
        log_probabilities=(None, -0.125, -0.5, -0.0625),
    )
    trace = translation(
        source,
        target,
        encoder=[peaks(KEYS, KEYS)],
        decoder=[
            np.tril(peaks(QUERIES, QUERIES))
            / np.tril(peaks(QUERIES, QUERIES)).sum(-1, keepdims=True)
        ],
        cross=[peaks(QUERIES, KEYS), peaks(QUERIES, KEYS)[::-1]],
        title='a <script>"cat"</script>',
        model="a hand-made translator",
        gold=[(1, 0), (2, 1)],
    )
    return Trace(
        tokens=trace.tokens,
        looks=(*trace.looks, reduced_look()),
        title=trace.title,
        model=trace.model,
        gold=trace.gold,
    )


def peaks(queries, keys):
    """Let head h of query q look mostly at key q + h."""
    whole = np.ones((HEADS, queries, keys))
    for head in range(HEADS):
        for query in range(queries):
            whole[head, query, (query + head) % keys] = 9
    return whole / whole.sum(-1, keepdims=True)


def reduced_look():
    whole = peaks(QUERIES, KEYS).astype(np.float32)
    top = np.argsort(-whole, axis=-1, kind="stable")[..., :2]
    top_weights = np.take_along_axis(whole, top, -1)
    away = np.abs(np.arange(KEYS) - np.arange(QUERIES)[:, None])
    reduced = Reduced(
        top=top,
        top_weights=top_weights,
        left_out=1 - top_weights.sum(-1),
        tiles=whole.reshape(HEADS, 2, 2, KEYS).mean(2),
        entropy=-(whole * np.log(whole)).sum(-1),
        received=whole.mean(1),
        distance=(whole * away).sum(-1),
    )
    return Look(
        name="decoder.layers.1.cross",
        kind="cross",
        queries="target",
        keys="source",
        reduced=reduced,
        heads=(0, 3),
        call=1,
        place="model.py:41",
        value_norms=np.arange(1, 1 + HEADS * KEYS, dtype=np.float32).reshape(HEADS, KEYS),
    )


@pytest.fixture
def whole_trace():
    return sample()


@pytest.fixture
def reduced_trace():
    trace = sample()
    return Trace(tokens=trace.tokens, looks=(reduced_look(),))
