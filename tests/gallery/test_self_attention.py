import numpy as np
import pytest

from regard.data.phrasebook import load_phrasebook
from regard.gallery import self_attention
from regard.gallery.example_sentence import trace_pair

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def pictures(small_transformer):
    return self_attention.draw()


def maps(figure):
    return [axes for axes in figure.axes if axes.get_title()]


def test_rows_of_every_head_sum_to_one(pictures):
    for name in ("encoder", "decoder"):
        assert len(maps(pictures[name])) == 2 * 2
        for axes in maps(pictures[name]):
            weights = np.asarray(axes.images[0].get_array())
            assert weights.sum(-1) == pytest.approx(1.0, abs=1e-5)


def test_decoder_is_causal_and_encoder_is_not(pictures):
    for axes in maps(pictures["decoder"]):
        weights = np.asarray(axes.images[0].get_array())
        assert (np.triu(weights, 1) == 0).all() and (np.tril(weights) > 0).sum() > len(weights)
        hatched = sum(bool(patch.get_hatch()) for patch in axes.patches)
        assert hatched >= len(weights) * (len(weights) - 1) / 2
    for axes in maps(pictures["encoder"]):
        assert not any(patch.get_hatch() for patch in axes.patches)


def test_bars_show_mean_weight_shares(pictures, small_transformer):
    traces = [
        trace_pair(small_transformer, phrase) for phrase in load_phrasebook("fr", train=0).valid[:4]
    ]
    for axes, kind in zip(pictures["head-roles"].axes, ("self", "causal"), strict=True):
        before, itself, after, rest = (
            [bar.get_width() for bar in bars] for bars in axes.containers
        )
        assert np.sum([before, itself, after, rest], 0) == pytest.approx(1.0)
        for offset, bars in ((-1, before), (0, itself), (1, after)):
            expected = [
                np.mean(
                    [
                        np.trace(one.layers(kind)[layer].weights[head], offset)
                        / len(one.layers(kind)[layer].weights[head])
                        for one in traces
                    ]
                )
                for layer in range(2)
                for head in range(2)
            ]
            assert bars == pytest.approx(expected, abs=1e-5)
