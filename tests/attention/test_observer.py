import pytest
import torch

from regard.attention import attend, look, register_observer
from regard.attention.observer import registered_observers


@pytest.fixture
def rows():
    return torch.randn(2, 3, 5, 12)


def test_observer_sees_every_call_once_and_changes_nothing(rows):
    calls = []

    def observer(call, run):
        calls.append(call)
        return run()

    with register_observer(observer):
        context = attend(rows)
        output = look(rows, backend="dense")
    assert len(calls) == 2
    assert calls[0].queries is rows
    assert torch.equal(context, attend(rows))
    assert torch.equal(output.context, look(rows, backend="dense").context)
    assert len(calls) == 2, "it is no longer registered"


def test_result_of_the_observer_is_the_result_of_the_call(rows):
    with register_observer(lambda call, run: run() + 1):
        context = attend(rows)
    assert torch.equal(context, attend(rows) + 1)


def test_last_observer_is_the_outermost(rows):
    order = []

    def make(name):
        def observer(call, run):
            order.append(name)
            return run()

        return observer

    with register_observer(make("first")), register_observer(make("second")):
        attend(rows)
    assert order == ["second", "first"]


def test_observers_may_leave_in_any_order():
    observers = [lambda call, run: run(), lambda call, run: run() + 1]
    first, second = map(register_observer, observers)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert registered_observers() == (observers[1],)
    second.__exit__(None, None, None)
    assert registered_observers() == ()


def test_observer_is_removed_after_an_error():
    with pytest.raises(RuntimeError, match="inside"), register_observer(lambda call, run: run()):
        raise RuntimeError("inside")
    assert registered_observers() == ()
