import json
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from helpers.tiny_corpus import SMALL, corpus, write_tsv
from regard._support import files
from regard.config import parse_assignment
from regard.data import Corpus
from regard.errors import RegardError
from regard.runs import RunFolder, load, parameters
from regard.training import Interrupted, train
from regard.training.checkpoint import Checkpoints

pytestmark = pytest.mark.usefixtures("unchecked")


# sums are grouped by threads: as many as the tests themselves have
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def silent(line):
    pass


def small(out, *sets, echo=silent):
    return train(corpus(), out, updates=[*SMALL, *map(parse_assignment, sets)], echo=echo)


def weights(folder):
    return parameters.load(RunFolder(folder).model)[0]


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole") / "run"
    small(out)
    return out


def test_a_run_folder_explains_itself(whole):
    folder = RunFolder(whole)
    settings, origin = folder.read_settings()
    assert settings.train.steps == 12 and settings.train.label_smoothing == 0.1  # a default
    assert origin["texts"] == ["small"] and origin["pairs"] == 225
    entries = [json.loads(line) for line in folder.log.read_text().splitlines()]
    assert [entry["step"] for entry in entries] == [4, 8, 12]
    assert entries[-1]["valid_loss"] < entries[0]["valid_loss"]
    assert (
        "225 pairs" in folder.model_card.read_text()
        and "validation BLEU" in folder.model_card.read_text()
    )
    assert not [path for path in whole.rglob("*") if path.suffix in {".pt", ".pkl", ".tmp"}]


def test_the_same_call_gives_the_same_weights(whole, tmp_path):
    small(tmp_path / "again")
    assert same(weights(whole), weights(tmp_path / "again"))


def test_another_seed_gives_other_weights(whole, tmp_path):
    small(tmp_path / "other", "train.seed=4")
    assert not same(weights(whole), weights(tmp_path / "other"))


def test_a_finished_run_is_not_trained_again(whole):
    before, lines = weights(whole), []
    small(whole, echo=lines.append)
    assert same(before, weights(whole))
    assert any("is done already" in line for line in lines)


def test_a_finished_run_without_its_checkpoints_is_left_as_it_is(whole, tmp_path):
    copied, lines = tmp_path / "copied", []
    shutil.copytree(whole, copied)
    shutil.rmtree(copied / "checkpoints")
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    small(copied, echo=lines.append)
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before
    assert any("is done already, and its checkpoints are gone" in line for line in lines)


