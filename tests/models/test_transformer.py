"""The Transformer, the language model and the classifier."""

import pytest
import torch

from regard.attention import SCORE_NAMES
from regard.config import ModelConfig
from regard.models import build, build_classifier, build_language_model

BATCH, SOURCE, TARGET, WIDTH, VOCAB_SIZE = 3, 7, 5, 24, 11
SETTINGS = {"width": WIDTH, "layers": 2, "heads": 6, "ffn_width": 20}
LENGTHS = torch.tensor([7, 3, 5])


def make_model(**changes):
    return build(ModelConfig(**(SETTINGS | changes)), VOCAB_SIZE).eval()


def random_tokens(length, batch=BATCH):
    return torch.randint(4, VOCAB_SIZE, (batch, length))


VARIANTS = [
    *({"score": score} for score in SCORE_NAMES),
    *({"positions": positions} for positions in ("learned", "rotary", "alibi")),
    {"key_heads": 2, "norm": "pre"},
    {"share_embeddings": False, "tie_output": False},
]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_step_by_step_equals_teacher_forcing(changes):
    model = make_model(**changes)
    source, target = random_tokens(SOURCE), random_tokens(TARGET)
    encoded = model.encode(source, LENGTHS)
    at_once = model.decode(target, encoded)
    state, outputs = model.init_state(encoded), []
    for token in target.split(1, dim=1):
        output, state = model.step(token, state)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, dim=1), at_once, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_padding_order_and_size_of_a_batch_change_nothing(changes):
    model = make_model(**changes)
    source, target = random_tokens(SOURCE), random_tokens(TARGET)
    together = model(source, LENGTHS, target)
    order = torch.tensor([2, 0, 1])
    reordered = model(source[order], LENGTHS[order], target[order])
    torch.testing.assert_close(reordered, together[order], rtol=1e-4, atol=1e-5)
    for row, length in enumerate(LENGTHS):
        rows = slice(row, row + 1)
        alone = model(source[rows, :length], LENGTHS[rows], target[rows])
        torch.testing.assert_close(alone, together[rows], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_encode_bucketed_reads_less_padding_and_gives_the_same(changes):
    model, shapes = make_model(**changes), []
    model.encoder.register_forward_pre_hook(lambda _, inputs: shapes.append(inputs[0].shape[:2]))
    source, target = random_tokens(20, batch=200), random_tokens(TARGET, batch=200)
    lengths = torch.randint(1, 21, (200,))
    at_once = model.encode(source, lengths)
    bucketed = model.encode_bucketed(source, lengths)
    (rows, longest), *buckets = shapes
    assert len(buckets) > 1 and sum(rows for rows, _ in buckets) == rows
    assert sum(rows * longest for rows, longest in buckets) < 0.75 * rows * longest
    assert torch.equal(bucketed.mask, at_once.mask)
    expected = model.decode(target, at_once)
    torch.testing.assert_close(model.decode(target, bucketed), expected, rtol=1e-4, atol=1e-5)


def test_encode_bucketed_checks_lengths_before_it_splits_the_batch(unchecked):
    model, source = make_model(), random_tokens(20, batch=300)
    lengths = torch.randint(1, 21, (300,))
    with pytest.raises(ValueError, match=r"lengths must have shape \(300,\), one per batch item"):
        model.encode_bucketed(source, lengths[:200])
    lengths[137] = 0
    with pytest.raises(ValueError, match="from 1 to 20.*item 137"):
        model.encode_bucketed(source, lengths)


def test_small_batch_is_one_bucket():
    model, source = make_model(), random_tokens(SOURCE)
    for bucketed, at_once in zip(
        model.encode_bucketed(source, LENGTHS).key_values,
        model.encode(source, LENGTHS).key_values,
        strict=True,
    ):
        assert torch.equal(bucketed.keys, at_once.keys)
        assert torch.equal(bucketed.values, at_once.values)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi"])
def test_no_position_sees_the_future(positions):
    model = make_model(positions=positions)
    encoded = model.encode(random_tokens(SOURCE), LENGTHS)
    embedded = model.target_embedding(random_tokens(TARGET)).detach().requires_grad_()
    # not the plain sum of normalised states, which is zero whatever they see
    states = model.decoder(embedded, encoded) @ torch.randn(WIDTH)
    for position in range(TARGET):
        (gradient,) = torch.autograd.grad(states[:, position].sum(), embedded, retain_graph=True)
        assert (gradient[:, position + 1 :] == 0).all()
        assert (gradient[:, : position + 1].abs() > 1e-4).any()


def test_weights_of_every_layer_head_and_kind_are_returned_and_change_nothing():
    model = make_model()
    source, target = random_tokens(SOURCE), random_tokens(TARGET)
    states, weights = model.forward_with_weights(source, LENGTHS, target)
    assert torch.equal(states, model(source, LENGTHS, target))
    assert [w.shape for w in weights.encoder] == [(BATCH, 6, SOURCE, SOURCE)] * 2
    assert [w.shape for w in weights.decoder] == [(BATCH, 6, TARGET, TARGET)] * 2
    assert [w.shape for w in weights.cross] == [(BATCH, 6, TARGET, SOURCE)] * 2
    for cross in weights.cross:
        assert (cross[1, :, :, 3:] == 0).all()
        torch.testing.assert_close(cross.sum(-1), torch.ones(BATCH, 6, TARGET))


def test_tokens_lengths_and_positions_out_of_range_are_refused():
    model = make_model(positions="learned", max_positions=6)
    with pytest.raises(ValueError, match="source must be token ids from 0 to 10.*one is 11"):
        model.encode(torch.full((1, 2), VOCAB_SIZE), torch.tensor([2]))
    with pytest.raises(ValueError, match="item 1 has length 0"):
        model.encode(random_tokens(4, 2), torch.tensor([4, 0]))
    with pytest.raises(ValueError, match="positions must be below 6.*last is 6"):
        model.encode(random_tokens(SOURCE), LENGTHS)


def test_language_model_step_by_step_equals_all_at_once():
    model = build_language_model(ModelConfig(**SETTINGS), VOCAB_SIZE).eval()
    tokens = random_tokens(SOURCE)
    state, outputs = model.init_state(batch_size=BATCH), []
    for token in tokens.split(1, dim=1):
        output, state = model.step(token, state)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, dim=1), model(tokens), rtol=1e-4, atol=1e-5)


