import numpy as np
import pytest

from regard.trace import reduced, translation
from regard.trace.summary import TILES, TOP, reduce


def random_weights(heads, queries, keys):
    return np.random.default_rng(0).dirichlet(np.full(keys, 0.3), (heads, queries))


def test_the_strongest_keys_come_first_and_the_rest_is_known():
    weights = random_weights(2, 5, 20)
    found = reduce(weights)
    for head, query in np.ndindex(2, 5):
        row = weights[head, query]
        assert found.top[head, query].tolist() == np.argsort(-row)[:TOP].tolist()
        assert found.left_out[head, query] == pytest.approx(np.sort(row)[:-TOP].sum())
        assert found.entropy[head, query] == pytest.approx(-(row * np.log(row)).sum())
        away = sum(weight * abs(key - query) for key, weight in enumerate(row))
        assert found.distance[head, query] == pytest.approx(away)
    np.testing.assert_allclose(found.received, weights.mean(1))


def test_few_positions_have_a_tile_each():
    weights = random_weights(2, 5, 20)
    np.testing.assert_allclose(reduce(weights).tiles, weights, rtol=1e-5)


def test_tiles_are_means_of_many_positions():
    weights = random_weights(1, 130, 100)
    tiles = reduce(weights).tiles
    assert tiles.shape == (1, TILES, TILES)
    rows = slice(5 * 130 // 64, 6 * 130 // 64)
    columns = slice(63 * 100 // 64, 100)
    assert tiles[0, 5, 63] == pytest.approx(weights[0, rows, columns].mean(), rel=1e-5)


def test_a_query_that_looks_nowhere_does_not_count():
    weights = random_weights(1, 4, 6)
    weights[0, 2] = 0
    found = reduce(weights)
    assert found.entropy[0, 2] == found.distance[0, 2] == found.left_out[0, 2] == 0
    np.testing.assert_allclose(found.received[0], weights[0].sum(0) / 3)


def test_a_reduced_trace_is_much_smaller():
    words = [str(n) for n in range(200)]
    trace = translation(words, words, encoder=[random_weights(4, 200, 200)])
    small = reduced(trace)
    assert small.looks[0].weights is None and small.looks[0].sizes == (4, 200, 200)
    assert len(small.to_json()) < len(trace.to_json()) / 3
    assert reduced(small).looks[0] is small.looks[0]
    assert reduced(trace, top=3).looks[0].reduced.top.shape == (4, 200, 3)
