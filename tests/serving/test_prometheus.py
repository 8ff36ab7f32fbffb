from regard.serving.prometheus import forget_worker


def test_only_gauges_of_the_worker_are_removed(tmp_path):
    names = ["counter_4711.db", "gauge_livesum_4711.db", "gauge_livesum_471.db"]
    for name in names:
        (tmp_path / name).touch()
    forget_worker(4711, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {names[0], names[2]}
