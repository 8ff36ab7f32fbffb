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


def test_run_is_loaded_as_saved_in_evaluation_mode(folder):
    run = load(folder.path)
    assert run.settings == TINY and run.name == "run"
    assert not run.model.training
    saved, _ = parameters.load(folder.model)
    for name, tensor in parameters.state_of(run.model).items():
        assert torch.equal(tensor, saved[name])


def test_folder_without_settings_is_refused(tmp_path):
    with pytest.raises(RegardError, match=r"is not a run: it has no settings.json; `regard train"):
        load(tmp_path)


def test_run_without_parameters_is_refused(folder):
    folder.model.unlink()
    with pytest.raises(RegardError, match="has no parameters yet: the first validation saves some"):
        load(folder.path)


def test_truncated_settings_are_refused(folder):
    folder.settings.write_text(folder.settings.read_text()[:-40])
    with pytest.raises(RegardError, match=r"settings.json is damaged"):
        load(folder.path)


def test_unknown_setting_is_refused(folder):
    content = json.loads(folder.settings.read_text())
    content["model"]["colour"] = "red"
    folder.settings.write_text(json.dumps(content))
    with pytest.raises(RegardError, match=r"no setting is called 'model.colour'"):
        load(folder.path)


def test_vocabulary_of_another_size_is_refused(folder):
    other = train_tokenizer(["quite another text"], "characters", 300)
    Tokenizers(other, other).save(folder.tokenizer)
    with pytest.raises(RegardError, match=r"does not match the run's settings and vocabulary"):
        load(folder.path)


def test_parameters_of_another_model_are_refused(folder):
    model = build(ModelConfig(width=8, layers=2, heads=2, ffn_width=8), (262, 262))
    parameters.save(folder.model, parameters.state_of(model))
    with pytest.raises(RegardError, match=r"does not match the run's settings: the model has no"):
        load(folder.path)


def test_snapshots_are_listed_in_order_of_steps(folder):
    assert folder.snapshots == {}
    for step in (400, 0, 25, 12_800_000):
        parameters.save(folder.snapshot(step), {})
    parameters.save(folder.path / "snapshots" / "step-mine.safetensors", {})  # of another program
    assert list(folder.snapshots) == [0, 25, 400, 12_800_000]
    assert folder.snapshots[400] == folder.snapshot(400)


@pytest.mark.parametrize("origin", [None, [], "t", {}, {"texts": 7}, {"texts": {}}, {"texts": [7]}])
def test_settings_without_a_list_of_texts_are_refused(folder, origin):
    content = json.loads(folder.settings.read_text())
    folder.settings.write_text(json.dumps(content | {"origin": origin}))
    with pytest.raises(RegardError, match=r"settings.json is damaged: origin must have a list"):
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


@pytest.mark.parametrize("content", ["[]", "3", "null", '"text"'])
def test_settings_that_are_no_object_are_refused(unchecked, folder, content):
    folder.settings.write_text(content)
    with pytest.raises(RegardError, match=r"settings.json is damaged"):
        folder.read_settings()


def test_checkpoint_is_loaded_instead_of_the_final_parameters(folder):
    state, _ = parameters.load(folder.model)
    parameters.save(folder.snapshot(25), {name: tensor + 1 for name, tensor in state.items()})
    run = load(folder.path, checkpoint=folder.snapshot(25))
    for name, tensor in parameters.state_of(run.model).items():
        assert torch.equal(tensor, state[name] + 1)


def test_folder_is_empty_until_something_other_than_a_temp_of_its_settings_is_there(tmp_path):
    folder = RunFolder(tmp_path / "run")
    assert folder.is_empty
    folder.path.mkdir()
    assert folder.is_empty
    (folder.path / ".settings.json.12.tmp").write_text("{")
    assert folder.is_empty
    (folder.path / ".model.safetensors.12.tmp").write_text("")
    assert not folder.is_empty
    folder.remove_temps()
    assert folder.is_empty and not list(folder.path.iterdir())
    folder.write_settings(TINY, ORIGIN)
    assert not folder.is_empty
    assert not RunFolder(folder.settings).is_empty  # a file


@pytest.mark.parametrize("name", ["model", "checkpoints", "model_card"])
def test_folder_has_parameters_with_a_model_a_checkpoint_or_a_model_card(tmp_path, name):
    folder = RunFolder(tmp_path)
    folder.write_settings(TINY, ORIGIN)
    assert not folder.has_parameters
    getattr(folder, name).write_text("")
    assert folder.has_parameters
