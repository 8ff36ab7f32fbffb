import numpy as np
import pytest
import torch

from regard.analysis import rollout, similarity, value_weighted
from regard.trace import AttentionMap, TokenList, Trace


def random_weights(*shape):
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), shape[:-1])


def test_rollout_of_one_layer_by_hand():
    layer = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    np.testing.assert_allclose(rollout([layer]), [[0.75, 0.25], [0.5, 0.5]])


def test_rollout_multiplies_layers_and_rows_sum_to_one():
    layers = random_weights(3, 2, 5, 5)
    mixed = [0.5 * np.eye(5) + 0.5 * layer.mean(0) for layer in layers]
    np.testing.assert_allclose(rollout(layers), mixed[2] @ mixed[1] @ mixed[0], atol=1e-6)
    np.testing.assert_allclose(rollout(torch.tensor(layers)).sum(-1), 1, atol=1e-6)


def test_a_query_that_looks_nowhere_stays_itself():
    layer = random_weights(2, 3, 3)
    layer[:, 1] = 0
    np.testing.assert_allclose(rollout([layer, layer])[1], [0, 1, 0])


def test_rollout_is_of_self_attention():
    with pytest.raises(ValueError, match="as many queries as keys, but one has the shape"):
        rollout([random_weights(2, 3, 5)])
    with pytest.raises(ValueError, match="one layer or more"):
        rollout([])


def look_of(weights, norms=None, queries="text"):
    return AttentionMap(
        name="layer",
        kind="self",
        queries=queries,
        keys=queries,
        weights=weights,
        value_norms=norms,
    )


def test_a_sink_that_fetches_nothing_fades():
    weights = np.array([[[0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.8, 0.2, 0.0]]])
    found = value_weighted(look_of(weights, np.array([[0.0, 1.0, 3.0]]))).weights
    np.testing.assert_allclose(found, [[[0, 0.25, 0.75], [0, 0.25, 0.75], [0, 1, 0]]])


def test_value_weighting_needs_values():
    with pytest.raises(ValueError, match="but lacks value norms"):
        value_weighted(look_of(random_weights(1, 3, 3)))


def trace_of(weights, padding=()):
    tokens = TokenList(tuple("abcde"), padding=padding)
    return Trace(tokens={"text": tokens}, maps=(look_of(weights),))


def test_equal_heads_are_alike_and_disjoint_ones_are_not():
    eye = np.eye(5)
    found, names = similarity(trace_of(np.stack([eye, eye, np.roll(eye, 1, axis=1)])))
    np.testing.assert_allclose(found, [[1, 1, 0], [1, 1, 0], [0, 0, 1]], atol=1e-6)
    assert names == ["layer head 0", "layer head 1", "layer head 2"]


def test_similarity_is_symmetric_and_leaves_padding_out():
    weights = random_weights(3, 5, 5)
    found, _ = similarity(trace_of(weights))
    np.testing.assert_allclose(found, found.T, atol=1e-9)
    weights[1, :4] = weights[0, :4]
    assert similarity(trace_of(weights))[0][0, 1] < 0.99
    assert similarity(trace_of(weights, padding=(4,)))[0][0, 1] == pytest.approx(1)


def test_heads_of_different_texts_are_not_compared():
    tokens = {"text": TokenList(tuple("abc")), "other": TokenList(tuple("abc"))}
    looks = (look_of(random_weights(1, 3, 3)), look_of(random_weights(1, 3, 3), queries="other"))
    with pytest.raises(ValueError, match="share their tokens"):
        similarity(Trace(tokens=tokens, maps=looks))


def test_heads_of_which_only_padding_looks_do_not_differ():
    weights = random_weights(3, 5, 5)
    assert similarity(trace_of(weights, padding=(0, 1, 2, 3, 4)))[0].tolist() == [[1.0] * 3] * 3
