"""1,000 damaged files of a run, of every kind: each is refused by name, or made again with a line.

A copy of a run has one file damaged at a time: flipped bits, truncation, extension, a block of
zeros, or the file of the same name of another run. The model converted for CTranslate2 is a cache:
it is converted again without a line, and translates the same.
"""

import shutil
from random import Random

import pytest

from helpers.tiny_corpus import TINY, tiny_corpus
from helpers.training import discard
from regard.errors import RegardError
from regard.models import build
from regard.runs import RunFolder, load, parameters
from regard.training import Checkpoints, train
from regard.training.distributed import Distributed
from regard.training.optim import build_optimizer
from regard.training.preparation import open_data, prepare_data

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked")]

CASES, PARTS = 1000, 4
TEXT = "the old cat sees the dog"
DAMAGES = ("flipped bit", "truncated", "extended", "zeroed block", "of another run")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two finished runs that differ in their seed."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        settings = [TINY, {"train": {"snapshots": True, "steps": 30, "seed": seed}}]
        run = train(tiny_corpus(), folder / str(seed), settings=settings, echo=discard)
        translate_converted(run.folder)
    return RunFolder(folder / "1"), RunFolder(folder / "2")


def damage(kind, data, other, random):
    """Return a damaged copy of some bytes; the same bytes if it cannot be damaged that way."""
    copy = bytearray(data)
    if kind == "flipped bit" and data:
        copy[random.randrange(len(copy))] ^= 1 << random.randrange(8)
    elif kind == "truncated" and data:
        del copy[random.randrange(len(copy)) :]
    elif kind == "extended":
        copy += random.choice([b"\0", b"\n", random.randbytes(9), bytes(data) or b"\0"])
    elif kind == "zeroed block" and data:
        start = random.randrange(len(copy))
        copy[start : start + 512] = bytes(len(copy[start : start + 512]))
    elif kind == "of another run":
        copy[:] = other
    return bytes(copy)


def translate_converted(folder):
    """Translate with the converted model, which is kept in the run folder."""
    translation = load(folder.path, engine="ctranslate2").translate(TEXT)
    return translation.text, translation.log_prob


class Reader:
    """Reads each file of a run as the program does, and collects what is reported."""

    def __init__(self, folder):
        self.folder, (self.config, _) = folder, folder.read_settings()
        self.data = open_data(folder, self.config)
        self.model = build(self.config.model, self.data.tokenizers.vocab_sizes)
        self.translation = translate_converted(folder)
        self.optimizer = build_optimizer(self.model, self.config.train, Distributed())

    def read(self, path, lines):
        """Read a file; append reports to `lines`; raise RegardError if it is refused."""
        folder, name = self.folder, path.name
        if path.parent.parent == folder.data:
            prepare_data(folder, self.config, tiny_corpus(), None, 225, lines.append)
        elif path.parent == folder.checkpoints:
            step = int(path.stem.rpartition("-")[2])
            checkpoints = Checkpoints(folder.checkpoints, self.data.identity)
            if step == checkpoints.state_steps()[-1]:
                checkpoints.resume(self.model, self.optimizer, lines.append)
            else:
                parameters.load(path, {**self.data.identity, "step": step})
        elif name.startswith("step-"):
            load(folder.path, checkpoint=path)
        elif path == folder.log:
            folder.read_log()
        elif path.parent == folder.engine_cache:
            if translate_converted(folder) == self.translation:
                lines.append(f"{name} was converted again")
        else:
            load(folder.path)


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_files_are_refused_or_made_again(part, runs, tmp_path):
    random = Random(part)
    folder = RunFolder(shutil.copytree(runs[0].path, tmp_path / "run"))
    reader = Reader(folder)
    files = sorted(path for path in folder.path.rglob("*") if path.is_file())
    files.remove(folder.model_card)  # for people: its content is not read
    original = {path: path.read_bytes() for path in files}
    failures, cases = [], 0
    while cases < CASES // PARTS:
        path, kind = files[cases % len(files)], random.choice(DAMAGES)
        twin = runs[1].path / path.relative_to(folder.path)
        damaged = damage(kind, original[path], twin.read_bytes(), random)
        if damaged == original[path]:
            continue
        cases += 1
        path.write_bytes(damaged)
        lines = []
        try:
            reader.read(path, lines)
        except RegardError as error:
            lines.append(str(error))
        if not any(path.name in line and len(line.splitlines()) == 1 for line in lines):
            failures.append((path.name, kind, lines))
        is_remade = {folder.data, folder.engine_cache} & {*path.parents}
        if is_remade and path.read_bytes() != original[path]:
            failures.append((path.name, kind, "not made again"))
        path.write_bytes(original[path])
    assert not failures, f"{len(failures)} of {cases} failed"


def test_every_file_of_a_run_is_covered(runs):
    """A new kind of file must be read by `Reader`, too."""
    names = {path.relative_to(runs[0].path).as_posix() for path in runs[0].path.rglob("*.*")}
    assert {name.rstrip("0123456789").partition("-")[0] for name in names} == {
        "README.md",
        "checkpoints/parameters",
        "ctranslate2/config.json",
        "ctranslate2/manifest.txt",
        "ctranslate2/model.bin",
        "ctranslate2/shared_vocabulary.json",
        "checkpoints/state",
        *(
            f"data/{part}/{name}"
            for part in ("train", "valid")
            for name in (
                "metadata.json",
                *(f"{c}.{e}" for c in ("source", "target", "links") for e in ("tokens", "starts")),
            )
        ),
        "log.jsonl",
        "model.safetensors",
        "settings.json",
        "snapshots/step",
        "tokenizer.json",
    }
