import pytest
import torch

from regard.config import RunConfig
from regard.training.threads import threads


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [({}, 1), ({"train": {"threads": 3}}, 3), ({"model": {"width": 512}}, 2)],
)
def test_small_models_learn_on_one_thread_and_all_come_back(changes, wanted):
    torch.set_num_threads(2)
    try:
        with threads(RunConfig.from_dict(changes)):
            assert torch.get_num_threads() == wanted
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)  # as the other tests have it
