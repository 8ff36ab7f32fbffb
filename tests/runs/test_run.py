import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard._support import checksums
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
    model = build(TINY.model, len(both))
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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("demo_model", "it has no settings.json; did you mean demo-model\\?$"),
        ("pairs.tsv", "a run is a folder, and it is a file$"),
        ("cat.json", "and it is a file; `regard explore --trace .*cat.json` opens a trace"),
    ],
)
def test_path_that_is_no_run_is_refused_with_what_was_probably_meant(tmp_path, name, message):
    if "." in name:
        (tmp_path / name).write_text("text")
    with pytest.raises(RegardError, match=message):
        load(tmp_path / name)


def test_path_of_another_type_is_a_type_error(unchecked):
    with pytest.raises(TypeError, match="path must be a run folder, but it is of type int"):
        load(5)


def test_run_without_parameters_is_refused(folder):
    folder.model.unlink()
    with pytest.raises(RegardError, match="has no parameters yet: the first validation saves some"):
        load(folder.path)


def test_truncated_settings_are_refused(folder):
    folder.settings.write_text(folder.settings.read_text()[:-40])
    with pytest.raises(RegardError, match=r"settings.json is damaged"):
        load(folder.path)


def rewrite(folder, change):
    """Change settings.json, with a checksum that fits."""
    content = checksums.loads(folder.settings.read_bytes())
    change(content)
    folder.settings.write_text(checksums.dumps(content))


def test_edited_settings_are_refused(folder):
    text = folder.settings.read_text()
    folder.settings.write_text(text.replace('"layers": 1', '"layers": 2'))
    message = r"settings.json is damaged or was edited: its checksum is wrong"
    with pytest.raises(RegardError, match=message):
        load(folder.path)


@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_settings_with_one_flipped_bit_are_refused_by_name(tmp_path_factory, position, bit):
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    folder.write_settings(TINY, ORIGIN)
    data = bytearray(folder.settings.read_bytes())
    data[int(position * len(data))] ^= 1 << bit
    folder.settings.write_bytes(data)
    with pytest.raises(RegardError, match=r"settings\.json"):
        folder.read_settings()


def test_unknown_setting_is_refused(folder):
    rewrite(folder, lambda content: content["model"].update(colour="red"))
    with pytest.raises(RegardError, match=r"no setting is called 'model.colour'"):
        load(folder.path)


def test_vocabulary_of_another_size_is_refused(folder):
    other = train_tokenizer(["quite another text"], "characters", 300)
    Tokenizers(other, other).save(folder.tokenizer)
    with pytest.raises(RegardError, match=r"does not match the run's settings and vocabulary"):
        load(folder.path)


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        ({"run": "80"}, r"model.safetensors must be of run \w+, but it is of run 80"),
        ({"tokenizer": "80"}, r"model.safetensors must be of tokenizer \w+, but .* tokenizer 80"),
    ],
)
def test_parameters_of_another_run_are_refused(folder, identity, message):
    tensors, about = parameters.load(folder.model)
    parameters.save(folder.model, tensors, about, identity)
    with pytest.raises(RegardError, match=message):
        load(folder.path)


def test_snapshot_of_another_step_is_refused(folder):
    tensors, _ = parameters.load(folder.model)
    parameters.save(folder.snapshot(50), tensors, identity={"step": 25})
    with pytest.raises(RegardError, match=r"step-50.safetensors must be of step 50, but it is of"):
        load(folder.path, checkpoint=50)


def test_same_settings_and_texts_give_the_same_id(tmp_path):
    ids = []
    for name, origin in (("a", ORIGIN), ("b", ORIGIN), ("c", {**ORIGIN, "fingerprints": ["g"]})):
        folder = RunFolder(tmp_path / name)
        folder.write_settings(TINY, origin)
        ids.append(folder.read_id())
    assert ids[0] == ids[1] != ids[2]


