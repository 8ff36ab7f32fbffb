"""All processes of a run raise the same line when they were started differently."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier

import pytest

from regard.config import RunConfig
from regard.errors import RegardError, SharedError
from regard.runs import RunFolder
from regard.training.agreement import check_same_command, check_same_state, check_shared_folder
from regard.training.distributed import Distributed
from regard.training.setup import CorpusSummary
from regard.training.train_state import TrainState

HOSTS = ("host-a", "host-b")


@dataclass(frozen=True)
class ThreadGroup(Distributed):
    """Two threads that exchange values as two processes would."""

    values: list = None
    barrier: Barrier = None

    def gather(self, value):
        self.values[self.rank] = json.dumps(value)
        self.barrier.wait(20)
        values = [json.loads(text) for text in self.values]
        self.barrier.wait(20)
        return values


def run_both(check, *arguments, hosts=HOSTS):
    """Call a check in both processes, with the arguments of each; return their error messages."""
    values, barrier = [None, None], Barrier(2)
    groups = [
        ThreadGroup(rank, 2, hosts=hosts, values=values, barrier=barrier) for rank in range(2)
    ]
    with ThreadPoolExecutor(2) as pool:
        futures = [
            pool.submit(check, group, *own)
            for group, own in zip(groups, zip(*arguments, strict=True), strict=True)
        ]
        problems = [future.exception() for future in futures]
    assert all(problem is None or isinstance(problem, SharedError) for problem in problems)
    return [None if problem is None else str(problem) for problem in problems]


def summaries(*pairs_and_fingerprints):
    return [
        CorpusSummary(pairs, False, fingerprint) for pairs, fingerprint in pairs_and_fingerprints
    ]


def test_equal_commands_agree():
    corpora = summaries((50, "abc"), (7, "def"))
    assert run_both(check_same_command, [RunConfig()] * 2, [corpora] * 2) == [None, None]


def test_first_different_setting_is_named_with_both_hosts():
    configs = [RunConfig(), RunConfig.from_dict({"train": {"seed": 5}})]
    line, other = run_both(check_same_command, configs, [summaries((50, "abc"))] * 2)
    assert line == other
    assert line == (
        f"train.seed must be the same on all hosts, but it is {RunConfig().train.seed} on host-a "
        "(rank 0) and 5 on host-b (rank 1); run the same command on all hosts"
    )


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ([(49, "xyz")], "the training pairs must be the same on all hosts, but there are 50 pairs"),
        ([(50, "xyz")], "and 50 pairs with other texts on host-b (rank 1)"),
        ([(50, "abc"), (7, "def")], "validation pairs must be given on all hosts or on none"),
    ],
    ids=["number", "texts", "validation"],
)
def test_different_corpora_are_named(second, expected):
    corpora = [summaries((50, "abc")), summaries(*second)]
    line, other = run_both(check_same_command, [RunConfig()] * 2, corpora)
    assert line == other
    assert expected in line


def test_processes_of_one_host_are_called_by_rank():
    configs = [RunConfig(), RunConfig.from_dict({"train": {"seed": 5}})]
    line, _ = run_both(
        check_same_command, configs, [summaries((50, "abc"))] * 2, hosts=("host-a", "host-a")
    )
    assert "on rank 0 and 5 on rank 1" in line


def test_shared_folder_is_accepted_and_left_as_it_was(tmp_path):
    assert run_both(check_shared_folder, [tmp_path] * 2) == [None, None]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("exists", "what"), [(True, "is another folder"), (False, "does not exist")]
)
def test_folder_that_is_not_shared_is_named_with_its_host(exists, what, tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders[: 1 + exists]:
        folder.mkdir()
    line, other = run_both(check_shared_folder, folders)
    assert line == other
    assert line.startswith(
        f"all hosts must share the run folder {folders[0]} of host-a (rank 0), but {folders[1]} "
        f"{what} on host-b (rank 1); out= must be on a file system"
    )
    assert list(folders[0].iterdir()) == []


def test_different_steps_are_named(tiny_run):
    folders, states = [RunFolder(tiny_run)] * 2, [TrainState(step=12), TrainState(step=8)]
    assert run_both(check_same_state, folders, states[:1] * 2) == [None, None]
    line, other = run_both(check_same_state, folders, states)
    assert line == other
    assert "host-a (rank 0) resumes from 12 and host-b (rank 1) from 8" in line


def test_different_data_is_named(tiny_run, tmp_path):
    other = RunFolder(tmp_path)
    for name in ("settings.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((tiny_run / name).read_bytes())
    line, _ = run_both(check_same_state, [RunFolder(tiny_run), other], [None, None])
    assert "must have the same training pairs on all hosts, but host-a (rank 0) and host-b" in line


def test_error_of_one_process_is_raised_in_all_with_its_host():
    def fail_on_second(group, message):
        with group.raise_together():
            if message:
                raise RegardError(message)

    expected = "host-b: no such file"
    assert run_both(fail_on_second, ["", "no such file"]) == [expected, expected]
    alone = ("host-a", "host-a")
    assert run_both(fail_on_second, ["", "bad"], hosts=alone) == ["bad", "bad"]


def test_error_of_a_single_process_stays_the_same():
    problem = RegardError("no such file")
    with pytest.raises(RegardError) as caught, Distributed().raise_together():
        raise problem
    assert caught.value is problem
