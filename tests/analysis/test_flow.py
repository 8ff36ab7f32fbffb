import numpy as np
import pytest

from regard import RegardError
from regard.analysis import head_similarity, rollout, weight_by_value_norm
from regard.trace import AttentionMap, TokenList, Trace, build_translation_trace, summarize


def random_weights(*shape):
    return np.random.default_rng(0).dirichlet(np.ones(shape[-1]), shape[:-1])


def self_attention_map(weights, norms=None, tokens="text"):
    return AttentionMap(
        name="layer", kind="self", queries=tokens, keys=tokens, weights=weights, value_norms=norms
    )


def trace_of_layers(*layers):
    tokens = {"text": TokenList(tuple("abcdefg"[: len(layers[0][0])]))}
    maps = [self_attention_map(np.asarray(layer)) for layer in layers]
    return Trace(tokens=tokens, maps=tuple(maps))


def test_rollout_of_one_layer_worked_by_hand():
    layer = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    np.testing.assert_allclose(rollout(trace_of_layers(layer)), [[0.75, 0.25], [0.5, 0.5]])


def test_rollout_multiplies_layers_and_rows_sum_to_one():
    layers = random_weights(3, 2, 5, 5)
    mixed = [0.5 * np.eye(5) + 0.5 * layer.mean(0) for layer in layers]
    flow = rollout(trace_of_layers(*layers))
    np.testing.assert_allclose(flow, mixed[2] @ mixed[1] @ mixed[0], atol=1e-6)
    np.testing.assert_allclose(flow.sum(-1), 1, atol=1e-6)


def test_rollout_of_a_fully_masked_query_is_the_residual():
    layer = random_weights(2, 3, 3)
    layer[:, 1] = 0
    np.testing.assert_allclose(rollout(trace_of_layers(layer, layer))[1], [0, 1, 0])


def test_rollout_is_over_one_text_of_a_translation():
    encoder, decoder = random_weights(2, 2, 3, 3), random_weights(1, 2, 4, 4)
    cross = random_weights(1, 2, 4, 3)
    trace = build_translation_trace("abc", "wxyz", encoder=encoder, decoder=decoder, cross=cross)
    np.testing.assert_allclose(rollout(trace), rollout(trace_of_layers(*encoder)), atol=1e-6)
    target = trace.layers("causal")[0].queries
    flow = rollout(trace_of_layers(*decoder))
    np.testing.assert_allclose(rollout(trace, target), flow, atol=1e-6)


def test_rollout_refuses_what_it_cannot_multiply():
    trace = trace_of_layers(random_weights(2, 3, 3))
    cross = build_translation_trace("abc", "xy", cross=[random_weights(1, 2, 3)])
    for arguments, options, message in [
        ((cross,), {}, "rollout needs self-attention; the trace has it over: none"),
        ((trace, "source"), {}, "self-attention over 'source'; the trace has it over: text"),
        ((summarize(trace),), {}, "rollout needs full weights, but layer is a summary"),
        ((trace,), {"residual": 1.5}, "residual must be between 0 and 1, but it is 1.5"),
    ]:
        with pytest.raises(RegardError, match=message):
            rollout(*arguments, **options)


def test_sink_with_a_zero_value_gets_no_weight():
    weights = np.array([[[0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.8, 0.2, 0.0]]])
    trace = Trace(
        tokens={"text": TokenList(tuple("abc"))},
        maps=(self_attention_map(weights, np.array([[0.0, 1.0, 3.0]])),),
    )
    (weighted,) = weight_by_value_norm(trace).maps
    np.testing.assert_allclose(weighted.weights, [[[0, 0.25, 0.75], [0, 0.25, 0.75], [0, 1, 0]]])


def test_weighting_without_value_norms_is_refused():
    with pytest.raises(RegardError, match="but lacks value norms"):
        weight_by_value_norm(trace_of_layers(random_weights(1, 3, 3)))


def trace_of(weights, padding=()):
    tokens = TokenList(tuple("abcde"), padding=padding)
    return Trace(tokens={"text": tokens}, maps=(self_attention_map(weights),))


def test_equal_heads_have_similarity_one_and_disjoint_heads_zero():
    eye = np.eye(5)
    similarity, names = head_similarity(trace_of(np.stack([eye, eye, np.roll(eye, 1, axis=1)])))
    np.testing.assert_allclose(similarity, [[1, 1, 0], [1, 1, 0], [0, 0, 1]], atol=1e-6)
    assert names == ["layer head 0", "layer head 1", "layer head 2"]


def test_similarity_is_symmetric_and_ignores_padding():
    weights = random_weights(3, 5, 5)
    similarity, _ = head_similarity(trace_of(weights))
    np.testing.assert_allclose(similarity, similarity.T, atol=1e-9)
    weights[1, :4] = weights[0, :4]
    assert head_similarity(trace_of(weights))[0][0, 1] < 0.99
    assert head_similarity(trace_of(weights, padding=(4,)))[0][0, 1] == pytest.approx(1)


def test_similarity_of_padding_only_is_one():
    weights = random_weights(3, 5, 5)
    similarity, _ = head_similarity(trace_of(weights, padding=(0, 1, 2, 3, 4)))
    assert similarity.tolist() == [[1.0] * 3] * 3


def test_heads_over_different_token_lists_are_not_compared():
    tokens = {"text": TokenList(tuple("abc")), "other": TokenList(tuple("abc"))}
    maps = [self_attention_map(random_weights(1, 3, 3), tokens=name) for name in tokens]
    with pytest.raises(RegardError, match="share their token lists"):
        head_similarity(Trace(tokens=tokens, maps=tuple(maps)))
