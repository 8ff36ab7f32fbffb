import pytest

from regard._support.resources import total_memory


def test_machine_has_memory(tmp_path):
    assert total_memory(tmp_path) > 2**28


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
@pytest.mark.parametrize("limit, is_limited", [("1000000\n", True), ("max\n", False)])
def test_limit_of_the_control_group_counts(tmp_path, name, limit, is_limited):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(limit)
    assert (total_memory(tmp_path) == 10**6) == is_limited
