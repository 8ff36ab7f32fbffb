"""Run folders with links, pipes and devices in them: nothing outside of the folder is written."""

import os
import shutil

import pytest

import regard
from attacks.test_attacks import assert_command_refuses, watchdog
from helpers.tiny_corpus import TINY, tiny_corpus
from helpers.training import discard
from regard._support import files
from regard.errors import RegardError
from regard.runs import RunFolder, find_run
from regard.training import train

SECRET = "important"


@pytest.fixture
def outside(tmp_path):
    """A file of the user that a hostile folder links to."""
    path = tmp_path / "outside"
    path.write_text(SECRET)
    return path


def temp_of(path):
    """Return the name under which this process writes a file before it renames it."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


@pytest.fixture
def hostile_run(tmp_path):
    """A run of the demo model, whose author may put anything into its folder."""
    demo_model, is_cache = find_run("demo-model"), shutil.ignore_patterns("ctranslate2")
    path = shutil.copytree(demo_model, tmp_path / "run", ignore=is_cache)
    (path / "ctranslate2").mkdir()
    return path


@pytest.mark.parametrize("name", ["model.bin", "config.json", "manifest.txt"])
@pytest.mark.parametrize("is_temp", [False, True], ids=["file", "temporary file"])
def test_engine_cache_does_not_write_through_links(hostile_run, outside, name, is_temp):
    pytest.importorskip("ctranslate2")
    path = hostile_run / "ctranslate2" / name
    (temp_of(path) if is_temp else path).symlink_to(outside)
    translation = regard.load(hostile_run, engine="ctranslate2").translate("the old cat")
    assert translation.text
    assert outside.read_text() == SECRET
    assert path.is_file() and not path.is_symlink(), "the cache is written all the same"


@pytest.mark.parametrize("name", ["model.bin", "manifest.txt"])
def test_engine_cache_does_not_wait_for_pipes(hostile_run, name):
    pytest.importorskip("ctranslate2")
    os.mkfifo(hostile_run / "ctranslate2" / name)
    with watchdog():
        assert regard.load(hostile_run, engine="ctranslate2").translate("the old cat").text


def test_temporary_file_is_not_written_through_a_link(tmp_path, outside):
    path = tmp_path / "file"
    temp_of(path).symlink_to(outside)
    files.write_file(path, "new")
    assert (path.read_text(), outside.read_text()) == ("new", SECRET)


def test_temporary_file_that_is_a_pipe_is_replaced(tmp_path):
    path = tmp_path / "file"
    os.mkfifo(temp_of(path))
    with watchdog():
        files.write_file(path, "new")
    assert path.read_text() == "new"


ENTRIES = ["data", "data/train", "data/train/source.tokens", "checkpoints", "snapshots"]


@pytest.mark.parametrize("name", ENTRIES)
def test_training_refuses_links_out_of_the_folder(tiny_run, tmp_path, name):
    folder = RunFolder(shutil.copytree(tiny_run, tmp_path / "run"))
    folder.model_card.unlink()  # as if it were not finished
    path, outside = folder.path / name, tmp_path / "outside"
    if path.exists():
        shutil.move(path, outside)
    else:
        outside.mkdir()
    before = sorted(tmp_path.glob("outside/**/*"))
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(outside)
    with pytest.raises(RegardError, match=f"{path} must be a file of the run, but it is a link"):
        train(tiny_corpus(), folder.path, settings=[TINY], echo=discard)
    assert sorted(tmp_path.glob("outside/**/*")) == before


@pytest.mark.parametrize("name", ["model.safetensors", "checkpoints/parameters-4.safetensors"])
def test_training_refuses_pipes(tmp_path, name):
    path = tmp_path / "run" / name
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    with watchdog(), pytest.raises(RegardError, match=f"{path} must be .* but it is a pipe"):
        train(tiny_corpus(), tmp_path / "run", settings=[TINY], echo=discard)


@pytest.mark.parametrize("command", ["translate", "look", "export", "explore", "serve"])
def test_link_to_itself_is_not_a_run(tmp_path, command):
    path = tmp_path / "run"
    path.symlink_to(path)
    arguments = {"translate": ["a cat"], "look": ["a cat"], "export": ["--out", tmp_path / "out"]}
    message = f"{path} is not a run: it has no settings.json"
    assert_command_refuses(message, 0, command, path, *arguments.get(command, ()))
