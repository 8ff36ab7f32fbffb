import pytest
import torch

from regard.attention import KeyValues
from regard.attention.axes import Axes

MEMORY = KeyValues(torch.zeros(2, 3, 5, 4), torch.zeros(2, 3, 5, 4))  # of three heads


@pytest.mark.parametrize(
    ("queries", "keys", "single", "unbatched"),
    [
        ((2, 6, 4), None, False, False),
        ((6, 4), None, False, True),
        ((2, 6, 4), torch.zeros(2, 5, 4), False, False),
        ((2, 4), torch.zeros(2, 5, 4), True, False),
        ((6, 4), torch.zeros(5, 4), False, True),
        ((4,), torch.zeros(5, 4), True, True),
        ((2, 6, 4), MEMORY, False, False),
        ((2, 4), MEMORY, True, False),
    ],
)
def test_axes_that_are_added_are_taken_away_again(queries, keys, single, unbatched):
    rows = torch.randn(*queries)
    axes = Axes.of(rows, keys)
    assert axes == (single, unbatched)
    full = axes.add(rows)
    assert full.shape == ((1, 2)[not unbatched], (1, 6)[not single], 4)
    assert torch.equal(axes.drop(full), rows)


@pytest.mark.parametrize(("queries", "keys"), [((4,), None), ((2, 2, 6, 4), torch.zeros(2, 5, 4))])
def test_queries_and_keys_of_other_axes_are_refused(queries, keys):
    with pytest.raises(ValueError, match=r"queries must be \(batch, query, width\), with one axis"):
        Axes.of(torch.randn(*queries), keys)
