import pytest
import torch

from regard.attention import attend, look, observer


@pytest.fixture
def heard(monkeypatch):
    jobs = []

    def present(job, run):
        jobs.append(job)
        return run()

    monkeypatch.setattr(observer, "present", present)
    return jobs


def test_every_attention_is_told_once_and_unchanged(heard, monkeypatch):
    rows = torch.randn(2, 3, 5, 12)
    context = attend(rows)
    looked = look(rows, backend="dense")
    assert len(heard) == 2
    assert heard[0].queries is rows
    monkeypatch.setattr(observer, "present", None)
    assert torch.equal(context, attend(rows))
    assert torch.equal(looked.context, look(rows, backend="dense").context)
    assert len(heard) == 2


def test_what_the_witness_returns_is_the_result(monkeypatch):
    monkeypatch.setattr(observer, "present", lambda job, run: run() + 1)
    rows = torch.randn(2, 3, 5, 12)
    after = attend(rows)
    monkeypatch.setattr(observer, "present", None)
    assert torch.equal(after, attend(rows) + 1)
