import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from regard import RegardError, watch
from regard.capture.mode_stack import leave


class Plain(torch.nn.Module):
    def forward(self, rows):
        return torch.nn.functional.scaled_dot_product_attention(rows, rows, rows)


def test_watches_of_tasks_that_take_turns_see_all():
    async def watched(model, steps):
        with watch(model) as seen:
            for _ in range(steps):
                model(torch.randn(1, 5, 12))
                await asyncio.sleep(0)
        return len(seen)

    async def both():
        return await asyncio.gather(watched(Plain(), 2), watched(Plain(), 5))

    def run():
        return asyncio.run(both()), _get_current_function_mode_stack()

    with ThreadPoolExecutor(1) as thread:  # in which no other loop runs
        assert thread.submit(run).result() == ([2, 5], [])


def test_the_first_to_come_may_be_the_first_to_leave():
    models, rows = (Plain(), Plain()), torch.randn(1, 5, 12)
    first, second = (watch(model) for model in models)
    mine, theirs = first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    for model in models:
        model(rows)
    second.__exit__(None, None, None)
    assert (len(mine), len(theirs)) == (0, 1)
    assert not _get_current_function_mode_stack()


def test_who_is_not_there_cannot_leave():
    with pytest.raises(RegardError, match="watch must be left in the thread that entered it"):
        leave(TorchFunctionMode())
