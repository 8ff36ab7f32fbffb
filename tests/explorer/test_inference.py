import math
from dataclasses import replace

import pytest
from starlette.exceptions import HTTPException

from helpers.explorer import error_message
from regard.config import SearchConfig
from regard.decoding import DecodingCancelled, TorchEngine, Translation, translate
from regard.errors import RegardError
from regard.explorer import RunRegistry
from regard.explorer.inference import trace_text, translate_text
from regard.explorer.schemas import ExplorerLimits
from regard.explorer.workers import CancelToken
from regard.models import build
from regard.runs import Run, trace_translation
from regard.viz import page_payload

SOURCE, TARGET = "the old cat sees the dog", "le chat vieux voit le chien"


def test_translations_equal_those_of_the_library(run, client):
    body = {"run": "tiny", "text": SOURCE, "beam_size": 4, "n_best": 3}
    response = client.post("/api/translate", json=body).json()["translations"]
    own = translate(
        run.model,
        run.tokenizers,
        [SOURCE],
        SearchConfig(beam_size=4),
        n_best=3,
        engine=run.engine,
    )[0]
    tokenizer = run.tokenizers.target
    assert [(each["text"], each["score"], each["log_prob"]) for each in response] == [
        (each.text, each.score, each.log_prob) for each in own
    ]
    assert [each["tokens"] for each in response] == [
        tokenizer.convert_ids_to_tokens(each.tokens) for each in own
    ]


def test_token_log_probs_equal_those_of_teacher_forcing(run):
    for translation in translate_text(run, SOURCE, beam_size=4, n_best=4):
        ids = run.tokenizers.target.encode(translation["text"])
        trace = trace_translation(run.model, run.tokenizers, SOURCE, ids)
        expected = trace.tokens["target"].log_probs[:-1]
        assert translation["token_log_probs"] == pytest.approx(expected, abs=1e-4)


def test_word_probability_is_the_product_of_its_tokens(run):
    for translation in translate_text(run, SOURCE, beam_size=5, n_best=5):
        words = translation["words"]
        assert "".join(word["text"] for word in words) == translation["text"].replace(" ", "")
        product = math.prod(word["probability"] for word in words)
        assert math.log(product) == pytest.approx(sum(translation["token_log_probs"]), abs=1e-4)
        assert all(0 < word["probability"] <= 1 for word in words)


def test_n_best_beyond_the_runs_beam_size_enlarges_the_beam(run):
    assert run.settings.search.beam_size == 5
    assert len(translate_text(run, SOURCE, n_best=7)) == 7


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\N{IDEOGRAPHIC SPACE}"])
def test_blank_text_has_no_translations(client, blank):
    response = client.post("/api/translate", json={"run": "tiny", "text": blank})
    expected = {"translations": [], "unseen_words": []}
    assert (response.status_code, response.json()) == (200, expected)


def test_trace_equals_that_of_the_library_as_the_page_draws_it(run, client):
    body = {"run": "tiny", "source": SOURCE, "target": TARGET}
    response = client.post("/api/traces", json=body).json()
    own = page_payload(
        trace_translation(run.model, run.tokenizers, SOURCE, TARGET, title=SOURCE, name="tiny")
    )
    assert response["tokens"] == own["tokens"]
    assert [each["weights"] for each in response["maps"]] == [
        each["weights"] | {"shape": list(each["weights"]["shape"])} for each in own["maps"]
    ]
    assert [each["name"] for each in response["maps"]] == ["encoder.0", "decoder.0", "cross.0"]


def test_trace_of_a_checkpoint_uses_its_parameters(client):
    body = {"run": "tiny", "source": SOURCE, "target": TARGET}
    early = client.post("/api/traces", json=body | {"checkpoint": "step-0"}).json()
    final = client.post("/api/traces", json=body | {"checkpoint": "final"}).json()
    assert final == client.post("/api/traces", json=body).json()
    assert early["tokens"]["source"]["pieces"] == final["tokens"]["source"]["pieces"]
    assert early["maps"] != final["maps"]