def test_a_folder_in_which_another_process_is_at_work_is_left_alone(tmp_path):
    with (
        files.lock_folder(tmp_path),
        pytest.raises(RegardError, match="is in use by another process"),
    ):
        small(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["model.heads=3"], r"\[model\] do not fit: width must be a multiple of heads"),
        (
            ["train.alignment_loss_weight=0.1", "train.alignment_layer=7"],
            "train.alignment_layer must be below 1, but it",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(tmp_path, sets, said):
    with pytest.raises(RegardError, match=said):
        small(tmp_path / "run", *sets)
    assert not (tmp_path / "run").exists()


def test_any_seed_is_a_seed(tmp_path):
    progress = small(tmp_path / "run", "train.seed=1718000000000", "train.steps=2")
    assert progress.step == 2


def test_a_run_that_was_stopped_goes_on_to_the_same_weights(whole, tmp_path, monkeypatch):
    """Ctrl-C after steps 2 and 7, the second of which is amid an epoch and a validation."""
    out = tmp_path / "stopped"
    for last in (2, 7):
        monkeypatch.setattr("regard.training.trainer.stop_requested", stop_after(out, last))
        with pytest.raises(Interrupted, match=rf"stopped at step {last}; the same command goes on"):
            small(out)
    monkeypatch.undo()
    lines = []
    small(out, echo=lines.append)
    assert "going on from step 7" in lines
    assert same(weights(whole), weights(out))
    logs = [RunFolder(run).log.read_text().splitlines() for run in (whole, out)]
    for one, two in zip(*logs, strict=True):
        timeless = [{**json.loads(line), "seconds": 0} for line in (one, two)]
        assert timeless[0] == timeless[1]


def stop_after(out, last):
    """Ask for a stop once step `last` is done, by counting how often it is asked."""
    from contextlib import contextmanager

    @contextmanager
    def requested():
        steps = Checkpoints(RunFolder(out).checkpoints).state_steps()
        done = steps[-1] if steps else 0

        def asked():
            nonlocal done
            done += 1
            return done >= last

        yield asked

    return requested


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_state_is_found_and_the_one_before_is_used(damage, whole, tmp_path, monkeypatch):
    out, lines = tmp_path / "torn", []
    monkeypatch.setattr("regard.training.trainer.stop_requested", stop_after(out, 9))
    with pytest.raises(Interrupted):
        small(out)
    monkeypatch.undo()
    last = Checkpoints(RunFolder(out).checkpoints).state_path(9)
    content = bytearray(last.read_bytes())
    if damage == "cut":
        del content[-100:]
    else:
        content[-100] ^= 1
    last.write_bytes(content)
    small(out, echo=lines.append)
    assert any("going back to the state before" in line for line in lines)
    assert "going on from step 8" in lines
    assert same(weights(whole), weights(out))


def killed(command, out, after, patience=60.0):
    """Start a training, and kill it without warning once something is there."""
    process = subprocess.Popen(command, stderr=-1, stdout=-1, env=ONE_THREAD)
    start = time.monotonic()
    while not after(out) and process.poll() is None and time.monotonic() - start < patience:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    return process.returncode


def command(tsv, out, *sets):
    flat = {f"{s}.{k}": v for s, keys in SMALL[0].items() for k, v in keys.items()}
    changes = [f"{name}={value}" for name, value in flat.items()] + list(sets)
    arguments = [part for change in changes for part in ("--set", change)]
    return [sys.executable, "-m", "regard", "train", str(tsv), "--out", str(out), *arguments]


def has_state(step):
    return lambda out: Checkpoints(RunFolder(out).checkpoints).state_path(step).exists()


def test_a_killed_process_goes_on_to_the_same_weights(tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    calm = tmp_path / "calm"
    longer = ("train.steps=40",)
    train(
        Corpus.from_files([tsv]),
        calm,
        updates=[*SMALL, *map(parse_assignment, longer)],
        echo=silent,
    )
    out = tmp_path / "killed"
    assert killed(command(tsv, out, *longer), out, has_state(8)) == -signal.SIGKILL
    assert "going on from step" in finished(command(tsv, out, *longer))
    assert same(weights(calm), weights(out))


@pytest.mark.slow
def test_a_compiled_model_learns_the_same(tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    plain, compiled = tmp_path / "plain", tmp_path / "compiled"
    calm = ("model.dropout=0.0",)
    train(
        Corpus.from_files([tsv]), plain, updates=[*SMALL, *map(parse_assignment, calm)], echo=silent
    )
    told = finished(command(tsv, compiled, *calm, "train.compile=true"))
    assert_close(weights(plain), weights(compiled))
    assert "recompile_limit" not in told  # or parts would no longer be compiled


@pytest.mark.slow
def test_twenty_kills_at_random_change_nothing(tmp_path):
    """Killed at any moment, while it prepares, trains, validates, saves or finishes."""
    tsv = write_tsv(tmp_path / "pairs.tsv")
    longer = ("train.steps=400", "train.validate_every=7")
    calm, out = tmp_path / "calm", tmp_path / "killed"
    train(
        Corpus.from_files([tsv]),
        calm,
        updates=[*SMALL, *map(parse_assignment, longer)],
        echo=silent,
    )
    chance = torch.Generator().manual_seed(0)
    for _ in range(20):
        delay = 2.0 + 4.0 * torch.rand((), generator=chance).item()
        end = time.monotonic() + delay
        killed(command(tsv, out, *longer), out, lambda _, end=end: time.monotonic() > end)
    finished(command(tsv, out, *longer))
    assert same(weights(calm), weights(out))


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_two_processes_learn_what_one_does(optimizer, tmp_path):
    """Without dropout the losses are the same to rounding, also of parts unlike in length."""
    tsv = write_tsv(tmp_path / "pairs.tsv")
    with tsv.open("a") as file:
        for words in (40, 30, 20):
            file.write(f"{'the dog ' * words}\t{'le chien ' * words}\n")
    plain = ("model.dropout=0.0", "train.steps=8", f"train.optimizer={optimizer}")
    alone, both = tmp_path / "alone", tmp_path / "both"
    changes = [*SMALL, *map(parse_assignment, plain)]
    train(Corpus.from_files([tsv]), alone, updates=changes, echo=silent)
    finished(crew_of_two(command(tsv, both, *plain)))
    losses = [
        [json.loads(line)["valid_loss"] for line in RunFolder(run).log.read_text().splitlines()]
        for run in (alone, both)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert_close(weights(alone), weights(both))


def test_a_run_goes_on_with_another_number_of_processes(tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    plain = ("model.dropout=0.0", "train.steps=16")
    calm, out = tmp_path / "calm", tmp_path / "killed"
    train(
        Corpus.from_files([tsv]), calm, updates=[*SMALL, *map(parse_assignment, plain)], echo=silent
    )
    assert killed(command(tsv, out, *plain), out, has_state(4)) == -signal.SIGKILL
    told = finished(crew_of_two(command(tsv, out, *plain)))
    assert "going on from step" in told
    assert_close(weights(calm), weights(out))


def assert_close(one, two):
    for name, tensor in one.items():
        if not name.endswith("key.bias"):  # which the softmax does not see: its gradient is noise
            torch.testing.assert_close(tensor, two[name], rtol=1e-3, atol=1e-4)


def crew_of_two(single):
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return [single[0], *torchrun, *single[1:]]


def finished(command):
    """Run a command to its good end; give what it said."""
    done = subprocess.run(command, capture_output=True, text=True, env=ONE_THREAD)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_lost_process_ends_the_job_with_a_sentence(tmp_path):
    tsv, out = write_tsv(tmp_path / "pairs.tsv"), tmp_path / "lost"
    crew = crew_of_two(command(tsv, out, "train.steps=100000"))
    process = subprocess.Popen(crew, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not has_state(4)(out) and time.monotonic() < deadline:
        time.sleep(0.05)
    ranks = [int(pid) for pid in _children(process.pid)]
    subprocess.run(["kill", "-9", str(ranks[-1])], check=True)
    _, told = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "another process of this training ended" in told


def _children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_loss_that_is_not_a_number_names_the_step_and_keeps_the_last_state(tmp_path):
    out = tmp_path / "wild"
    words = r"the loss of step \d+ is not a number, or not finite; the last good state is kept"
    with pytest.raises(RegardError, match=words):
        small(
            out,
            "train.learning_rate=1e30",
            "train.warmup=1",
            "train.max_grad_norm=0.0",
            "train.validate_every=9",
        )
    assert Checkpoints(RunFolder(out).checkpoints).state_steps() == []


@pytest.mark.parametrize("step", ["train.steps=1", "train.steps=2"])
def test_weights_that_a_step_ruins_are_never_saved(step, tmp_path):
    """The loss and gradient of the step itself are sound."""
    out, wild = (
        tmp_path / "wild",
        ["train.learning_rate=1e38", "train.warmup=0", "train.validate_every=1"],
    )
    with pytest.raises(RegardError, match=r"the validation loss of step 1 is not a number"):
        small(out, step, *wild)
    assert not RunFolder(out).model.exists()
    assert Checkpoints(RunFolder(out).checkpoints).state_steps() == []
    with pytest.raises(RegardError, match=r"a weight after step 1 is not a number"):
        small(tmp_path / "saved", "train.save_every=0", "train.validate_every=9", *wild[:2])
    assert Checkpoints(RunFolder(tmp_path / "saved").checkpoints).state_steps() == []


def test_states_of_a_training_that_had_to_go_back_do_not_outlive_those_it_makes(
    tmp_path, monkeypatch
):
    out, lines = tmp_path / "torn", []
    small(out, "train.steps=8")
    RunFolder(out).model_card.unlink()
    checkpoints = Checkpoints(RunFolder(out).checkpoints)
    assert checkpoints.state_steps() == [4, 8]
    for step in (4, 8):
        checkpoints.state_path(step).write_bytes(b"torn")
    monkeypatch.setattr("regard.training.trainer.stop_requested", stop_after(tmp_path / "no", 3))
    with pytest.raises(Interrupted):
        small(out, "train.steps=8", echo=lines.append)
    assert [line.rpartition("; ")[2] for line in lines if "torn" in line.rpartition("; ")[0]] == [
        "going back to the state before",
        "starting anew",
    ]
    assert checkpoints.state_steps() == [3]


def test_a_kill_while_the_settings_are_written_leaves_nothing_in_the_way(whole, tmp_path):
    drafts = [tmp_path / f".settings.json.{number}.tmp" for number in (7, 123)]
    for draft in drafts:
        draft.write_text("{")
    small(tmp_path)
    assert same(weights(whole), weights(tmp_path))
    assert not any(draft.exists() for draft in drafts)


def test_weights_of_a_killed_process_are_swept_from_a_run(whole, tmp_path):
    copied = tmp_path / "copied"
    shutil.copytree(whole, copied)
    draft = copied / ".model.safetensors.9.tmp"
    draft.write_bytes(b"half")
    small(copied)
    assert not draft.exists()


def test_guidance_needs_alignments(tmp_path):
    with pytest.raises(RegardError, match="train.guide needs pairs with alignments, but there are"):
        small(tmp_path / "run", "train.alignment_loss_weight=0.5")
    assert not (tmp_path / "run").exists()


def test_validation_pairs_are_read_before_anything_is_written(tmp_path):
    write_tsv(tmp_path / "pairs.tsv")
    (tmp_path / "valid.tsv").write_text("a\tb\nno tab\n")
    some, valid = (Corpus.from_files([tmp_path / name]) for name in ("pairs.tsv", "valid.tsv"))
    with pytest.raises(RegardError, match="valid.tsv must have a tab .* but line 2 has none"):
        train(some, tmp_path / "run", valid=valid, updates=SMALL, echo=silent)
    assert not (tmp_path / "run").exists()


def test_a_folder_of_another_run_is_left_alone(whole):
    before = RunFolder(whole).settings.read_text()
    with pytest.raises(RegardError, match=r"is a run with model.width = 16, not 32; --out with an"):
        small(whole, "model.width=32")
    with pytest.raises(RegardError, match="is a run with other texts"):
        train(
            Corpus.from_pairs("others", [*corpus().read()][1:]), whole, updates=SMALL, echo=silent
        )
    assert RunFolder(whole).settings.read_text() == before


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(RegardError, match="exists and is not a run; --out must be a new folder"):
        small(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_time_box_ends_the_training_and_the_plan_follows_the_clock(tmp_path):
    start = time.monotonic()
    progress = small(tmp_path / "boxed", "train.minutes=0.05", "train.steps=1")
    assert progress.planned > 12
    assert 1.0 < progress.seconds < 8.0
    assert time.monotonic() - start < 30


def test_patience_ends_a_training_without_progress(tmp_path):
    progress = small(
        tmp_path / "r", "train.patience=1", "train.learning_rate=0.0", "train.steps=100"
    )
    assert progress.finished == "no progress in 1 validations"
    assert progress.step == 8


def test_bleu_can_be_the_judge(tmp_path):
    progress = small(tmp_path / "judged", "train.validation_metric=bleu")
    entries = [
        json.loads(line) for line in RunFolder(tmp_path / "judged").log.read_text().splitlines()
    ]
    assert progress.best == -max(entry["bleu"] for entry in entries)


def test_muon_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    calm, out = tmp_path / "calm", tmp_path / "stopped"
    small(calm, "train.optimizer=muon")
    monkeypatch.setattr("regard.training.trainer.stop_requested", stop_after(out, 7))
    with pytest.raises(Interrupted):
        small(out, "train.optimizer=muon")
    monkeypatch.undo()
    small(out, "train.optimizer=muon")
    assert same(weights(calm), weights(out))


def test_the_model_learns_the_small_language(tmp_path):
    from regard.decoding import translate

    small(tmp_path / "run", "train.steps=150", "model.width=32", "model.dropout=0.0")
    run = load(tmp_path / "run")
    found = translate(run.model, run.tokenizers, ["the red dog hears the boat"])
    assert found[0][0].text == "le chien rouge entend le bateau"


def test_the_log_tells_how_many_target_tokens_are_learned_a_second(tmp_path, monkeypatch):
    """By a clock that strikes twice a step; the run is stopped between two lines, and goes on."""
    out, learned = tmp_path / "run", {}

    def listen(bar, step, planned, loss, tokens):
        learned[step] = tokens

    monkeypatch.setattr("regard.training.trainer.Bar.step", listen)
    monkeypatch.setattr("regard.training.loop.time", SimpleNamespace(monotonic=count().__next__))
    monkeypatch.setattr("regard.training.trainer.stop_requested", stop_after(out, 33))
    sets = ("train.steps=60", "train.validate_every=60")
    with pytest.raises(Interrupted):
        small(out, *sets)
    monkeypatch.setattr("regard.training.trainer.stop_requested", stop_after(out, 99))
    small(out, *sets)
    entries = [json.loads(line) for line in RunFolder(out).log.read_text().splitlines()]
    told = {
        entry["step"]: entry["tokens_per_second"] for entry in entries if "learning_rate" in entry
    }
    assert list(told) == [20, 40, 60]
    for last, steps in [(20, 20), (40, 7), (60, 20)]:
        tokens = sum(learned[step] for step in range(last - steps + 1, last + 1))
        assert told[last] == pytest.approx(tokens / (2 * steps), rel=0.1)


def test_snapshots_show_how_the_weights_came_about_and_change_nothing(whole, tmp_path, monkeypatch):
    monkeypatch.setattr("regard.training.trainer.FIRST_SNAPSHOT", 3)
    small(tmp_path / "run", "train.snapshots=true")
    kept = RunFolder(tmp_path / "run").snapshots
    assert list(kept) == [0, 3, 6, 12]
    assert same(weights(tmp_path / "run"), weights(whole)) and not RunFolder(whole).snapshots
    last = Checkpoints(RunFolder(whole).checkpoints).parameters_path(12)
    assert same(parameters.load(kept[12])[0], parameters.load(last)[0])
    assert not same(parameters.load(kept[0])[0], parameters.load(kept[3])[0])


def test_the_log_tells_the_loss_between_validations(tmp_path):
    small(tmp_path / "run", "train.steps=50", "train.validate_every=30", "train.schedule=constant")
    lines = RunFolder(tmp_path / "run").log.read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert [entry["step"] for entry in entries] == [20, 30, 40, 50]
    told = {entry["step"]: entry for entry in entries}
    assert told[40]["loss"] < told[20]["loss"] and told[40]["learning_rate"] == pytest.approx(5e-3)
    assert told[20]["seconds"] < told[40]["seconds"]
    assert "valid_loss" in told[30] and "valid_loss" not in told[40]


def test_sentences_longer_than_the_table_of_positions_are_refused_before_the_start(tmp_path):
    learned = ("model.positions=learned", "model.max_positions=40")
    words = (
        "model.max_positions must be 129 or more.*but it is 40; data.max_length=39 would do, too"
    )
    with pytest.raises(RegardError, match=words):
        small(tmp_path / "run", *learned)
    assert not (tmp_path / "run").exists()
    small(tmp_path / "run", *learned, "data.max_length=39", "train.steps=1")
    assert RunFolder(tmp_path / "run").model_card.exists()
