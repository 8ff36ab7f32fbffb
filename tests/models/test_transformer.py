import pytest
import torch
from torch import nn

from regard.attention import SCORE_NAMES
from regard.config import ModelConfig
from regard.models import build
from regard.models.convert import from_torch

BATCH, SOURCE, TARGET, WIDTH, VOCABULARY = 3, 7, 5, 24, 11
SETTINGS = {"width": WIDTH, "layers": 2, "heads": 6, "ffn_width": 20}


def make(**changed):
    return build(ModelConfig(**(SETTINGS | changed)), (VOCABULARY, VOCABULARY)).eval()


def sentences(length, batch=BATCH):
    return torch.randint(4, VOCABULARY, (batch, length))


LENGTHS = torch.tensor([7, 3, 5])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("pre", [True, False])
def test_weights_of_torchs_transformer_give_its_outputs(pre, activation):
    theirs = nn.Transformer(
        WIDTH, 6, 2, 3, 20, 0.1, activation, norm_first=pre, batch_first=True
    ).eval()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    encoder, decoder = from_torch(theirs)
    source, target = (
        torch.randn(BATCH, SOURCE, WIDTH),
        torch.randn(BATCH, TARGET, WIDTH),
    )
    keep = torch.arange(SOURCE) < LENGTHS[:, None]
    expected = theirs(
        source,
        target,
        tgt_mask=~torch.ones(TARGET, TARGET, dtype=torch.bool).tril(),
        src_key_padding_mask=~keep,
        memory_key_padding_mask=~keep,
    )
    from regard.masks import padding

    states = encoder(source, padding(keep))
    ours = decoder(target, decoder.read(states, keep))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-5)


CHANGES = [
    *({"score": score} for score in SCORE_NAMES),
    *({"positions": positions} for positions in ("learned", "rotary", "alibi")),
    {"key_heads": 2, "norm": "pre"},
    {"share_embeddings": False, "tie_output": False},
]


@pytest.mark.parametrize("changed", CHANGES, ids=str)
def test_step_by_step_is_all_at_once(changed):
    model = make(**changed)
    source, target = sentences(SOURCE), sentences(TARGET)
    memory = model.encode(source, LENGTHS)
    at_once = model.decode(target, memory)
    past, states = model.start(memory), []
    for token in target.split(1, dim=1):
        state, past = model.step(token, past)
        states.append(state)
    torch.testing.assert_close(torch.cat(states, dim=1), at_once, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("changed", CHANGES, ids=str)
def test_padding_order_and_size_of_a_batch_change_nothing(changed):
    model = make(**changed)
    source, target = sentences(SOURCE), sentences(TARGET)
    together = model.decode(target, model.encode(source, LENGTHS))
    order = torch.tensor([2, 0, 1])
    moved = model.decode(target[order], model.encode(source[order], LENGTHS[order]))
    torch.testing.assert_close(moved, together[order], rtol=1e-4, atol=1e-5)
    for row, length in enumerate(LENGTHS):
        alone = model.encode(source[row : row + 1, :length], LENGTHS[row : row + 1])
        states = model.decode(target[row : row + 1], alone)
        torch.testing.assert_close(states, together[row : row + 1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("changed", CHANGES, ids=str)
def test_sentences_read_in_portions_of_like_length_are_read_the_same(changed):
    model, read = make(**changed), []
    model.encoder.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].shape[:2]))
    source, target = sentences(20, batch=200), sentences(TARGET, batch=200)
    lengths = torch.randint(1, 21, (200,))
    at_once = model.encode(source, lengths)
    apart = model.encode_apart(source, lengths)
    (rows, longest), *portions = read
    assert len(portions) > 1 and sum(rows for rows, _ in portions) == rows
    assert sum(rows * longest for rows, longest in portions) < 0.75 * rows * longest
    assert torch.equal(apart.keep, at_once.keep)
    expected = model.decode(target, at_once)
    torch.testing.assert_close(model.decode(target, apart), expected, rtol=1e-4, atol=1e-5)


def test_lengths_are_checked_before_sentences_are_parted():
    model, source = make(), sentences(20, batch=300)
    lengths = torch.randint(1, 21, (300,))
    with pytest.raises(ValueError, match="one per sentence, 300"):
        model.encode_apart(source, lengths[:200])
    lengths[137] = 0
    with pytest.raises(ValueError, match="from 1 to 20.*sentence 137"):
        model.encode_apart(source, lengths)


def test_few_sentences_are_one_portion():
    model, source = make(), sentences(SOURCE)
    for apart, at_once in zip(
        model.encode_apart(source, LENGTHS).memories,
        model.encode(source, LENGTHS).memories,
        strict=True,
    ):
        assert torch.equal(apart.keys, at_once.keys) and torch.equal(apart.values, at_once.values)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi"])
def test_no_position_sees_the_future(positions):
    model = make(positions=positions)
    memory = model.encode(sentences(SOURCE), LENGTHS)
    rows = model.target(sentences(TARGET)).detach().requires_grad_()
    # not the plain sum of normed states, which is zero whatever they see
    states = model.decoder(rows, memory) @ torch.randn(WIDTH)
    for position in range(TARGET):
        (gradient,) = torch.autograd.grad(states[:, position].sum(), rows, retain_graph=True)
        assert (gradient[:, position + 1 :] == 0).all()
        assert (gradient[:, : position + 1].abs() > 1e-4).any()


def test_looking_tells_every_layer_head_and_kind_and_changes_nothing():
    model = make()
    source, target = sentences(SOURCE), sentences(TARGET)
    states, looks = model.look(source, LENGTHS, target)
    plain = model.decode(target, model.encode(source, LENGTHS))
    assert torch.equal(states, plain)
    assert [w.shape for w in looks.encoder] == [(BATCH, 6, SOURCE, SOURCE)] * 2
    assert [w.shape for w in looks.decoder] == [(BATCH, 6, TARGET, TARGET)] * 2
    assert [w.shape for w in looks.cross] == [(BATCH, 6, TARGET, SOURCE)] * 2
    for weights in looks.cross:
        assert (weights[1, :, :, 3:] == 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, 6, TARGET))


def test_what_cannot_be_read_is_refused():
    model = make(positions="learned", max_positions=6)
    with pytest.raises(ValueError, match="source must be numbers from 0 to 10.*one is 11"):
        model.encode(torch.full((1, 2), VOCABULARY), torch.tensor([2]))
    with pytest.raises(ValueError, match="sentence 1 has 0"):
        model.encode(sentences(4, 2), torch.tensor([4, 0]))
    with pytest.raises(ValueError, match="positions must be below 6.*last is 6"):
        model.encode(sentences(SOURCE), LENGTHS)