def test_parameters_of_another_model_are_refused(folder):
    model = build(ModelConfig(width=8, layers=2, heads=2, ffn_width=8), 262)
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
    rewrite(folder, lambda content: content.update(origin=origin))
    with pytest.raises(RegardError, match=r"settings.json is damaged .*: origin must have a list"):
        folder.read_settings()


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (None, "has format version 0, but .* reads version 2"),
        (1, "has format version 1, but .* reads version 2"),
        ("2", "has format version '2', but .* reads version 2"),
        (3, r"was written by a newer version of regard \(9.8.7, format version 3\), but this is"),
    ],
)
def test_settings_of_another_format_version_are_refused_by_version(tmp_path, version, message):
    folder = RunFolder(tmp_path)
    folder.write_settings(TINY, ORIGIN)
    content = checksums.loads(folder.settings.read_bytes()) | {"regard": "9.8.7"}
    assert content.pop("format_version") == 2
    content |= {} if version is None else {"format_version": version}
    for text in (checksums.dumps(content), json.dumps(content)):  # version 1 had no checksum
        folder.settings.write_text(text)
        with pytest.raises(RegardError, match=message):
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


def add_checkpoint(folder, step, best_step, shift):
    """Write the files of a checkpoint whose parameters are the final ones plus a number."""
    state, _ = parameters.load(folder.model)
    shifted = {name: tensor + shift for name, tensor in state.items()}
    parameters.save(folder.checkpoints / f"parameters-{step}.safetensors", shifted)
    path = folder.checkpoints / f"state-{step}.safetensors"
    parameters.save(path, {}, {"step": step, "best_step": best_step})


def loaded_shift(folder, checkpoint):
    """Return the number that was added to the parameters of a checkpoint."""
    run = load(folder.path, checkpoint=checkpoint)
    final, _ = parameters.load(folder.model)
    name, tensor = next(iter(parameters.state_of(run.model).items()))
    return round(float((tensor.detach() - final[name]).mean()))


def test_best_checkpoint_is_the_one_that_the_latest_state_names(folder):
    add_checkpoint(folder, 8, best_step=8, shift=1)
    add_checkpoint(folder, 16, best_step=8, shift=2)
    assert loaded_shift(folder, "best") == 1
    assert (loaded_shift(folder, 8), loaded_shift(folder, 16)) == (1, 2)
    add_checkpoint(folder, 24, best_step=24, shift=3)
    assert loaded_shift(folder, "best") == 3


def test_best_checkpoint_of_a_run_without_states_is_its_model_until_it_is_finished(folder):
    tensors, _ = parameters.load(folder.model)
    parameters.save(folder.model, tensors, {"step": 8})
    assert loaded_shift(folder, "best") == 0
    parameters.save(folder.model, tensors, {"selection": "average of steps 4 and 8"})
    with pytest.raises(RegardError, match="no checkpoint of its best validation any more"):
        load(folder.path, checkpoint="best")


def test_missing_step_is_refused_with_the_steps_there_are(folder):
    with pytest.raises(RegardError, match="has no parameters of step 7; it has none"):
        load(folder.path, checkpoint=7)
    add_checkpoint(folder, 16, best_step=16, shift=1)
    parameters.save(folder.snapshot(0), parameters.load(folder.model)[0])
    with pytest.raises(RegardError, match="has no parameters of step 7; choose from 0, 16"):
        load(folder.path, checkpoint=7)
    with pytest.raises(RegardError, match="checkpoint must be 'best' or a step, but it is 'last'"):
        load(folder.path, checkpoint="last")


@pytest.mark.parametrize("device", [None, 1.5])
def test_device_of_a_wrong_type_is_a_type_error(folder, unchecked, device):
    with pytest.raises(TypeError, match="device must be a name such as 'cpu' or 'cuda', but it is"):
        load(folder.path, device)


def test_loading_leaves_the_random_state_as_it_was(folder):
    before = torch.get_rng_state()
    load(folder.path)
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (
            "meta",
            "device must be one of this machine, but 'meta' is not usable; device='cpu' always",
        ),
        ("cuda:9", r"device must be one of this machine, but it is 'cuda:9' and there"),
        ("gpu", "device must be such as 'cpu' or 'cuda', but it is 'gpu'"),
    ],
)
def test_device_that_does_not_exist_is_refused(folder, device, message):
    with pytest.raises(RegardError, match=message):
        load(folder.path, device)
