import copy

import pytest
import torch
from torch import nn

from regard import watch
from regard.attention.functional import attend
from regard.capture.traceless import traceless


class Noting(nn.Module):
    """A score that takes notes: statistics, a count in a buffer, and one in an attribute."""

    def __init__(self):
        super().__init__()
        self.norm, self.calls = nn.BatchNorm1d(8), 0
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, queries, keys):
        self.calls += 1
        self.seen += 1
        keys = self.norm(keys.flatten(0, -2)).view(keys.shape)
        return self.seen * queries @ keys.mT


class Model(nn.Module):
    def __init__(self, by_method=False):
        super().__init__()
        self.score, self.by_method = Noting(), by_method

    def forward(self, rows):
        return attend(rows, rows, rows, score=self.score.forward if self.by_method else self.score)


@pytest.mark.parametrize("by_method", [False, True])
def test_looking_leaves_no_trace_in_a_score(by_method):
    model, rows = Model(by_method), torch.randn(2, 5, 8)
    other, fired = copy.deepcopy(model), []
    plain = model(rows)
    for module in other.modules():
        module.register_forward_hook(lambda module, *_: fired.append(module))
    with watch(other) as seen:
        watched = other(rows)
    assert len(seen) == 1 and torch.equal(plain, watched)
    assert model.score.calls == other.score.calls == 1
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, other.get_buffer(name)), name
    assert fired.count(other.score.norm) == 1


def test_weights_are_of_the_state_that_the_score_had():
    model, rows = Model().eval(), torch.randn(2, 5, 8)
    with torch.no_grad(), watch(model) as seen:
        gathered = model(rows)
    torch.testing.assert_close(seen[0].weights[:, 0] @ rows, gathered)


def test_a_copy_shares_parameters_and_modules_that_are_one():
    inner = nn.Linear(3, 3)
    score = nn.Sequential(inner, inner)
    copied = traceless(score)
    assert copied[0] is copied[1] and copied[0] is not inner
    assert copied[0].weight is inner.weight and isinstance(copied, nn.Sequential)
    rows = torch.randn(2, 3)
    assert torch.equal(copied(rows), score(rows))


def test_a_compiled_score_is_run_as_written_and_a_function_as_it_is():
    score = nn.Linear(3, 3)
    assert type(traceless(torch.compile(score, backend="eager"))).__name__ == "Linear"
    assert traceless(torch.add) is torch.add
