import shutil

import pytest
import torch
from starlette.exceptions import HTTPException

from helpers.explorer import error_message
from regard._support import checksums
from regard.errors import RegardError
from regard.explorer import RunRegistry
from regard.explorer.runs import unique_names
from regard.runs import RunFolder, load
from regard.runs import parameters as parameter_files

BODY = {"run": "copy", "text": "the cat"}


def parameters(run):
    return torch.cat([parameter.flatten() for parameter in run.model.parameters()])


def edit_settings(path, edit):
    """Apply a function to the content of a run's settings file."""
    settings = RunFolder(path).settings
    content = checksums.loads(settings.read_bytes())
    edit(content)
    settings.write_text(checksums.dumps(content))


def test_info_summarizes_a_run(tiny_run, run):
    assert RunRegistry([tiny_run]).info("tiny") == {
        "name": "tiny",
        "kind": "transformer",
        "layers": 1,
        "heads": 2,
        "parameters": parameters(run).numel(),
        "beam_size": 5,
        "phrasebook": "fr",
        "ready": True,
    }


def test_unique_names_numbers_repetitions_and_replaces_surrogates():
    names = unique_names(["run", "run", "run-2", "run", "", "\udcff"])
    assert names == ["run", "run-2", "run-2-2", "run-3", "run-4", "?"]


def test_unregistered_run_is_404(tiny_run):
    registry = RunRegistry([tiny_run])
    parent = f"../{tiny_run.parent.name}/tiny"
    for name in ("other", "", ".", "..", str(tiny_run), parent, "tiny/"):
        with pytest.raises(HTTPException, match="no run is named .*; available: 'tiny'") as error:
            registry.load(name)
        assert error.value.status_code == 404


@pytest.mark.parametrize(
    "name", ["..%2f..%2fetc", "%2e%2e", "..%2Ftiny", "tiny%2f..%2ftiny", "tiny%00", "%ff"]
)
def test_path_traversal_in_a_run_name_is_404(client, name):
    for route in ("log", "checkpoints"):
        error_message(client.get(f"/api/runs/{name}/{route}"), 404)


def test_folder_without_run_is_an_error_at_start(tmp_path):
    with pytest.raises(RegardError, match="is not a run"):
        RunRegistry([tmp_path])


def test_run_is_loaded_once_until_its_files_change(run_copy):
    registry = RunRegistry([run_copy])
    before = registry.load("copy")
    assert registry.load("copy") is before
    path = RunFolder(run_copy).model
    tensors, metadata = parameter_files.load(path)
    changed = {name: tensor + 1 for name, tensor in tensors.items()}
    parameter_files.save(path, changed, metadata)
    after = registry.load("copy")
    assert torch.equal(parameters(after), parameters(load(run_copy)))
    assert not torch.equal(parameters(after), parameters(before))


def test_removed_run_is_404_until_it_is_back(run_copy, make_client):
    client = make_client(run_copy)
    assert client.post("/api/translate", json=BODY).status_code == 200
    moved = run_copy.rename(run_copy.with_name("moved"))
    for response in (client.post("/api/translate", json=BODY), client.get("/api/runs/copy/log")):
        expected = "the run 'copy' is gone: its folder was removed."
        assert error_message(response, 404) == expected
    info = client.get("/api/runs").json()["runs"][0]
    assert (info["name"], info["ready"], info["layers"]) == ("copy", False, 1)
    moved.rename(run_copy)
    assert client.post("/api/translate", json=BODY).status_code == 200
    assert client.get("/api/runs").json()["runs"][0]["ready"] is True


@pytest.mark.parametrize("name", ["settings.json", "tokenizer.json", "model.safetensors"])
def test_damaged_run_is_404(run_copy, make_client, name):
    client = make_client(run_copy)
    (run_copy / name).write_bytes(b"{}")
    message = error_message(client.post("/api/translate", json=BODY), 404)
    assert message.startswith("the run 'copy' cannot be read at the moment: ")
    assert client.get("/api/runs").status_code == 200


def test_run_without_parameters_is_not_ready(run_copy, make_client):
    RunFolder(run_copy).model.unlink()
    client = make_client(run_copy)
    info = client.get("/api/runs").json()["runs"][0]
    assert info["ready"] is False and info["parameters"] > 0
    assert "yet" in error_message(client.post("/api/translate", json=BODY), 404)


def test_run_without_tokenizer_has_zero_parameters(run_copy):
    shutil.rmtree(run_copy / "checkpoints")
    RunFolder(run_copy).tokenizer.unlink()
    RunFolder(run_copy).model.unlink()
    assert RunRegistry([run_copy]).info("copy")["parameters"] == 0


def test_checkpoints_are_in_order_of_steps_with_the_final_one_last(client):
    checkpoints = client.get("/api/runs/tiny/checkpoints").json()["checkpoints"]
    steps = [checkpoint["step"] for checkpoint in checkpoints]
    assert checkpoints[0] == {"id": "step-0", "step": 0}
    assert {"id": "step-50", "step": 50} in checkpoints
    assert checkpoints[-1] == {"id": "final", "step": 60}
    assert steps == sorted(steps)


def test_checkpoint_is_loaded_by_its_id(tiny_run):
    registry, folder = RunRegistry([tiny_run]), RunFolder(tiny_run)
    for id, path in (("step-25", folder.snapshot(25)), ("final", folder.model)):
        expected = parameters(load(tiny_run, checkpoint=path))
        assert torch.equal(parameters(registry.load("tiny", id)), expected)


def test_unknown_checkpoint_is_404(tiny_run):
    with pytest.raises(HTTPException, match="has no checkpoint '../model'") as error:
        RunRegistry([tiny_run]).load("tiny", "../model")
    assert error.value.status_code == 404


def test_least_recently_used_model_is_evicted(tiny_run):
    registry = RunRegistry([tiny_run], max_loaded_models=2)
    final, first = registry.load("tiny"), registry.load("tiny", "step-0")
    assert registry.load("tiny") is final  # used again, so step-0 is the one to evict
    registry.load("tiny", "step-25")
    assert registry.load("tiny") is final
    assert registry.load("tiny", "step-0") is not first


def test_recurrent_run_has_one_head(run_copy):
    edit_settings(run_copy, lambda content: content["model"].update(kind="recurrent"))
    info = RunRegistry([run_copy]).info("copy")
    assert (info["kind"], info["heads"]) == ("recurrent", 1)


@pytest.mark.parametrize(
    "dataset", [None, {"name": "other", "language": "fr"}, {"name": "phrasebook"}, "phrasebook"]
)
def test_run_of_other_data_has_no_phrasebook(run_copy, dataset):
    edit_settings(run_copy, lambda content: content["origin"].update(dataset=dataset))
    assert RunRegistry([run_copy]).info("copy")["phrasebook"] is None


@pytest.mark.parametrize("origin", [None, {"texts": 7}, {"texts": {}}])
def test_run_with_damaged_origin_does_not_hide_other_runs(tiny_run, run_copy, make_client, origin):
    client = make_client(tiny_run, run_copy)
    edit_settings(run_copy, lambda content: content.update(origin=origin))
    response = client.get("/api/runs")
    assert response.status_code == 200, response.text
    assert [(run["name"], run["ready"]) for run in response.json()["runs"]] == [
        ("tiny", True),
        ("copy", False),
    ]
