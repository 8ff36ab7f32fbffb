import threading

import pytest
import torch
from torch import nn
from torch._dynamo import eval_frame

from regard import watch
from regard.attention import MultiHeadAttention, observer


class Watching:
    """A thread that watches a model, and does what it is told when it is told."""

    def __init__(self, model):
        self.model, self.seen, self.turn, self.done = model, None, threading.Event(), None
        self.thread = threading.Thread(target=self._run)

    def enter(self):
        self.done = threading.Event()
        self.thread.start()
        assert self.done.wait(20)

    def leave(self):
        self.turn.set()
        self.thread.join(20)

    def _run(self):
        with watch(self.model) as self.seen:
            self.done.set()
            self.turn.wait(20)
            self.model(torch.randn(2, 5, 12))


@pytest.mark.parametrize("first", [0, 1])
def test_threads_may_leave_in_any_order(first):
    both = [Watching(MultiHeadAttention(12, 3)), Watching(MultiHeadAttention(12, 3))]
    for one in both:
        one.enter()
    both[first].leave()
    assert eval_frame._stance.stance == "force_eager"
    both[1 - first].leave()
    assert [len(one.seen) for one in both] == [1, 1]
    assert observer.present is None
    assert eval_frame._stance.stance == "default"


def test_all_witnesses_of_a_thread_see_a_job_once():
    model = MultiHeadAttention(12, 3)
    with watch(model) as outer, watch(model) as inner:
        model(torch.randn(2, 5, 12))
    assert len(outer) == len(inner) == 1


def test_an_error_leaves_nobody_behind():
    model = nn.Linear(3, 3)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), watch(model):
        model(torch.randn(2, 4))
    assert observer.present is None
    assert eval_frame._stance.stance == "default"
