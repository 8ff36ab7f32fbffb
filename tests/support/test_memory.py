import sys

import pytest
import torch

from regard._support import resources
from regard._support.resources import keep_freed_memory, total_memory

BLOCKS, PAGES = 5, 2000
BLOCK_FLOATS = 1024 * PAGES


def test_machine_has_memory(tmp_path):
    assert total_memory(tmp_path) > 2**28


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
@pytest.mark.parametrize("limit, is_limited", [("1000000\n", True), ("max\n", False)])
def test_limit_of_the_control_group_counts(tmp_path, name, limit, is_limited):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(limit)
    assert (total_memory(tmp_path) == 10**6) == is_limited


def page_faults(rounds):
    """Return how many page faults it takes to fill and free some blocks, repeatedly."""
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        blocks = [torch.ones(BLOCK_FLOATS) for _ in range(BLOCKS)]
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_freed_memory_is_reused_without_page_faults():
    if resources._glibc() is None:
        pytest.skip("another C library")
    with keep_freed_memory():
        page_faults(5)
        assert page_faults(10) < 10 * BLOCKS * PAGES / 4


def test_allocator_without_these_settings_is_left_alone(monkeypatch):
    monkeypatch.setattr(resources, "_glibc", lambda: None)
    with keep_freed_memory():
        assert torch.zeros(3).sum() == 0
