import re
import shutil
import time

import pytest
import torch

from helpers.tiny_corpus import TINY, tiny_corpus, tiny_pairs, write_tsv
from helpers.training import are_equal, checkpoints_of, discard, load_parameters, train_tiny
from regard._support import files
from regard.data import Corpus
from regard.decoding import translate
from regard.errors import RegardError
from regard.runs import Run, RunFolder, load, parameters
from regard.training import Callback, train

pytestmark = [pytest.mark.usefixtures("unchecked"), pytest.mark.train]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run that was trained without interruption."""
    out = tmp_path_factory.mktemp("finished") / "run"
    train_tiny(out)
    return out


def log_of(out):
    *entries, end = RunFolder(out).read_log()
    assert end["stop_reason"]
    return entries


def contents(out):
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_run_folder_has_settings_log_card_and_no_pickle(finished):
    folder = RunFolder(finished)
    config, origin = folder.read_settings()
    assert config.train.steps == 12 and config.train.label_smoothing == 0.1  # a default
    assert origin["texts"] == ["tiny"] and origin["pairs"] == 225 and origin["dataset"] is None
    log = log_of(finished)
    assert [entry["step"] for entry in log] == [4, 8, 12]
    assert log[-1]["valid_loss"] < log[0]["valid_loss"]
    card = folder.model_card.read_text()
    assert "225 pairs" in card and "validation BLEU" in card
    assert not [path for path in finished.rglob("*") if path.suffix in {".pt", ".pkl", ".tmp"}]


def test_selected_parameters_are_written_to_the_run(finished):
    tensors, about = parameters.load(RunFolder(finished).model)
    assert about["selection"] == "step 12"
    assert about["validation_loss"] == pytest.approx(log_of(finished)[-1]["valid_loss"], rel=1e-5)
    assert 0 <= about["validation_bleu"] <= 100
    checkpoint = checkpoints_of(finished).parameters_path(12)
    assert are_equal(tensors, parameters.load(checkpoint)[0])


def test_train_returns_the_run_and_reads_files(finished, tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    run = train(str(tsv), tmp_path / "run", settings=TINY, echo=discard)
    assert isinstance(run, Run) and run.name == "run" and not run.model.training
    assert are_equal(load_parameters(tmp_path / "run"), load_parameters(finished))


def test_settings_override_the_preset_and_minutes_override_both(tmp_path):
    with pytest.raises(RegardError, match="no preset is called 'multi30'"):
        train(tiny_corpus(), tmp_path / "run", preset="multi30", echo=discard)
    run = train(
        tiny_corpus(),
        tmp_path / "run",
        preset="multi30k",
        minutes=0.001,
        settings=[TINY, {"train": {"minutes": 5.0}}],
        echo=discard,
    )
    assert run.settings.train.minutes == 0.001
    assert run.settings.model.width == 16  # of the settings
    assert run.settings.train.optimizer == "muon"  # of the preset


def test_dataset_of_the_corpus_is_recorded(tmp_path):
    dataset = {"name": "phrasebook", "language": "fr", "split": "train"}
    train_tiny(tmp_path / "run", "train.steps=1", corpus=tiny_corpus("some", dataset))
    assert RunFolder(tmp_path / "run").read_settings()[1]["dataset"] == dataset


def test_status_lines_name_sizes_steps_and_result(tmp_path):
    lines = []
    train_tiny(tmp_path / "run", echo=lines.append)
    folder = RunFolder(tmp_path / "run")
    run = load(folder.path)
    count = sum(parameter.numel() for parameter in run.model.parameters())
    size = len(run.tokenizers.target)
    assert lines[:3] == [
        f"creating {folder.path}: 225 pairs",
        "205 training pairs, 20 validation pairs",
        f"transformer, {count:,} parameters, vocabulary of {size}",
    ]
    assert lines[3].startswith("at most 12 steps, about ")
    assert lines[4].startswith("step 4, epoch 1, ")
    assert re.fullmatch(
        r"finished after 12 steps and \d+ s: the last step was reached; parameters: step 12; "
        f"see {re.escape(str(folder.model_card))}",
        lines[-1],
    )


def test_status_line_counts_pairs_not_segmentations_with_bpe_dropout(tmp_path):
    lines = []
    sets = ("data.bpe_dropout_samples=3", "train.steps=1")
    train_tiny(tmp_path / "run", *sets, echo=lines.append)
    expected = "205 training pairs (3 BPE-dropout segmentations of each), 20 validation pairs"
    assert lines[1] == expected


def test_same_call_gives_the_same_parameters(finished, tmp_path):
    train_tiny(tmp_path / "again")
    assert are_equal(load_parameters(finished), load_parameters(tmp_path / "again"))


def test_another_seed_gives_other_parameters(finished, tmp_path):
    train_tiny(tmp_path / "other", "train.seed=4")
    assert not are_equal(load_parameters(finished), load_parameters(tmp_path / "other"))


def test_any_64_bit_seed_works(tmp_path):
    assert train_tiny(tmp_path / "run", "train.seed=1718000000000", "train.steps=2").step == 2


def test_finished_run_is_not_trained_again(finished):
    before, lines = load_parameters(finished), []
    train_tiny(finished, echo=lines.append)
    assert are_equal(before, load_parameters(finished))
    assert any("is already finished" in line for line in lines)


def test_finished_run_without_checkpoints_is_left_unchanged(finished, tmp_path):
    copy, lines = tmp_path / "copy", []
    shutil.copytree(finished, copy)
    shutil.rmtree(copy / "checkpoints")
    before = contents(copy)
    train_tiny(copy, echo=lines.append)
    assert contents(copy) == before
    assert any("is already finished, and its checkpoints were deleted" in line for line in lines)


def test_folder_locked_by_another_process_is_refused(tmp_path):
    with (
        files.lock_folder(tmp_path),
        pytest.raises(RegardError, match="is in use by another process"),
    ):
        train_tiny(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["model.heads=3"], r"\[model\] do not fit: model.width must be a multiple of model.heads"),
        (
            ["train.alignment_loss_weight=0.1", "train.alignment_layer=7"],
            "train.alignment_layer must be below 1, but it is 7",
        ),
        (
            ["train.alignment_loss_weight=0.5"],
            "train.alignment_loss_weight needs pairs with alignments, but there are none",
        ),
        (
            ["model.positions=learned", "model.max_positions=40"],
            "model.max_positions must be 129 or more.*but it is 40; data.max_length=39 would also",
        ),
    ],
)
def test_settings_that_cannot_be_trained_are_refused_before_writing(tmp_path, assignments, message):
    with pytest.raises(RegardError, match=message):
        train_tiny(tmp_path / "run", *assignments)
    assert not (tmp_path / "run").exists()


def test_learned_positions_train_up_to_the_maximum_length(tmp_path):
    sets = ("model.positions=learned", "model.max_positions=40", "data.max_length=39")
    train_tiny(tmp_path / "run", *sets, "train.steps=1")
    assert RunFolder(tmp_path / "run").model_card.exists()


def test_damaged_validation_file_is_refused_before_writing(tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    valid = tmp_path / "valid.tsv"
    valid.write_text("a\tb\nno tab\n")
    with pytest.raises(RegardError, match="valid.tsv must have a tab .* but line 2 has none"):
        train(tsv, tmp_path / "run", valid=valid, settings=TINY, echo=discard)
    assert not (tmp_path / "run").exists()


def test_missing_file_is_refused_before_writing(tmp_path):
    with pytest.raises(RegardError, match=r"cannot read .*missing\.tsv"):
        train(tmp_path / "missing.tsv", tmp_path / "run", echo=discard)
    assert not (tmp_path / "run").exists()


def test_alignments_of_a_corpus_object_are_refused(tmp_path):
    with pytest.raises(RegardError, match=r"alignments= is a file that belongs to files of pairs"):
        train(tiny_corpus(), tmp_path / "run", alignments=tmp_path / "links", echo=discard)
    assert not (tmp_path / "run").exists()


def test_alignment_file_enables_guided_alignment(tmp_path):
    tsv = write_tsv(tmp_path / "pairs.tsv")
    links = tmp_path / "links.txt"
    links.write_text("0-0 1-2 2-1 3-3 4-4 5-5\n" * 225)
    updates = [TINY, {"train": {"steps": 1}}]
    run = train(tsv, tmp_path / "run", alignments=links, settings=updates, echo=discard)
    assert run.settings.train.alignment_loss_weight == 0.05
    assert RunFolder(tmp_path / "run").read_settings()[1]["texts"] == [str(tsv), str(links)]


def test_folder_of_another_run_is_left_unchanged(finished):
    before = contents(finished)
    message = r"is a run with model.width = 16, not 32; out= with another folder would"
    with pytest.raises(RegardError, match=message):
        train_tiny(finished, "model.width=32")
    with pytest.raises(RegardError, match="is a run with another corpus"):
        train_tiny(finished, corpus=Corpus.from_pairs("others", tiny_pairs()[1:]))
    assert contents(finished) == before


def test_folder_of_something_else_is_left_unchanged(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(RegardError, match="exists and is not a run; out= must be a new folder"):
        train_tiny(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_temporary_settings_of_a_killed_process_do_not_block_a_new_run(finished, tmp_path):
    temporary = [tmp_path / f".settings.json.{number}.tmp" for number in (7, 123)]
    for path in temporary:
        path.write_text("{")
    train_tiny(tmp_path)
    assert are_equal(load_parameters(finished), load_parameters(tmp_path))
    assert not any(path.exists() for path in temporary)


def test_temporary_parameters_of_a_killed_process_are_removed(finished, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    temporary = copy / ".model.safetensors.9.tmp"
    temporary.write_bytes(b"half")
    train_tiny(copy)
    assert not temporary.exists()


def test_diverged_loss_names_the_step_and_writes_no_checkpoint(tmp_path):
    sets = ("learning_rate=1e30", "warmup=1", "max_grad_norm=0.0", "validate_every=9")
    message = r"the loss of step \d+ is not finite; the last checkpoint is kept"
    with pytest.raises(RegardError, match=message):
        train_tiny(tmp_path / "run", *(f"train.{setting}" for setting in sets))
    assert checkpoints_of(tmp_path / "run").state_steps() == []


@pytest.mark.parametrize("steps", [1, 2])
def test_parameters_that_a_step_ruined_are_never_saved(steps, tmp_path):
    """Loss and gradient of the step itself are finite."""
    wild = ("train.learning_rate=1e38", "train.warmup=0", f"train.steps={steps}")
    with pytest.raises(RegardError, match=r"the validation loss of step 1 is not finite"):
        train_tiny(tmp_path / "validated", *wild, "train.validate_every=1")
    assert not RunFolder(tmp_path / "validated").model.exists()
    assert checkpoints_of(tmp_path / "validated").state_steps() == []


def test_ruined_parameters_are_noticed_before_a_checkpoint(tmp_path):
    wild = ("train.learning_rate=1e38", "train.warmup=0", "train.validate_every=9")
    with pytest.raises(RegardError, match=r"a parameter after step 1 is not finite"):
        train_tiny(tmp_path / "run", *wild, "train.save_every=0")
    assert checkpoints_of(tmp_path / "run").state_steps() == []


@pytest.mark.train
def test_time_limit_ends_training_and_sets_the_number_of_steps(tmp_path):
    start = time.monotonic()
    state = train_tiny(tmp_path / "run", "train.minutes=0.05", "train.steps=1")
    assert state.max_steps > 12
    assert 1.0 < state.seconds < 8.0
    assert time.monotonic() - start < 30


def test_early_stopping_without_improvement(tmp_path):
    sets = ("train.patience=1", "train.learning_rate=0.0", "train.steps=100")
    state = train_tiny(tmp_path / "run", *sets)
    assert state.stop_reason == "early stopping: no improvement in 1 validation"
    assert state.step == 8


def test_bleu_can_be_the_validation_metric(tmp_path):
    state = train_tiny(tmp_path / "run", "train.validation_metric=bleu")
    assert state.best_metric == -max(entry["bleu"] for entry in log_of(tmp_path / "run"))


@pytest.mark.train
def test_model_learns_the_tiny_language(tmp_path):
    train_tiny(tmp_path / "run", "train.steps=150", "model.width=32", "model.dropout=0.0")
    run = load(tmp_path / "run")
    result = translate(run.model, run.tokenizers, ["the red dog hears the boat"])
    assert result[0][0].text == "le chien rouge entend le bateau"


@pytest.mark.train
def test_log_has_loss_and_learning_rate_between_validations(tmp_path):
    sets = ("train.steps=50", "train.validate_every=30", "train.schedule=constant")
    train_tiny(tmp_path / "run", *sets)
    log = {entry["step"]: entry for entry in log_of(tmp_path / "run")}
    assert list(log) == [20, 30, 40, 50]
    assert log[40]["loss"] < log[20]["loss"]
    assert log[40]["learning_rate"] == pytest.approx(5e-3)
    assert log[20]["seconds"] < log[40]["seconds"]
    assert "valid_loss" in log[30] and "valid_loss" not in log[40]


def test_snapshots_are_kept_and_change_nothing(finished, tmp_path):
    out = tmp_path / "run"
    train_tiny(out, "train.snapshots=true", "train.steps=25", "train.validate_every=25")
    snapshots = RunFolder(out).snapshots
    assert list(snapshots) == [0, 25] and not RunFolder(finished).snapshots
    last = checkpoints_of(out).parameters_path(25)
    first, final = (parameters.load(path)[0] for path in snapshots.values())
    assert are_equal(final, parameters.load(last)[0])
    assert not are_equal(first, final)


def test_user_callbacks_are_called_and_change_nothing(finished, tmp_path):
    class Steps(Callback):
        def __init__(self):
            self.steps = []

        def on_step(self, state, result):
            self.steps.append(state.step)

    callback = Steps()
    train(tiny_corpus(), tmp_path, settings=TINY, callbacks=[callback], echo=discard)
    assert callback.steps == list(range(1, 13))
    assert are_equal(load_parameters(tmp_path), load_parameters(finished))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_modes_of_the_caller_do_not_matter_and_its_random_state_is_kept(finished, tmp_path, mode):
    before = torch.get_rng_state()
    with mode():
        train_tiny(tmp_path / "run")
        assert not torch.is_grad_enabled()
    assert torch.get_rng_state().equal(before)
    assert are_equal(load_parameters(tmp_path / "run"), load_parameters(finished))
