import itertools
import sys

import pytest
import torch

from regard.config import ModelConfig
from regard.data import BOS, EOS
from regard.decoding.search import LengthLimits, beam, greedy, sample
from regard.models import build_language_model

VOCABULARY = 9
SMALL = {"width": 12, "layers": 1, "heads": 3, "ffn_width": 8}


def forced(model, memory, sentence, tokens):
    """Add the log probabilities of a text that is forced on the model."""
    read = torch.tensor([[BOS, *tokens]])
    written = [*tokens, EOS]
    if memory is None:
        states = model(read)
    else:
        one = model.start(memory).keep(torch.tensor([sentence]), torch.tensor([sentence])).source
        states = model.decode(read, one)
    logs = model.output(states)[0].log_softmax(-1)
    return sum(logs[i, token].item() for i, token in enumerate(written))


def test_greedy_takes_the_likeliest_token_each_time(spoken):
    model, memory = spoken
    found = greedy(model, model.start(memory), 3, LengthLimits(longest=8))
    for sentence, text in enumerate(found):
        past = model.start(memory).keep(torch.tensor([sentence]), torch.tensor([sentence]))
        token, tokens = BOS, []
        while len(tokens) < 8:
            states, past = model.step(torch.tensor([[token]]), past)
            logits = model.output(states)[0, 0]
            logits[[0, BOS]] = -torch.inf
            token = int(logits.argmax())
            if token == EOS:
                break
            tokens.append(token)
        assert text.tokens == tuple(tokens)


def test_the_score_is_that_of_the_text_forced_on_the_model(spoken):
    model, memory = spoken
    for sentence, texts in enumerate(
        beam(
            model,
            model.start(memory),
            3,
            beams=4,
            nbest=4,
            penalty=0.7,
            limits=LengthLimits(longest=7),
        )
    ):
        for text in texts:
            total = forced(model, memory, sentence, text.tokens)
            assert text.log_probability == pytest.approx(total, abs=1e-4)
            assert text.score == pytest.approx(total / (len(text.tokens) + 1) ** 0.7, abs=1e-4)


def test_nbest_is_sorted_and_distinct(spoken):
    model, memory = spoken
    for texts in beam(
        model, model.start(memory), 3, beams=5, nbest=5, limits=LengthLimits(longest=6)
    ):
        assert len(texts) == 5
        assert len({text.tokens for text in texts}) == 5
        assert [t.score for t in texts] == sorted((t.score for t in texts), reverse=True)


def test_a_beam_as_wide_as_the_space_finds_the_best_of_all(spoken):
    model, memory = spoken
    words = [token for token in range(VOCABULARY) if token not in (0, BOS, EOS)]
    found = beam(
        model,
        model.start(memory),
        3,
        beams=60,
        nbest=1,
        penalty=0.0,
        limits=LengthLimits(longest=2),
    )
    for sentence, (text,) in enumerate(found):
        total, tokens = max(
            (forced(model, memory, sentence, tokens), tokens)
            for length in range(3)
            for tokens in itertools.product(words, repeat=length)
        )
        assert text.log_probability == pytest.approx(total, abs=1e-4)
        assert text.tokens == tokens


def test_sentences_do_not_hear_each_other(spoken):
    model, memory = spoken
    together = beam(model, model.start(memory), 3, beams=3, limits=LengthLimits(longest=7))
    for sentence in range(3):
        one = torch.tensor([sentence])
        alone = beam(
            model,
            model.start(memory).keep(one, one),
            1,
            beams=3,
            limits=LengthLimits(longest=7),
        )
        assert alone[0][0].tokens == together[sentence][0].tokens
        assert alone[0][0].score == pytest.approx(together[sentence][0].score, abs=1e-4)


def test_limits_are_kept(spoken):
    model, memory = spoken
    limits = LengthLimits(shortest=4, longest=5, prefix=(7, 5))
    for texts in beam(model, model.start(memory), 3, beams=3, nbest=3, limits=limits):
        for text in texts:
            assert 4 <= len(text.tokens) <= 5
            assert text.tokens[:2] == (7, 5)


