"""Edits of regard's own translators, while a run translates."""

import pytest
import torch

import regard

TEXTS = ["the old cat sees the dog", "the big man hears the boat", "the red bird likes the cat"]


@pytest.fixture(scope="module")
def run(tiny_run):
    return regard.load(tiny_run, engine="torch")


@pytest.mark.parametrize("beam_size", [1, 3])
def test_run_translates_with_edits(run, beam_size):
    """Its scores are those of a model whose heads are zeroed by hand."""
    plain = run.translate(TEXTS, beam_size=beam_size)
    with regard.edit(run.model) as edits:
        edits["decoder.*.cross"].heads(1).ablate()
        edited = run.translate(TEXTS, beam_size=beam_size)
    attention = run.model.decoder.layers[0].cross
    weight = attention.out.weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[:, weight.shape[1] // 2 :] = 0
        expected = run.translate(TEXTS, beam_size=beam_size)
        weight.copy_(kept)
    assert [x.text for x in edited] == [x.text for x in expected]
    scores, others = ([x.log_prob for x in found] for found in (edited, expected))
    assert scores == pytest.approx(others, abs=1e-4)
    assert scores != pytest.approx([x.log_prob for x in plain], abs=1e-4)


def test_watch_sees_what_a_run_translates(run):
    with regard.watch(run.model) as capture:
        run.translate(TEXTS[0], beam_size=1)
    assert {record.kind for record in capture} == {"self", "causal", "cross"}
