"""The benchmarks of decoding and of its engines run at tiny size."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.mark.train
def test_decoding_benchmark_prints_a_row_per_search():
    pytest.importorskip("transformers", reason="transformers is not installed")
    done = subprocess.run(
        [sys.executable, str(BENCH / "decode.py"), "--smoke"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for line, search in zip(lines[2:4], ("greedy", "beam size 5"), strict=True):
        assert re.fullmatch(rf"\| {search} \| \d+ \| [\d.–]+ \| \d+\.\d \| (\d+%|–) \|", line)
    assert re.fullmatch(r"16 output tokens take \d+\.\d × as long as 2\.", lines[-2])


@pytest.mark.train
def test_decoding_benchmark_compares_batch_sizes_of_both_quantizations():
    pytest.importorskip("ctranslate2", reason="the extra fast is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    output = subprocess.run(
        [sys.executable, str(BENCH / "decode.py"), "--batch-sizes", "--smoke"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    row = r"^\| (greedy|beam size 5) \| (float32|int8) \| (\d+) \| \d+ \| \d+\.\d\d \|$"
    assert len(set(re.findall(row, output, re.M))) == 16


@pytest.mark.train
def test_engine_benchmark_compares_words_and_speed_of_every_engine():
    output = subprocess.run(
        [sys.executable, str(BENCH / "engines.py"), "--smoke"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for search in ("greedy", "beam size 5"):
        assert f"| {search} | ctranslate2 | 100.0% | 0 | 0 | 0.0000 | – |" in output
        assert f"| same words in float32, {search} | 100.0% | ≥ 99 % |" in output
        assert re.search(rf"\| ctranslate2 int8 / direct, {search} \| [\d.]+ \| ≥ 1\.\d \|", output)
        for engine in ("torch", "ctranslate2", "ctranslate2 int8", "direct", "Hugging Face"):
            assert re.search(rf"\| {search} \| {engine} \| \d+ \| [\d.]+ \| [\d.]+ \|", output)
