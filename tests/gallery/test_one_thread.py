import pytest
import torch

from regard.gallery.one_thread import one_thread
from regard.gallery.spelling import Speller, digits, learn


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_there_is_one_thread_and_then_as_many_as_before(two_threads):
    with pytest.raises(ZeroDivisionError), one_thread():
        assert torch.get_num_threads() == 1
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("unchecked")
def test_a_speller_learns_and_spells_in_one_thread(two_threads, monkeypatch):
    seen, forward = set(), Speller.forward

    def noted(self, *inputs):
        seen.add(torch.get_num_threads())
        return forward(self, *inputs)

    monkeypatch.setattr(Speller, "forward", noted)
    examples, _ = digits()
    speller = learn(examples, steps=1)
    assert seen == {1}
    speller.spell(examples.images[:2])
    assert seen == {1} and torch.get_num_threads() == 2
