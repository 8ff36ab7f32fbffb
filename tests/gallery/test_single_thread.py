import pytest
import torch

from regard.gallery.single_thread import single_thread
from regard.gallery.spelling import Speller, load_split, train_speller


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_single_thread_restores_the_thread_count(two_threads):
    with pytest.raises(ZeroDivisionError), single_thread():
        assert torch.get_num_threads() == 1
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("unchecked")
def test_speller_trains_and_spells_in_one_thread(two_threads, monkeypatch):
    thread_counts, forward = set(), Speller.forward

    def noted(self, *inputs):
        thread_counts.add(torch.get_num_threads())
        return forward(self, *inputs)

    monkeypatch.setattr(Speller, "forward", noted)
    examples, _ = load_split()
    speller = train_speller(examples, steps=1)
    assert thread_counts == {1}
    speller.spell(examples.images[:2])
    assert thread_counts == {1} and torch.get_num_threads() == 2
