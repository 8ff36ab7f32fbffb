import os

import pytest

from regard.serving.prometheus import forget_dead_workers


@pytest.mark.parametrize(
    ("problem", "is_forgotten"),
    [(ProcessLookupError, True), (PermissionError, False), (None, False)],
)
def test_only_processes_that_do_not_run_are_forgotten(tmp_path, monkeypatch, problem, is_forgotten):
    def kill(process_id, number):
        assert (process_id, number) == (4711, 0)
        if problem is not None:
            raise problem

    monkeypatch.setattr(os, "kill", kill)
    file = tmp_path / "gauge_livesum_4711.db"
    file.touch()
    forget_dead_workers(tmp_path)
    assert file.exists() is not is_forgotten
