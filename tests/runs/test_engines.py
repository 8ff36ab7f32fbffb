"""Which engine translates with a run, and its converted model in the run folder."""

import json
import pickle
import shutil
from copy import deepcopy
from typing import NamedTuple

import pytest
import torch

import regard
from regard._support.extras import MissingExtraError
from regard.decoding.engines import ctranslate2_engine
from regard.models import Transformer
from regard.runs import engines
from regard.runs.engines import MANIFEST, choose_engine, converted_model, describe_engine

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra fast is not installed")

pytestmark = pytest.mark.usefixtures("unchecked")

TEXT = "The old cat sees the dog."


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def path(tiny_run, tmp_path):
    ignore = shutil.ignore_patterns("ctranslate2")  # other tests translate with the run
    return shutil.copytree(tiny_run, tmp_path / "run", ignore=ignore)


def test_auto_takes_ctranslate2_and_torch_without_it(path, monkeypatch):
    assert regard.load(path).engine.name == "ctranslate2"
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert regard.load(path).engine.name == "torch"


def test_auto_takes_torch_for_a_model_that_ctranslate2_cannot_represent(path, monkeypatch):
    run = regard.load(path)
    monkeypatch.setattr(engines, "unsupported_part", lambda model: "ALiBi positions")
    arguments = (run.model, run.tokenizers, None)
    assert choose_engine(*arguments).name == "torch"
    with pytest.raises(regard.RegardError, match="represent ALiBi positions of this model"):
        choose_engine(*arguments, "ctranslate2")
    with pytest.raises(regard.RegardError, match=r"it is int8: torch has no other.*ALiBi"):
        choose_engine(*arguments, "auto", "int8")


def test_engine_is_described_with_the_reason(path, monkeypatch):
    run = regard.load(path, quantization="int8")
    line = describe_engine(run.engine, run.model)
    assert line.startswith(
        "engine: CTranslate2Engine(quantization='int8'), since CTranslate2 is installed and can "
        "represent the model; torch searches prefixes"
    )
    with_torch = regard.load(path, engine="torch")
    assert describe_engine(with_torch.engine, with_torch.model, "torch") == (
        "engine: TorchEngine(), since the engine is torch"
    )
    monkeypatch.setattr(engines, "unsupported_part", lambda model: "ALiBi positions")
    assert describe_engine(with_torch.engine, with_torch.model) == (
        "engine: TorchEngine(), since CTranslate2 cannot represent ALiBi positions of this model"
    )
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert describe_engine(with_torch.engine, with_torch.model) == (
        "engine: TorchEngine(), since CTranslate2 is not installed (pip install 'regard[fast]')"
    )


class ModelOnGPU(Transformer):
    """A model that claims to be on a GPU."""

    @property
    def output_weight(self):
        return FakeParameter(torch.device("cuda", 0))


class FakeParameter(NamedTuple):
    device: torch.device


def test_model_on_a_gpu_is_not_translated_on_the_cpu(path, monkeypatch):
    run = regard.load(path)
    arguments = (run.model, run.tokenizers, None)
    monkeypatch.setattr(run.model, "__class__", ModelOnGPU)
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 0)
    engine = choose_engine(*arguments)
    assert engine.name == "torch"
    assert "CTranslate2 cannot use the device cuda:0" in describe_engine(engine, run.model)
    types = {"cpu": set(), "cuda": {"float32"}}
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda name, _: types[name])
    with pytest.raises(
        regard.RegardError, match="cannot use the device cuda:0; use engine='torch'"
    ):
        choose_engine(*arguments, "ctranslate2")
    with pytest.raises(regard.RegardError, match=r"this GPU supports \(float32\), but it is int8"):
        choose_engine(*arguments, "auto", "int8")
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    assert repr(choose_engine(*arguments)) == (
        "CTranslate2Engine(quantization='float32', device='cuda:0')"
    )


def test_ctranslate2_loads_the_model_on_the_device_it_is_given(path, monkeypatch):
    run, given = regard.load(path, engine="torch"), {}
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda *_: {"float32"})
    monkeypatch.setattr(ctranslate2, "Translator", lambda *_, **options: given.update(options))
    ctranslate2_engine.CTranslate2Engine(run.model, run.tokenizers, {}, device="cuda:1", threads=3)
    assert (given["device"], given["device_index"], given["inter_threads"]) == ("cuda", 1, 1)
    ctranslate2_engine.CTranslate2Engine(run.model, run.tokenizers, {}, threads=3)
    assert (given["device"], given["device_index"], given["inter_threads"]) == ("cpu", 0, 3)


def test_lengths_of_translations_are_limited(path):
    for engine in ("torch", "ctranslate2"):
        run = regard.load(path, engine=engine)
        for beam_size in (1, 3):
            long = run.translate(TEXT, min_length=30, max_length=40, beam_size=beam_size)
            assert 30 <= len(long.tokens) <= 40
            assert len(run.translate(TEXT, max_length=1, beam_size=beam_size).tokens) <= 1


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ({"min_length": -1}, "min_length must be 0 or more, but it is -1"),
        ({"max_length": 0}, "max_length must be 1 or more, but it is 0"),
        ({"min_length": 5, "max_length": 4}, "min_length must be at most max_length=4, but it is"),
        ({"prefix": "le chat", "max_length": 1}, "prefix must have at most max_length=1 tokens"),
    ],
)
def test_lengths_out_of_range_are_refused(path, lengths, message):
    with pytest.raises(regard.RegardError, match=message):
        regard.load(path).translate(TEXT, **lengths)


