import math

import pytest

from regard.config import SearchConfig
from regard.decoding import translate
from regard.explorer.errors import Refused
from regard.explorer.inference import trace, translations
from regard.explorer.limits import Limits
from regard.models import build
from regard.runs import Run, trace_translation
from regard.viz.page import page_payload

SOURCE, TARGET = "the old cat sees the dog", "le chat vieux voit le chien"


def test_translations_are_those_of_the_library(run, client):
    form = {"run": "small", "text": SOURCE, "beam_size": 4, "n_best": 3}
    told = client.post("/api/translate", json=form).json()["translations"]
    own = translate(run.model, run.tokenizers, [SOURCE], SearchConfig(beam_size=4), n_best=3)[0]
    assert [each["text"] for each in told] == [each.text for each in own]
    assert [each["score"] for each in told] == [each.score for each in own]
    assert [each["log_prob"] for each in told] == [each.log_prob for each in own]
    assert [each["tokens"] for each in told] == [
        run.tokenizers.target.convert_ids_to_tokens(each.tokens) for each in own
    ]


def test_each_piece_is_as_likely_as_in_a_forced_pass(run):
    for told in translations(run, SOURCE, 4, 4):
        tokens = run.tokenizers.target.encode(told["text"])
        forced = trace_translation(run.model, run.tokenizers, SOURCE, tokens).tokens["target"]
        assert told["token_log_probs"] == pytest.approx(forced.log_probs[1:], abs=1e-4)


def test_a_word_is_as_likely_as_all_its_pieces(run):
    for told in translations(run, SOURCE, 5, 5):
        assert "".join(word["text"] for word in told["words"]) == told["text"].replace(" ", "")
        product = math.prod(word["probability"] for word in told["words"])
        assert math.log(product) == pytest.approx(sum(told["token_log_probs"]), abs=1e-4)
        assert all(0 < word["probability"] <= 1 for word in told["words"])


def test_more_translations_than_the_runs_beams_widen_the_beam(run):
    assert run.settings.search.beam_size == 5
    assert len(translations(run, SOURCE, None, 7)) == 7


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\N{IDEOGRAPHIC SPACE}"])
def test_a_blank_text_has_no_translations(client, blank):
    answer = client.post("/api/translate", json={"run": "small", "text": blank})
    assert (answer.status_code, answer.json()) == (200, {"translations": []})


def test_a_trace_is_a_forced_pass_as_the_page_draws_it(run, client):
    form = {"run": "small", "source": SOURCE, "target": TARGET}
    own = trace_translation(run.model, run.tokenizers, SOURCE, TARGET, title=SOURCE, name="small")
    told = client.post("/api/traces", json=form).json()
    wanted = page_payload(own)
    assert told["tokens"] == wanted["tokens"]
    assert [look["weights"] for look in told["maps"]] == [
        look["weights"] | {"shape": list(look["weights"]["shape"])} for look in wanted["maps"]
    ]
    assert [look["name"] for look in told["maps"]] == ["encoder.0", "decoder.0", "cross.0"]


def test_a_checkpoint_looks_elsewhere(client):
    form = {"run": "small", "source": SOURCE, "target": TARGET}
    early = client.post("/api/traces", json=form | {"checkpoint": "step-0"}).json()
    final = client.post("/api/traces", json=form | {"checkpoint": "final"}).json()
    assert final == client.post("/api/traces", json=form).json()
    assert early["tokens"]["source"]["pieces"] == final["tokens"]["source"]["pieces"]
    assert early["maps"] != final["maps"]


@pytest.mark.parametrize("name", ["source", "target"])
def test_a_trace_needs_words_on_both_sides_and_not_too_many(run, name):
    texts = {"source": SOURCE, "target": TARGET}
    with pytest.raises(Refused, match=f"{name} must have a word or more"):
        trace(run, **texts | {name: ""})
    with pytest.raises(Refused, match=f"{name} must be at most 40 tokens long, but it has"):
        trace(run, **texts | {name: "x" * 50}, limits=Limits(max_tokens=40))


def test_texts_for_which_a_model_has_no_positions_are_refused(run):
    settings = run.settings.update({"model": {"positions": "learned", "max_positions": 8}})
    model = build(settings.model, run.tokenizers.vocab_sizes).eval()
    short = Run(run.folder, settings, run.tokenizers, model)
    assert translations(short, "dog", None, 1)
    with pytest.raises(Refused, match="text must be at most 7 tokens long, but it has"):
        translations(short, " ".join([SOURCE] * 3), None, 1)
    with pytest.raises(Refused, match="target must be at most 7 tokens long, but it has"):
        trace(short, "dog", " ".join([TARGET] * 3))


def test_spaces_around_a_text_change_neither_its_translations_nor_their_likelihoods(run):
    assert translations(run, f"  {SOURCE} \n", 4, 3) == translations(run, SOURCE, 4, 3)


def test_spaces_around_the_texts_of_a_trace_are_not_read(run):
    assert trace(run, f" {SOURCE}\t", f"\n{TARGET} ") == trace(run, SOURCE, TARGET)


@pytest.mark.parametrize("name", ["source", "target"])
def test_a_trace_of_nothing_but_spaces_is_refused_as_empty(client, refused, name):
    form = {"run": "small", "source": SOURCE, "target": TARGET, name: " \t\n"}
    told = refused(client.post("/api/traces", json=form), 422)
    assert told == f"{name} must have a word or more, but it is empty."


def test_spaces_around_a_phrase_of_the_book_do_not_hide_its_gold_alignment(client, few):
    phrase = few["fr"].test[0]
    form = {"run": "small", "source": f" {phrase.source} ", "target": f"{phrase.target}\n"}
    links = client.post("/api/traces", json=form).json()["gold"]
    assert sorted(map(tuple, links)) == sorted(phrase.links)
