import json
import shutil

import pytest
import torch

from regard.errors import RegardError
from regard.explorer import runs as shelf_file
from regard.explorer.errors import Refused
from regard.explorer.runs import Shelf, distinct
from regard.runs import RunFolder, load
from regard.runs import parameters as store


def weights(run):
    return torch.cat([weight.flatten() for weight in run.model.parameters()])


def test_a_shelf_tells_what_its_runs_are(trained, run):
    assert Shelf([trained]).facts("small") == {
        "name": "small",
        "kind": "transformer",
        "layers": 1,
        "heads": 2,
        "parameters": weights(run).numel(),
        "beam_size": 5,
        "phrasebook": "fr",
        "ready": True,
    }


def test_names_are_made_distinct_and_can_be_written():
    names = distinct(["run", "run", "run-2", "run", "", "\udcff"])
    assert names == ["run", "run-2", "run-2-2", "run-3", "run-4", "?"]


def test_only_named_runs_can_be_reached(trained, client, refused):
    shelf = Shelf([trained])
    for name in ("other", "", ".", "..", str(trained), f"../{trained.parent.name}/small", "small/"):
        with pytest.raises(Refused, match="no run is called .*; the runs named at start: 'small'"):
            shelf.run(name)
    for path in ("..%2f..%2fetc", "%2e%2e", "..%2Fsmall", "small%2f..%2fsmall", "small%00", "%ff"):
        for rest in ("log", "checkpoints"):
            refused(client.get(f"/api/runs/{path}/{rest}"), 404)


def test_what_is_no_run_is_refused_at_the_start(tmp_path):
    with pytest.raises(RegardError, match="is not a run"):
        Shelf([tmp_path])


def test_a_run_is_loaded_once_until_its_files_are_rewritten(copied):
    shelf = Shelf([copied])
    before = shelf.run("copy")
    assert shelf.run("copy") is before
    tensors, about = store.load(RunFolder(copied).model)
    store.save(RunFolder(copied).model, {name: t + 1 for name, t in tensors.items()}, about)
    after = shelf.run("copy")
    assert torch.equal(weights(after), weights(load(copied)))
    assert not torch.equal(weights(after), weights(before))


def test_a_run_that_was_removed_is_told_of_and_found_again_when_it_is_back(copied, refused, visit):
    client = visit(copied)
    form = {"run": "copy", "text": "the cat"}
    assert client.post("/api/translate", json=form).status_code == 200
    away = copied.rename(copied.with_name("away"))
    for response in (client.post("/api/translate", json=form), client.get("/api/runs/copy/log")):
        assert refused(response, 404) == (
            "the run 'copy' is no longer there: its folder was removed."
        )
    facts = client.get("/api/runs").json()["runs"][0]
    assert (facts["name"], facts["ready"], facts["layers"]) == ("copy", False, 1)
    away.rename(copied)
    assert client.post("/api/translate", json=form).status_code == 200
    assert client.get("/api/runs").json()["runs"][0]["ready"] is True


@pytest.mark.parametrize("name", ["settings.json", "tokenizer.json", "model.safetensors"])
def test_a_run_that_was_damaged_is_told_of(copied, refused, visit, name):
    client = visit(copied)
    (copied / name).write_bytes(b"{}")
    answer = client.post("/api/translate", json={"run": "copy", "text": "the cat"})
    assert refused(answer, 404).startswith("the run 'copy' cannot be read now: ")
    assert client.get("/api/runs").status_code == 200


def test_a_run_without_weights_is_not_ready(copied, refused, visit):
    RunFolder(copied).model.unlink()
    client = visit(copied)
    facts = client.get("/api/runs").json()["runs"][0]
    assert facts["ready"] is False and facts["parameters"] > 0
    answer = client.post("/api/translate", json={"run": "copy", "text": "the cat"})
    assert "has no weights yet" in refused(answer, 404)


def test_a_run_that_has_only_begun_is_shown_too(copied):
    shutil.rmtree(copied / "checkpoints")
    RunFolder(copied).tokenizer.unlink()
    RunFolder(copied).model.unlink()
    assert Shelf([copied]).facts("copy")["parameters"] == 0


def test_checkpoints_are_in_order_and_the_final_weights_last(trained, client):
    kept = client.get("/api/runs/small/checkpoints").json()["checkpoints"]
    steps = [each["step"] for each in kept]
    assert kept[0] == {"id": "step-0", "step": 0} and {"id": "step-50", "step": 50} in kept
    assert kept[-1] == {"id": "final", "step": 60}
    assert steps == sorted(steps)


def test_a_checkpoint_is_looked_through(trained, client, refused):
    shelf = Shelf([trained])
    for id, path in (
        ("step-25", RunFolder(trained).snapshot(25)),
        ("final", RunFolder(trained).model),
    ):
        assert torch.equal(weights(shelf.run("small", id)), weights(load(trained, weights=path)))
    with pytest.raises(Refused, match="has no checkpoint '../model'"):
        shelf.run("small", "../model")


def test_no_more_models_are_kept_than_wanted(trained, monkeypatch):
    monkeypatch.setattr(shelf_file, "LOADED", 2)
    shelf = Shelf([trained])
    first, _, _ = shelf.run("small"), shelf.run("small", "step-0"), shelf.run("small", "step-25")
    assert len(shelf._loaded) == 2
    assert shelf.run("small") is not first


def test_a_recurrent_run_has_one_head_and_no_phrasebook(copied):
    content = json.loads(RunFolder(copied).settings.read_text())
    content["model"]["kind"], content["origin"]["dataset"] = "recurrent", None
    RunFolder(copied).settings.write_text(json.dumps(content))
    facts = Shelf([copied]).facts("copy")
    assert (facts["kind"], facts["heads"], facts["phrasebook"]) == ("recurrent", 1, None)


@pytest.mark.parametrize("origin", [None, {"texts": 7}, {"texts": {}}])
def test_a_run_of_damaged_origin_does_not_hide_the_others(trained, copied, visit, origin):
    client = visit(trained, copied)
    content = json.loads(RunFolder(copied).settings.read_text())
    RunFolder(copied).settings.write_text(json.dumps(content | {"origin": origin}))
    told = client.get("/api/runs")
    assert told.status_code == 200, told.text
    assert [(run["name"], run["ready"]) for run in told.json()["runs"]] == [
        ("small", True),
        ("copy", False),
    ]
