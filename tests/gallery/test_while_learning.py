import numpy as np
import pytest

from regard.analysis import word_level_cross_attention
from regard.gallery import while_learning
from regard.gallery.example_sentence import example_pair, trace_pair
from regard.runs import load

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def pictures(small_transformer):
    return while_learning.draw()


def test_frames_are_ordered_by_step_and_end_with_the_run(pictures):
    titles = [axes.get_title() for axes in pictures["frames"].axes if axes.images]
    assert [title.split(":")[0] for title in titles] == ["step 0", "step 25", "step 30"]


def test_each_frame_holds_weights_of_its_snapshot(pictures, small_transformer):
    maps = [np.asarray(axes.images[0].get_array()) for axes in pictures["frames"].axes[:3]]
    snapshots = small_transformer.folder.snapshots.values()
    runs = [
        *(load(small_transformer.folder.path, checkpoint=path) for path in snapshots),
        small_transformer,
    ]
    for drawn, run in zip(maps, runs, strict=True):
        assert drawn.sum(-1) == pytest.approx(1.0, abs=1e-5)
        stack, _, _ = word_level_cross_attention(trace_pair(run, example_pair()))
        assert any(np.allclose(drawn, head) for layer in stack for head in layer)
    assert not np.allclose(maps[0], maps[-1])


def test_highlighted_head_has_the_lowest_final_error(pictures):
    lines = pictures["frames"].axes[3].lines
    ends = [line.get_ydata()[-1] for line in lines]
    thick = max(lines, key=lambda line: line.get_linewidth())
    assert len(lines) == 2 * 2 and thick.get_ydata()[-1] == min(ends)


def test_animation_shows_every_frame_and_holds_the_last(pictures):
    frames, durations = pictures["animation"]
    assert durations == [while_learning.FRAME_MS] * 2 + [4 * while_learning.FRAME_MS]
    panels = [frame.axes[0] for frame in frames]
    stills = pictures["frames"].axes[:3]
    assert [axes.get_title() for axes in panels] == [axes.get_title() for axes in stills]
    for moving, still in zip(panels, stills, strict=True):
        assert (moving.images[0].get_array() == still.images[0].get_array()).all()


def test_run_with_snapshots_is_requested(small_transformer, monkeypatch):
    requests = []

    def record(**request):
        requests.append(request)
        return small_transformer

    monkeypatch.setattr(while_learning, "load_or_train", record)
    while_learning.draw()
    assert requests == [{"to": "fr", "snapshots": True}]