def test_language_model_returns_causal_weights_that_change_nothing():
    model = build_language_model(ModelConfig(**SETTINGS), VOCAB_SIZE).eval()
    tokens = random_tokens(SOURCE)
    states, weights = model(tokens, return_weights=True)
    assert torch.equal(states, model(tokens))
    assert [w.shape for w in weights.decoder] == [(BATCH, 6, SOURCE, SOURCE)] * 2
    assert all((w.triu(1) == 0).all() for w in weights.decoder)
    assert weights.encoder == weights.cross == ()


def test_language_model_max_length_is_that_of_its_positions():
    learned = ModelConfig(**SETTINGS, positions="learned", max_positions=16)
    assert build_language_model(learned, 9).max_length == 16
    assert build_language_model(ModelConfig(**SETTINGS), 9).max_length is None


def test_classifier_ignores_padding():
    model = build_classifier(ModelConfig(**SETTINGS), VOCAB_SIZE, num_classes=4).eval()
    tokens = random_tokens(SOURCE)
    together = model(tokens, LENGTHS)
    assert together.shape == (BATCH, 4)
    for row, length in enumerate(LENGTHS):
        rows = slice(row, row + 1)
        alone = model(tokens[rows, :length], LENGTHS[rows])
        torch.testing.assert_close(alone, together[rows], rtol=1e-4, atol=1e-5)


def test_classifier_returns_encoder_weights_that_change_nothing():
    model = build_classifier(ModelConfig(**SETTINGS), VOCAB_SIZE, num_classes=4).eval()
    tokens = random_tokens(SOURCE)
    logits, weights = model(tokens, LENGTHS, return_weights=True)
    assert torch.equal(logits, model(tokens, LENGTHS))
    assert [w.shape for w in weights.encoder] == [(BATCH, 6, SOURCE, SOURCE)] * 2
    assert (weights.encoder[0][1, :, :, 3:] == 0).all()
