import json

import pytest
import torch

from regard.config import ModelConfig, RunConfig
from regard.data import Tokenizers, train_tokenizer
from regard.errors import RegardError
from regard.models import build
from regard.runs import RunFolder, load, parameters

ORIGIN = {"texts": ["t"], "fingerprints": ["f"], "pairs": 3}
TINY = RunConfig.from_dict(
    {"model": {"width": 8, "layers": 1, "heads": 2, "ffn_width": 8}, "train": {"seed": 9}}
)


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    both = train_tokenizer(["a cat", "a dog"], "characters", 300)
    folder.write_settings(TINY, ORIGIN)
    Tokenizers(both, both).save(folder.tokenizer)
    model = build(TINY.model, (len(both), len(both)))
    parameters.save(folder.model, parameters.state_of(model))
    return folder


def test_a_run_comes_back_as_it_was_saved(folder):
    run = load(folder.path)
    assert run.settings == TINY and run.name == "run"
    assert not run.model.training
    kept, _ = parameters.load(folder.model)
    for name, tensor in parameters.state_of(run.model).items():
        assert torch.equal(tensor, kept[name])


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RegardError, match=r"is not a run: it has no settings.json; `regard train"):
        load(tmp_path)


def test_a_run_without_weights_says_when_they_come(folder):
    folder.model.unlink()
    with pytest.raises(RegardError, match="has no weights yet: they come with the first valid"):
        load(folder.path)


def test_damaged_settings_are_refused(folder):
    folder.settings.write_text(folder.settings.read_text()[:-40])
    with pytest.raises(RegardError, match=r"settings.json is damaged"):
        load(folder.path)


def test_settings_of_another_kind_are_refused(folder):
    content = json.loads(folder.settings.read_text())
    content["model"]["colour"] = "red"
    folder.settings.write_text(json.dumps(content))
    with pytest.raises(RegardError, match=r"no setting is called 'model.colour'"):
        load(folder.path)


def test_a_vocabulary_that_does_not_fit_the_weights_is_refused(folder):
    other = train_tokenizer(["quite another text"], "characters", 300)
    Tokenizers(other, other).save(folder.tokenizer)
    with pytest.raises(RegardError, match=r"does not fit the settings and vocabulary beside it"):
        load(folder.path)


def test_weights_of_another_model_are_refused(folder):
    model = build(ModelConfig(width=8, layers=2, heads=2, ffn_width=8), (262, 262))
    parameters.save(folder.model, parameters.state_of(model))
    with pytest.raises(
        RegardError, match=r"does not fit the settings beside it: the model has not"
    ):
        load(folder.path)


def test_snapshots_come_in_the_order_of_their_steps(folder):
    assert folder.snapshots == {}
    for step in (400, 0, 25, 12_800_000):
        parameters.save(folder.snapshot(step), {})
    parameters.save(folder.path / "snapshots" / "step-mine.safetensors", {})  # of somebody else
    assert list(folder.snapshots) == [0, 25, 400, 12_800_000]
    assert folder.snapshots[400] == folder.snapshot(400)


@pytest.mark.parametrize("origin", [None, [], "t", {}, {"texts": 7}, {"texts": {}}, {"texts": [7]}])
def test_settings_that_do_not_name_their_texts_are_damaged(folder, origin):
    content = json.loads(folder.settings.read_text())
    folder.settings.write_text(json.dumps(content | {"origin": origin}))
    with pytest.raises(RegardError, match=r"settings.json is damaged: origin must name a list"):
        folder.read_settings()


@pytest.mark.parametrize("version", [None, 0, 2])
def test_settings_of_another_format_version_are_refused_by_version(tmp_path, version):
    folder = RunFolder(tmp_path)
    folder.write_settings(TINY, ORIGIN)
    content = json.loads(folder.settings.read_text())
    assert content.pop("format_version") == 1
    content |= {} if version is None else {"format_version": version}
    folder.settings.write_text(json.dumps(content))
    with pytest.raises(RegardError, match=rf"has format version {version or 0}, but .* version 1"):
        folder.read_settings()
