"""Several `watch` at once: nested, in asyncio tasks, in threads, and left in any order."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch._dynamo import eval_frame
from torch.overrides import _get_current_function_mode_stack

from helpers.watched_models import SelfAttention, sharpen
from regard import RegardError, watch
from regard.attention import MultiHeadAttention
from regard.attention.observer import registered_observers


class Attention(nn.Module):
    def forward(self, rows):
        return nn.functional.scaled_dot_product_attention(rows, rows, rows)


def assert_nothing_is_left_behind():
    assert registered_observers() == ()
    assert eval_frame._stance.stance == "default"
    assert not _get_current_function_mode_stack()


def test_two_models_are_captured_separately():
    model, other, rows = SelfAttention(), SelfAttention(), torch.randn(2, 5, 12)
    with watch(model) as first, watch(other) as second:
        model(rows)
        other(rows)
    assert len(first) == len(second) == 1


@pytest.mark.parametrize(
    "model", [nn.MultiheadAttention(12, 3, batch_first=True), MultiHeadAttention(12, 3)]
)
def test_two_captures_of_one_model_are_equal(model):
    rows = torch.randn(2, 5, 12)
    sharpen(model)
    with watch(model) as outer, watch(model) as inner:
        model(rows, rows, rows) if isinstance(model, nn.MultiheadAttention) else model(rows)
    assert len(outer) == len(inner) == 1
    assert torch.equal(outer[0].weights, inner[0].weights)
    assert outer[0].weights.shape == (2, 3, 5, 5)


def test_asyncio_tasks_that_take_turns_are_captured_completely():
    async def count_calls(model, steps):
        with watch(model) as capture:
            for _ in range(steps):
                model(torch.randn(1, 5, 12))
                await asyncio.sleep(0)
        return len(capture)

    async def count_both():
        return await asyncio.gather(count_calls(Attention(), 2), count_calls(Attention(), 5))

    def run():
        return asyncio.run(count_both()), _get_current_function_mode_stack()

    with ThreadPoolExecutor(1) as thread:  # without an event loop of its own
        assert thread.submit(run).result() == ([2, 5], [])


def test_outer_watch_may_end_first():
    models, rows = (Attention(), Attention()), torch.randn(1, 5, 12)
    outer, inner = (watch(model) for model in models)
    first, second = outer.__enter__(), inner.__enter__()
    outer.__exit__(None, None, None)
    for model in models:
        model(rows)
    inner.__exit__(None, None, None)
    assert (len(first), len(second)) == (0, 1)
    assert_nothing_is_left_behind()


def test_watch_must_end_in_its_own_thread():
    watching = watch(Attention())
    with ThreadPoolExecutor(1) as thread:
        thread.submit(watching.__enter__).result()
        with pytest.raises(RegardError, match="must be left in the thread that entered them"):
            watching.__exit__(None, None, None)
    assert_nothing_is_left_behind()


class WatchingThread:
    """A thread that watches a model until `leave` lets it call it and end."""

    def __init__(self, model):
        self.model, self.capture = model, None
        self.entered, self.may_leave = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._run)

    def enter(self):
        self.thread.start()
        assert self.entered.wait(20)

    def leave(self):
        self.may_leave.set()
        self.thread.join(20)

    def _run(self):
        with watch(self.model) as self.capture:
            self.entered.set()
            self.may_leave.wait(20)
            self.model(torch.randn(2, 5, 12))


@pytest.mark.parametrize("first_to_leave", [0, 1])
def test_threads_may_leave_in_any_order(first_to_leave):
    threads = [WatchingThread(MultiHeadAttention(12, 3)) for _ in range(2)]
    for thread in threads:
        thread.enter()
    threads[first_to_leave].leave()
    assert eval_frame._stance.stance == "force_eager"
    threads[1 - first_to_leave].leave()
    assert [len(thread.capture) for thread in threads] == [1, 1]
    assert_nothing_is_left_behind()


def test_calls_in_another_thread_run_uncaptured():
    model, regard_model, rows = SelfAttention(), MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    with watch(nn.ModuleList([model, regard_model])) as capture, ThreadPoolExecutor(1) as thread:
        results = [thread.submit(module, rows).result() for module in (model, regard_model)]
    assert len(capture) == 0 and len(results) == 2
    with pytest.raises(RegardError, match="ran in another thread"):
        capture.check()


@pytest.mark.parametrize("model", [SelfAttention(), nn.Linear(12, 3)])
def test_error_in_the_model_leaves_nothing_behind(model):
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), watch(model):
        model(torch.randn(2, 5, 11))
    assert_nothing_is_left_behind()


def test_part_that_ran_in_another_thread_is_named():
    class TwoThreads(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (
                nn.MultiheadAttention(12, 3, batch_first=True) for _ in range(2)
            )

        def forward(self, x):
            with ThreadPoolExecutor(1) as pool:
                later = pool.submit(self.second, x, x, x)
                return self.first(x, x, x)[0] + later.result()[0]

    model = TwoThreads()
    with torch.no_grad(), watch(model) as capture:
        model(torch.randn(2, 5, 12))
    assert [record.name for record in capture] == ["first"]
    (failure,) = capture.failures
    assert failure.startswith("second: it ran in another thread")
    assert "not captured: second" in str(capture)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_part_that_is_torchscript_is_named():
    class PartlyScripted(nn.Module):
        def __init__(self):
            super().__init__()
            self.plain = nn.MultiheadAttention(12, 3, batch_first=True)
            self.scripted = torch.jit.script(nn.Sequential(nn.Linear(12, 12), nn.ReLU()))

        def forward(self, x):
            return self.scripted(self.plain(x, x, x)[0])

    model = PartlyScripted()
    with torch.no_grad(), watch(model) as capture:
        model(torch.randn(2, 5, 12))
    assert [record.name for record in capture] == ["plain"]
    assert [x.partition(":")[0] for x in capture.failures] == ["scripted"]


def _scripted_attention(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ x.transpose(-2, -1), dim=-1) @ x


def _scripted_activation(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_scripted_functions_with_a_softmax_are_named():
    attend, activate = torch.jit.script(_scripted_attention), torch.jit.script(_scripted_activation)

    class CallsScripted(nn.Module):
        def forward(self, x):
            return activate(attend(x))

    model, x = nn.Sequential(nn.Identity(), CallsScripted()), torch.randn(2, 3, 4)
    call = torch.jit.ScriptFunction.__call__
    with watch(model) as outer, watch(model) as inner:
        output = model(x)
    assert torch.equal(output, model(x))
    assert torch.jit.ScriptFunction.__call__ is call
    for capture in (outer, inner):
        (site,) = capture.failures
        assert site.startswith("1 (test_concurrency.py:")
        assert "1 (test_concurrency.py:" in str(capture) and "TorchScript function" in str(capture)
    attend(x)
    assert len(outer.failures) == 1
