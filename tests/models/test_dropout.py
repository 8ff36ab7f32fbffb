import pytest
import torch

from regard.models import dropout as module
from regard.models.dropout import dropout

SHARES = (0.1, 0.25, 0.5, 0.9)


def kept_share(share):
    """What is kept of a share: shares are rounded to a 256th."""
    return 1 - round(share * 256) / 256


@pytest.mark.parametrize("share", SHARES)
def test_the_share_is_kept_within_what_chance_allows(share):
    numbers = 300_007
    kept = dropout(torch.ones(numbers), share, True).count_nonzero().item()
    wanted = kept_share(share)
    # five standard deviations of a count
    assert abs(kept - numbers * wanted) < 5 * (numbers * wanted * (1 - wanted)) ** 0.5


@pytest.mark.parametrize("share", SHARES)
def test_what_is_kept_is_enlarged_by_exactly_what_makes_up(share):
    rows = torch.randn(7, 11, dtype=torch.float64)
    found = dropout(rows, share, True)
    kept = found != 0
    assert kept.any()
    assert not kept.all()
    assert found[kept].equal(rows[kept] * (1 / kept_share(share)))


def test_the_mean_stays_the_same():
    assert dropout(torch.ones(1_000_000), 0.3, True).mean().item() == pytest.approx(1, abs=5e-3)


def test_neighbours_are_dropped_independently():
    kept = (dropout(torch.ones(400_001), 0.5, True) != 0).float()
    for distance in (1, 2, 8, 64):
        both = (kept[:-distance] * kept[distance:]).mean().item()
        assert both == pytest.approx(0.25, abs=0.005), distance


@pytest.mark.parametrize("share", [*SHARES, 1.0])
def test_the_gradient_goes_through_what_was_kept_alone(share):
    rows = torch.randn(5, 13, requires_grad=True)
    found = dropout(rows, share, True)
    by = torch.randn(5, 13)
    found.backward(by)
    kept = found.detach() != 0
    assert rows.grad[~kept].count_nonzero() == 0
    scale = 0.0 if share == 1.0 else 1 / kept_share(share)
    assert torch.allclose(rows.grad[kept], by[kept] * scale)


def test_gradients_agree_with_differences():
    rows = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)

    def same_chance(rows):
        torch.manual_seed(7)
        return dropout(rows, 0.4, True)

    assert torch.autograd.gradcheck(same_chance, rows)


def test_the_same_seed_drops_the_same_and_another_seed_others():
    def drawn(seed):
        torch.manual_seed(seed)
        return dropout(torch.ones(97), 0.5, True)

    assert drawn(3).equal(drawn(3))
    assert not drawn(3).equal(drawn(4))


def test_each_call_draws_anew():
    rows = torch.ones(97)
    assert not dropout(rows, 0.5, True).equal(dropout(rows, 0.5, True))


@pytest.mark.parametrize(("share", "training"), [(0.5, False), (0.0, True), (1.0, False)])
def test_out_of_training_and_without_a_share_nothing_is_touched(share, training):
    rows = torch.randn(2, 3)
    before = torch.get_rng_state()
    assert dropout(rows, share, training) is rows
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (9,), (3, 5), (2, 3, 5, 7), (0,), (4, 0, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_any_size_keeps_its_shape_and_kind(shape, dtype):
    rows = torch.ones(shape, dtype=dtype)
    found = dropout(rows, 0.5, True)
    assert (found.shape, found.dtype) == (rows.shape, dtype)
    assert set(found.flatten().tolist()) <= {0.0, 2.0}


def test_rows_that_are_turned_are_dropped_like_others():
    rows = torch.randn(5, 3).t()
    torch.manual_seed(3)
    turned = dropout(rows, 0.5, True)
    torch.manual_seed(3)
    assert turned.equal(dropout(rows.contiguous(), 0.5, True))


def test_the_whole_share_leaves_nothing():
    assert dropout(torch.randn(17), 1.0, True).count_nonzero() == 0


def test_the_smallest_share_still_drops_some():
    dropped = (dropout(torch.ones(100_000), 1e-9, True) == 0).sum().item()
    assert 0 < dropped < 100_000 / 128


def test_rows_themselves_stay_as_they_were():
    rows = torch.ones(50)
    dropout(rows, 0.5, True)
    assert rows.equal(torch.ones(50))


def test_other_devices_and_compilers_have_their_own_dropout(monkeypatch):
    monkeypatch.setattr(module.torch.compiler, "is_compiling", lambda: True)
    found = dropout(torch.ones(10_000), 0.3, True)
    # exactly 1 / 0.7, where a share of 256ths would be near it
    assert found.max().item() == pytest.approx(1 / 0.7, rel=1e-6)
