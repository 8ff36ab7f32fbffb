"""The run that the package ships."""

import socket

import pytest

import regard
from regard.data.phrasebook import load_phrasebook
from regard.evaluation import bleu
from regard.runs import DEMO_MODEL, RunFolder, find_run, load, parameters

pytestmark = pytest.mark.usefixtures("unchecked")

SAMPLE = 60


@pytest.fixture(scope="module")
def folder():
    return RunFolder(find_run(DEMO_MODEL))


def test_shipped_model_translates_the_phrasebook_without_network(monkeypatch):
    def refuse(*arguments, **options):
        raise OSError("no network")

    monkeypatch.setattr(socket, "socket", refuse)
    run = regard.load("demo-model")
    pairs = load_phrasebook("fr", train=0).test[:SAMPLE]
    texts = [str(one) for one in run.translate([pair.source for pair in pairs])]
    assert bleu(texts, [pair.target for pair in pairs]) >= 90
    assert run.name == "demo-model"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("the cat", "le chat"),
        ("The big dog", "Le grand chien"),
        ("the dog eats an apple", "le chien mange une pomme"),
        ("Hello!", "Bonjour\u202f!"),
        ("thank you", "merci"),
        ("How are you?", "Comment vas-tu\u202f?"),
    ],
)
def test_shipped_model_translates_what_people_type_first(source, target):
    assert str(regard.load("demo-model").translate(source)) == target


def test_shipped_model_is_small_rounded_and_has_a_checksum(folder):
    assert sum(path.stat().st_size for path in folder.path.iterdir()) <= 2_000_000
    tensors, about = parameters.load(folder.model)  # verifies the checksum
    assert {str(tensor.dtype) for tensor in tensors.values()} == {"torch.float16"}
    assert about["validation_bleu"] >= 90
    assert next(load(DEMO_MODEL).model.parameters()).dtype.itemsize == 4


def test_shipped_model_is_a_run_of_the_phrasebook(folder):
    _, origin = folder.read_settings()
    assert origin["dataset"] == {"name": "phrasebook", "language": "fr", "split": "train"}
    assert "demo-model" in folder.model_card.read_text(encoding="utf-8")
    assert folder.log.exists() and folder.tokenizer.exists()


def test_existing_folder_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_run(DEMO_MODEL).is_absolute()
    (tmp_path / DEMO_MODEL).mkdir()
    assert not find_run(DEMO_MODEL).is_absolute()
    with pytest.raises(regard.RegardError, match="demo-model is not a run"):
        load(DEMO_MODEL)
    assert find_run(f"other/{DEMO_MODEL}").as_posix() == f"other/{DEMO_MODEL}"