@pytest.mark.parametrize("name", ["source", "target"])
def test_trace_texts_must_be_neither_empty_nor_too_long(run, name):
    texts = {"source": SOURCE, "target": TARGET}
    with pytest.raises(HTTPException, match=f"{name} must have at least one word"):
        trace_text(run, **texts | {name: ""})
    with pytest.raises(HTTPException, match=f"{name} must be at most 40 tokens long, but it has"):
        trace_text(run, **texts | {name: "x" * 50}, limits=ExplorerLimits(max_tokens=40))


def test_text_longer_than_the_models_positions_is_rejected(run):
    settings = run.settings.update({"model": {"positions": "learned", "max_positions": 8}})
    model = build(settings.model, run.tokenizers.vocab_sizes).eval()
    engine = TorchEngine(model, run.tokenizers)
    short_run = Run(run.folder, settings, run.tokenizers, model, engine)
    assert translate_text(short_run, "dog")
    with pytest.raises(HTTPException, match="text must be at most 7 tokens long, but it has"):
        translate_text(short_run, " ".join([SOURCE] * 3))
    with pytest.raises(HTTPException, match="target must be at most 7 tokens long, but it has"):
        trace_text(short_run, "dog", " ".join([TARGET] * 3))


def test_whitespace_around_texts_is_ignored(run):
    assert translate_text(run, f"  {SOURCE} \n", 4, 3) == translate_text(run, SOURCE, 4, 3)
    assert trace_text(run, f" {SOURCE}\t", f"\n{TARGET} ") == trace_text(run, SOURCE, TARGET)


@pytest.mark.parametrize("name", ["source", "target"])
def test_trace_of_blank_text_is_422(client, name):
    body = {"run": "tiny", "source": SOURCE, "target": TARGET, name: " \t\n"}
    message = error_message(client.post("/api/traces", json=body), 422)
    assert message == f"{name} must have at least one word, but it is empty."


def test_translations_are_those_of_the_runs_engine(run):
    class Parrot(TorchEngine):
        def translate_batch(self, batch, options, should_stop=None):
            assert not should_stop()
            return [[Translation("chat", (7,), -0.5, (-0.25, -0.25), -0.25)]]

    engine = Parrot(run.model, run.tokenizers)
    (translation,) = translate_text(replace(run, engine=engine), SOURCE, token=CancelToken())
    assert (translation["text"], translation["token_log_probs"]) == ("chat", [-0.25])


def test_engine_and_quantization_of_the_registry_are_those_of_its_runs(tiny_run):
    pytest.importorskip("ctranslate2", reason="the extra fast is not installed")
    loaded = []
    registry = RunRegistry([tiny_run], quantization="int8", on_load=lambda *run: loaded.append(run))
    run = registry.load("tiny")
    assert repr(run.engine) == "CTranslate2Engine(quantization='int8')"
    assert registry.load("tiny") is run and loaded == [("tiny", run)]
    for translation in translate_text(run, SOURCE, beam_size=4, n_best=4):
        ids = run.tokenizers.target.encode(translation["text"])
        expected = trace_translation(run.model, run.tokenizers, SOURCE, ids)
        # rounded to int8, against float32
        assert translation["token_log_probs"] == pytest.approx(
            expected.tokens["target"].log_probs[:-1], abs=0.2
        )
    assert RunRegistry([tiny_run], engine="torch").load("tiny").engine.name == "torch"
    with pytest.raises(RegardError, match="no engine is called 'torhc'. Did you mean 'torch'"):
        RunRegistry([tiny_run], engine="torhc")


def test_cancelled_token_stops_the_search_between_two_steps(run, monkeypatch):
    run = replace(run, engine=TorchEngine(run.model, run.tokenizers))
    token, steps, step = CancelToken(), [], run.model.step

    def count_steps(*arguments):
        steps.append(1)
        if len(steps) == 3:
            token.cancel()
        return step(*arguments)

    monkeypatch.setattr(run.model, "step", count_steps)
    with pytest.raises(DecodingCancelled):
        translate_text(run, SOURCE, token=token)
    assert len(steps) == 3
