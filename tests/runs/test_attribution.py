"""Attribution of translations: tokens that are attributed much matter to the model."""

import sys
from pathlib import Path

import numpy as np
import pytest

from regard import analysis
from regard.data.phrasebook import load_phrasebook
from regard.errors import RegardError
from regard.runs import load

SOURCE, TARGET = "the old cat sees the dog", "le vieux chat voit le chien"


@pytest.fixture(scope="module")
def run(tiny_run):
    return load(tiny_run)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.filterwarnings("ignore:integrated gradients have not converged")
@pytest.mark.parametrize("method", analysis.METHODS)
def test_every_method_attributes_target_tokens_to_source_tokens(run, method):
    trace = run.attribute(SOURCE, TARGET, method=method, steps=2)
    traced = run.trace(SOURCE, TARGET)
    cross = next(m for m in trace.maps if m.kind == "cross" and m.keys == "source")
    assert cross.queries == "target"
    for name in ("source", "target"):
        assert trace.tokens[name].pieces == traced.tokens[name].pieces
        assert trace.tokens[name].words == traced.tokens[name].words
    assert trace.title == traced.title and trace.model == run.name


@pytest.mark.usefixtures("unchecked")
def test_single_token_is_attributed_with_the_row_that_it_has_among_all(run):
    everything = run.attribute(SOURCE, TARGET, method="gradient_x_input")
    one = run.attribute(SOURCE, TARGET, method="gradient_x_input", token=2)
    for m, single in zip(everything.maps, one.maps, strict=True):
        np.testing.assert_allclose(m.weights[0, 2], single.weights[0, 0], atol=1e-5)


def test_missing_token_is_refused(run):
    with pytest.raises(RegardError, match="position from 0 to 1, where the end token is the last"):
        run.attribute(SOURCE, [5], token=9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:integrated gradients have not converged")
@pytest.mark.usefixtures("unchecked")
def test_removing_the_tokens_attributed_most_hurts_more_than_random_ones(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "bench"))
    import deletion

    monkeypatch.setitem(sys.modules, "deletion", deletion)
    run = load("demo-model")
    methods = ("chefer", "gradient_x_weight", "integrated_gradients")
    sources = [pair.source for pair in load_phrasebook("fr", train=0).test[:20]]
    curves = [deletion.drops(run, s, 2, methods, seed) for seed, s in enumerate(sources)]
    random = np.mean([c["random"] for c in curves], axis=0)
    for method in methods:
        assert (np.mean([c[method] for c in curves], axis=0) > random).all()
