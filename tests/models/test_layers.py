import pytest
import torch
from torch import nn

from regard.models import Embedding, FeedForward, Residual
from regard.positions import Learned, Sinusoidal


@pytest.mark.parametrize(("activation", "theirs"), [("relu", nn.ReLU()), ("gelu", nn.GELU())])
def test_feed_forward_is_two_linear_layers(activation, theirs):
    ours = FeedForward(6, 10, activation=activation)
    rows = torch.randn(2, 5, 6)
    torch.testing.assert_close(ours(rows), ours.narrow(theirs(ours.widen(rows))))


def test_the_norm_stands_after_the_sum_or_before_the_layer():
    rows = 3 * torch.randn(2, 5, 6) + 1
    post, pre = Residual(6), Residual(6, pre=True)
    torch.testing.assert_close(post(rows, torch.sin), post.norm(rows + rows.sin()))
    torch.testing.assert_close(pre(rows, torch.sin), rows + pre.norm(rows).sin())


def test_dropout_falls_on_what_was_changed_only_and_only_in_training():
    rows, residual = torch.randn(2, 5, 6), Residual(6, dropout=1.0, pre=True)
    assert torch.equal(residual(rows, torch.sin), rows)
    residual.eval()
    assert not torch.equal(residual(rows, torch.sin), rows)


def test_an_embedding_is_scaled_and_told_its_position():
    plain, placed = Embedding(9, 6), Embedding(9, 6, Sinusoidal(6))
    placed.weight = plain.weight
    tokens = torch.tensor([[3, 5, 3]])
    torch.testing.assert_close(plain(tokens)[0, 1], plain.weight[5] * 6**0.5)
    torch.testing.assert_close(placed(tokens, offset=4), Sinusoidal(6)(plain(tokens), offset=4))


def test_continuations_of_one_step_stand_at_one_position():
    placed = Embedding(9, 6, Sinusoidal(6))
    side_by_side = placed.at(torch.tensor([[3, 5], [7, 3]]), position=2)
    torch.testing.assert_close(side_by_side[1, 1], side_by_side[0, 0])
    torch.testing.assert_close(side_by_side[0, 1:2][None], placed(torch.tensor([[5]]), offset=2))


def test_an_embedding_has_room_for_as_many_tokens_as_its_positions():
    assert Embedding(9, 12).longest is None
    assert Embedding(9, 12, Sinusoidal(12)).longest is None
    assert Embedding(9, 12, Learned(7, 12)).longest == 7
