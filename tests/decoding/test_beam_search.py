import pytest

import regard.decoding.beam_search
import regard.decoding.search
from regard.decoding.beam_search import LengthLimits
from regard.decoding.search import beam


def test_scores_of_a_step_are_written_over_those_before_and_never_over_the_models(
    spoken, monkeypatch
):
    model, memory = spoken
    given, ranked, output, best = [], [], model.output, regard.decoding.search.best

    def kept(states):
        given.append(output(states))
        return given[-1]

    def watched(scores, likely, count):
        ranked.append(scores.data_ptr())
        return best(scores, likely, count)

    monkeypatch.setattr(model, "output", kept)
    monkeypatch.setattr(regard.decoding.search, "best", watched)
    beam(model, model.start(memory), 3, beams=4, limits=LengthLimits(shortest=3, longest=7))
    # the first step has one continuation a sentence, all others have four
    assert len(ranked) > 3 and len(set(ranked[1:])) == 1
    assert all(logits.isfinite().all() for logits in given)


@pytest.mark.parametrize("prefix", [(), (5, 4)])
@pytest.mark.parametrize("beams", [1, 3])
def test_few_sentences_scored_at_a_time_find_what_all_at_once_find(
    spoken, monkeypatch, beams, prefix
):
    model, memory = spoken
    limits, scored, output = LengthLimits(longest=6, prefix=prefix), [], model.output
    at_once = beam(model, model.start(memory), 3, beams=beams, nbest=beams, limits=limits)
    monkeypatch.setattr(regard.decoding.beam_search, "ROWS", 4)
    monkeypatch.setattr(model, "output", lambda s: scored.append(s.shape[:2]) or output(s))
    found = beam(model, model.start(memory), 3, beams=beams, nbest=beams, limits=limits)
    assert max(sentences * each for sentences, each in scored) <= 4
    for one, other in zip(at_once, found, strict=True):
        assert [text.tokens for text in one] == [text.tokens for text in other]
        assert [text.score for text in one] == pytest.approx([text.score for text in other])