def test_a_language_model_goes_on_with_a_prompt():
    model = build_language_model(ModelConfig(**SMALL), VOCABULARY).eval()
    ((text,),) = beam(
        model, model.start(), 1, beams=2, limits=LengthLimits(longest=6, prefix=(5, 6))
    )
    assert text.tokens[:2] == (5, 6)
    total = forced(model, None, 0, text.tokens)
    assert text.log_probability == pytest.approx(total, abs=1e-4)


def test_samples_follow_the_models_probabilities(spoken):
    model, memory = spoken
    many = model.start(memory).keep(torch.zeros(4000).long(), torch.zeros(4000).long())
    first = [
        t.tokens[0] if t.tokens else EOS
        for t in sample(model, many, 4000, seed=3, limits=LengthLimits(longest=1))
    ]
    states, _ = model.step(torch.full((3, 1), BOS), model.start(memory))
    logits = model.output(states)[0, 0]
    logits[[0, BOS]] = -torch.inf
    shares = torch.bincount(torch.tensor(first), minlength=VOCABULARY) / 4000
    torch.testing.assert_close(shares, logits.softmax(-1), rtol=0, atol=0.04)


def test_a_seed_draws_the_same_texts_and_small_shares_only_the_likeliest(spoken):
    model, memory = spoken
    limits = LengthLimits(longest=6)
    one, same, other = (
        sample(model, model.start(memory), 3, seed=seed, limits=limits) for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other
    best = greedy(model, model.start(memory), 3, limits)
    for narrow in ({"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}, {"temperature": 1e-42}):
        drawn = sample(model, model.start(memory), 3, seed=5, limits=limits, **narrow)
        assert [t.tokens for t in drawn] == [t.tokens for t in best]


@pytest.mark.parametrize(
    ("search", "settings", "words"),
    [
        (beam, {"beams": 0}, "beams must be 1 or more, but it is 0; 1 is greedy"),
        (
            beam,
            {"beams": 2, "nbest": 3},
            r"nbest must be from 1 to beams \(2\), but it is 3",
        ),
        (sample, {"temperature": 0.0}, "temperature must be above 0 and finite, but it is 0.0"),
        (sample, {"temperature": float("inf")}, "temperature must be .* finite, but it is inf"),
        (beam, {"penalty": 500.0}, "penalty must be from -10 to 10, but it is 500.0"),
        (beam, {"penalty": float("nan")}, "penalty must be from -10 to 10, but it is nan"),
        (sample, {"top_k": 0}, "top_k must be 1 or more"),
        (sample, {"top_p": 1.5}, "top_p must be above 0 and at most 1, but it is 1.5"),
    ],
)
def test_what_makes_no_search_is_refused(spoken, search, settings, words):
    model, memory = spoken
    with pytest.raises(ValueError, match=words):
        search(model, model.start(memory), 3, **settings)


def test_limits_that_contradict_each_other_are_refused():
    with pytest.raises(
        ValueError, match="shortest must be from 0 to longest, but they are 5 and 3"
    ):
        LengthLimits(shortest=5, longest=3)
    with pytest.raises(ValueError, match="prefix must have at most 2 tokens.*it has 3"):
        LengthLimits(longest=2, prefix=(4, 5, 6))


@pytest.mark.parametrize("token", [0, BOS, EOS, -1])
def test_a_prefix_has_words_alone(token):
    with pytest.raises(ValueError, match=f"prefix must be tokens .* end, but one is {token}"):
        LengthLimits(prefix=(5, token))


def test_a_prefix_beyond_the_vocabulary_is_refused(spoken):
    model, memory = spoken
    with pytest.raises(ValueError, match="prefix must be tokens below 9, .*, but one is 9"):
        beam(model, model.start(memory), 3, limits=LengthLimits(prefix=(4, 9)))


def test_of_no_sentence_there_is_no_text_whatever_its_prefix():
    model = Chain(torch.randn(VOCABULARY, VOCABULARY))
    assert beam(model, model, 0, limits=LengthLimits(prefix=(5, 6))) == []


class Chain:
    """The least that can be searched: the next token depends on the last one alone."""

    def __init__(self, logits):
        self.logits = logits

    def step(self, tokens, past):
        return torch.eye(VOCABULARY)[tokens], past

    def output(self, states):
        return states @ self.logits

    def reorder(self, rows):
        return self

    def keep(self, sentences, rows):
        return self


def test_a_text_that_ended_does_not_go_on():
    logits = torch.randn(VOCABULARY, VOCABULARY)
    logits[:, EOS] += 2  # the end is often likely, so it is often among the best
    chain = Chain(logits)
    for texts in beam(chain, chain, 2, beams=6, nbest=6, limits=LengthLimits(longest=5)):
        for text in texts:
            assert EOS not in text.tokens
            walk = [BOS, *text.tokens, EOS]
            logs = logits.log_softmax(-1)
            total = sum(logs[a, b].item() for a, b in itertools.pairwise(walk))
            assert text.log_probability == pytest.approx(total, abs=1e-4)


def test_scores_that_a_model_keeps_stay_as_they_were():
    class Same:
        """A model, and its own past, that always gives one and the same tensor of scores."""

        scores = torch.arange(7.0).expand(2, 1, 7).contiguous()

        def step(self, tokens, past):
            return tokens[..., None].float(), past

        def output(self, states):
            return self.scores

        def reorder(self, rows):
            return self

        def keep(self, sentences, rows):
            return self

    model = Same()
    greedy(model, model, 2, LengthLimits(longest=3))
    assert torch.equal(model.scores, torch.arange(7.0).expand(2, 1, 7))


class Scored:
    """A model that scores every next token alike."""

    def __init__(self, scores):
        self.scores = torch.tensor(scores)

    def reorder(self, rows):
        return self

    def keep(self, sentences, rows):
        return self

    def step(self, tokens, past):
        return torch.zeros(*tokens.shape, 1), past

    def output(self, states):
        return self.scores.expand(*states.shape[:-1], -1).clone()


@pytest.mark.parametrize("search", [greedy, beam, sample])
def test_a_search_is_over_when_all_texts_have_ended(search):
    model, steps = Scored([0.0, 0.0, 50.0, 0.0, 0.0]), []
    step = model.step
    model.step = lambda tokens, past: steps.append(1) or step(tokens, past)
    search(model, model, 2, limits=LengthLimits(longest=sys.maxsize))
    assert len(steps) < 9


@pytest.mark.parametrize("beams", [2, 3, 5])
def test_a_continuation_without_scores_does_not_drive_out_sound_ones(beams):
    logits = torch.randn(VOCABULARY, VOCABULARY)
    logits[:, 7] += 3  # likely, and then nothing is known
    hidden = logits.clone()
    hidden[7] = torch.nan
    broken = Chain(logits)
    broken.output = lambda states: hidden[states.argmax(-1)]
    for texts in beam(broken, broken, 2, beams=beams, nbest=beams, limits=LengthLimits(longest=5)):
        assert texts
        for text in texts:
            walk, logs = [BOS, *text.tokens, EOS], logits.log_softmax(-1)
            total = sum(logs[a, b].item() for a, b in itertools.pairwise(walk))
            assert 7 not in text.tokens
            assert text.log_probability == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("search", [greedy, beam, sample])
@pytest.mark.parametrize(
    ("scores", "limits"),
    [
        ([float("nan")] * 9, LengthLimits(longest=4)),
        ([0.0] * 3, LengthLimits(shortest=1, longest=4)),
    ],
    ids=["scores that are no numbers", "no token but the end"],
)
def test_a_model_that_can_say_nothing_is_told_so(search, scores, limits):
    model = Scored(scores)
    with pytest.raises(ValueError, match=r"must end in a text, but 0 .*NaN.*limits.*would do"):
        search(model, model, 2, limits=limits)