def test_engines_give_the_same_translation_and_trace(path):
    torch_run, run = (regard.load(path, engine=name) for name in ("torch", "ctranslate2"))
    assert str(run.translate(TEXT)) == str(torch_run.translate(TEXT))
    own, expected = run.trace(TEXT), torch_run.trace(TEXT)
    assert own.to_json() == expected.to_json()
    reports = [one.evaluate([TEXT], ["Le vieux chat voit le chien."]) for one in (run, torch_run)]
    assert reports[0] == reports[1]


def test_converted_model_is_kept_in_the_run_folder(path, monkeypatch):
    expected = regard.load(path).translate(TEXT)
    assert (path / "ctranslate2" / "model.bin").exists()
    monkeypatch.setattr(engines, "save_ctranslate2", None)  # not called again
    assert regard.load(path).translate(TEXT) == expected
    assert regard.load(path, quantization="int8").translate(TEXT).text == expected.text


@pytest.mark.parametrize("name", ["model.bin", "config.json", MANIFEST])
@pytest.mark.parametrize("damage", ["flip", "truncate", "delete"])
def test_damaged_converted_model_is_made_again(path, name, damage):
    expected = regard.load(path).translate(TEXT)
    file = path / "ctranslate2" / name
    intact = file.read_bytes()
    data = bytearray(intact)
    data[len(data) // 2] ^= 1
    if damage == "delete":
        file.unlink()
    else:
        file.write_bytes(data if damage == "flip" else intact[:-7])
    assert regard.load(path).translate(TEXT) == expected
    assert file.read_bytes() == intact


def test_converted_model_of_other_parameters_is_made_again(path):
    regard.load(path).translate(TEXT)
    manifest = (path / "ctranslate2" / MANIFEST).read_bytes()
    run = regard.load(path, checkpoint=0)
    converted_model(run.model, run.tokenizers, path / "ctranslate2")
    assert (path / "ctranslate2" / MANIFEST).read_bytes() != manifest
    expected = regard.load(path, engine="torch").translate(TEXT)
    assert regard.load(path).translate(TEXT).text == expected.text


def test_checkpoint_is_converted_in_memory(path):
    regard.load(path, checkpoint=0).translate(TEXT)
    assert not (path / "ctranslate2").exists()


def test_shipped_run_is_converted_in_memory_however_its_path_is_written(monkeypatch):
    shipped = regard.load("demo-model")
    monkeypatch.chdir(shipped.folder.path.parent)
    for path in ("demo-model", "../pretrained/demo-model", shipped.folder.path):
        regard.load(path).translate(TEXT)
        assert not shipped.folder.engine_cache.exists()


def test_folder_that_cannot_be_written_does_not_prevent_translation(path):
    (path / "ctranslate2").write_text("a file where the folder would be")
    assert regard.load(path).translate(TEXT).text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "torhc"}, "no engine is called 'torhc'. Did you mean 'torch'?"),
        ({"quantization": "int88"}, "no quantization is called 'int88'. Did you mean 'int8'?"),
        ({"engine": "torch", "quantization": "int8"}, "quantization must be float32, but it is"),
    ],
)
def test_wrong_name_is_refused_with_the_nearest(path, arguments, message):
    with pytest.raises(regard.RegardError) as caught:
        regard.load(path, **arguments)
    assert message in str(caught.value)


def test_quantization_that_the_cpu_lacks_is_refused_with_those_it_has(path, monkeypatch):
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda *device: {"float32"})
    with pytest.raises(regard.RegardError, match=r"this CPU supports \(float32\), but it is int8"):
        regard.load(path, quantization="int8")


def test_missing_ctranslate2_names_the_extra(path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingExtraError, match=r"ctranslate2.*regard\[fast\]"):
        regard.load(path, engine="ctranslate2")


def test_converted_model_that_another_user_wrote_is_not_read(path, tmp_path, monkeypatch):
    expected = regard.load(path).translate(TEXT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    folder = path / "ctranslate2"
    read = []
    monkeypatch.setattr(
        engines, "read_bounded", lambda file, _: read.append(file) or file.read_bytes()
    )
    assert regard.load(path).translate(TEXT) == expected
    assert read == [folder / MANIFEST]


def test_link_in_place_of_the_folder_is_not_followed(path, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (path / "ctranslate2").symlink_to(elsewhere)
    assert regard.load(path).translate(TEXT).text
    assert not any(elsewhere.iterdir())


def test_manifest_names_every_file(path):
    regard.load(path).translate(TEXT)
    folder = path / "ctranslate2"
    _, _, manifest = (folder / MANIFEST).read_text().partition("\n")
    named = {*json.loads(manifest)["files"], MANIFEST}
    assert {file.name for file in folder.iterdir()} == named


def test_scores_are_computed_when_they_are_read(path, monkeypatch):
    calls = []
    compute = ctranslate2_engine._BatchScores.of
    monkeypatch.setattr(
        ctranslate2_engine._BatchScores,
        "of",
        lambda self, row, rank: calls.append(row) or compute(self, row, rank),
    )
    translation = regard.load(path).translate(TEXT)
    assert not calls
    assert len(translation.token_log_probs) == len(translation.tokens) + 1
    assert translation.log_prob == pytest.approx(sum(translation.token_log_probs))
    assert len(calls) == 1


@pytest.mark.parametrize("duplicate", [deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_of_a_run_and_of_its_translations_agree_with_them(path, duplicate):
    run = regard.load(path, engine="ctranslate2")
    copy_before = duplicate(run)
    translation = run.translate(TEXT)
    copy_after = duplicate(run)
    assert copy_after.engine.name == "ctranslate2"
    for other in (copy_before.translate(TEXT), copy_after.translate(TEXT), duplicate(translation)):
        assert other == translation
