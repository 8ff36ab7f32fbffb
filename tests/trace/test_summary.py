import numpy as np
import pytest

from regard.trace import (
    MAX_TILES,
    TOP_KEYS,
    build_translation_trace,
    summarize,
    summarize_weights,
)


def random_weights(heads, queries, keys):
    return np.random.default_rng(0).dirichlet(np.full(keys, 0.3), (heads, queries))


def test_summary_agrees_with_formulas_for_each_row():
    weights = random_weights(2, 5, 20)
    summary = summarize_weights(weights)
    for head, query in np.ndindex(2, 5):
        row = weights[head, query]
        assert summary.top_keys[head, query].tolist() == np.argsort(-row)[:TOP_KEYS].tolist()
        assert summary.remainder[head, query] == pytest.approx(np.sort(row)[:-TOP_KEYS].sum())
        assert summary.entropy[head, query] == pytest.approx(-(row * np.log(row)).sum())
        distance = sum(weight * abs(key - query) for key, weight in enumerate(row))
        assert summary.distance[head, query] == pytest.approx(distance)
    np.testing.assert_allclose(summary.received, weights.mean(1))


def test_small_map_has_one_tile_per_weight():
    weights = random_weights(2, 5, 20)
    np.testing.assert_allclose(summarize_weights(weights).tiles, weights, rtol=1e-5)


def test_tiles_are_means_of_the_weights_they_cover():
    weights = random_weights(1, 130, 100)
    tiles = summarize_weights(weights).tiles
    assert tiles.shape == (1, MAX_TILES, MAX_TILES)
    rows = slice(5 * 130 // 64, 6 * 130 // 64)
    columns = slice(63 * 100 // 64, 100)
    assert tiles[0, 5, 63] == pytest.approx(weights[0, rows, columns].mean(), rel=1e-5)


def test_fully_masked_query_is_left_out_of_means():
    weights = random_weights(1, 4, 6)
    weights[0, 2] = 0
    summary = summarize_weights(weights)
    assert summary.entropy[0, 2] == summary.distance[0, 2] == summary.remainder[0, 2] == 0
    np.testing.assert_allclose(summary.received[0], weights[0].sum(0) / 3)


def test_summarized_trace_is_much_smaller():
    words = [str(n) for n in range(200)]
    trace = build_translation_trace(words, words, encoder=[random_weights(4, 200, 200)])
    small = summarize(trace)
    assert small.maps[0].weights is None and small.maps[0].shape == (4, 200, 200)
    assert len(small.to_json()) < len(trace.to_json()) / 3
    assert summarize(trace, top=3).maps[0].summary.top_keys.shape == (4, 200, 3)


def test_summary_is_not_summarized_again(summarized_trace):
    assert summarize(summarized_trace).maps[0] is summarized_trace.maps[0]
