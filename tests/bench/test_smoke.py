"""The benchmarks of attention and capture run at small size."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regard.analysis import METHODS
from regard.attention import SCORE_NAMES

BENCH = Path(__file__).parents[2] / "bench"

pytestmark = pytest.mark.train


def run_bench(script, *options):
    """Run a benchmark; return what it prints."""
    result = subprocess.run(
        [sys.executable, str(BENCH / script), *options],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_attention_benchmark_compares_every_score_and_mask_with_sdpa(tmp_path):
    output = run_bench("attention.py", "--smoke", "--only", "fused", "--out", str(tmp_path))
    rows = re.findall(r"\| \d+×\d+×\d+×\d+ \| (\w+) \| (\w+) \| \d+\.\d\d \|", output)
    assert set(rows) == {
        (mask, score)
        for mask in ("none", "causal")
        for score in ("scaled_dot", "gaussian", "cosine", "bilinear")
    }
    assert output.strip() in (tmp_path / "attention.md").read_text(encoding="utf-8")


def test_attention_benchmark_measures_every_section(tmp_path):
    output = run_bench("attention.py", "--smoke", "--out", str(tmp_path))
    growth, memory, _, weights, additive, multihead = re.split("^## .*\n", output, flags=re.M)[1:]
    for layer in ("dense", "fused", "blockwise", "GRU", "convolution"):
        assert len(re.findall(rf"^\| {layer} \| [\d.e-]+ \| [\d.e-]+ \|$", growth, re.M)) == 2
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
    assert re.search(r"^\d+\.\d s, peak \d+ MiB$", memory, re.M)
    assert re.search(r"^\| 2×2×16×8 \| \d+\.\d\d \| \d+\.\d \|$", weights, re.M)
    for name in ("textbook", "regard", "textbook, compiled", "regard, compiled"):
        assert re.search(rf"^\| {name} \| [\d.]+ \| [\d.]+ × \| [\d.]+ \| ", additive, re.M)
    assert re.search(r"^\| 2×5×12, 3 (\| \d+\.\d\d × ){4}\|$", multihead, re.M)


def test_deletion_benchmark_prints_a_row_per_method():
    output = run_bench("deletion.py", "--sentences", "2", "--removed", "2")
    rows = re.findall(r"^\| (\w+) \| -?\d+\.\d \| -?\d+\.\d \| \d+% \|$", output, re.M)
    assert rows == ["random", *METHODS]


def test_capture_benchmark_reports_time_and_memory_for_both_masks():
    rows = run_bench("watch.py", "--tokens", "64").splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| causal", "| none"]
    assert all(len(row.split(" | ")) == 7 for row in rows)


def test_architectures_benchmark_agrees_for_known_architectures():
    output = run_bench("families.py", "bert", "gpt2")
    assert "| agrees | 2 |" in output
    assert "CHANGED OUTPUT: none" in output


def test_processes_benchmark_compares_two_processes_with_one():
    assert re.search(
        r"\| defaults \| \d+ \| \d+ \| \d+\.\d\d \|", run_bench("processes.py", "--smoke")
    )


def test_translation_benchmark_compares_two_processes_with_one():
    output = run_bench("translate_processes.py", "--smoke")
    assert "20 sentences; outputs equal" in output
    assert len(re.findall(r"\| (?:one|two) process.* \| \d+ \| \d+\.\d\d \|", output)) == 3


def test_no_score_has_larger_errors_than_sdpa_in_half_precision():
    output = run_bench("half_precision.py", "--length", "48")
    rows = re.findall(r"\| (\w+) \| (\w+) \| (\w+) \| .* \| (\d+\.\d\d) \|", output)
    assert {row[:3] for row in rows} == {
        (score, dtype, scores)
        for score in SCORE_NAMES
        for dtype in ("bfloat16", "float16")
        for scores in ("ordinary", "saturated")
    }
    assert [row for row in rows if float(row[3]) > 1] == []


def test_capture_peers_benchmark_leaves_the_output_of_the_model_unchanged():
    output = run_bench(
        "capture_peers.py", "--tokens", "16", "--layers", "2", "--width", "64", "--rounds", "1"
    )
    rows = {row.split(" | ")[0]: row for row in output.splitlines()[2:]}
    assert {"| plain", "| regard", "| Hugging Face"} <= set(rows)
    assert "| identical |" in rows["| regard"]


def test_page_size_benchmark_prints_a_row_per_length():
    output = run_bench("page_size.py", "--tokens", "8", "16", "--layers", "1", "--heads", "2")
    assert re.findall(r"^\| (\d+) \| \d\.\d\d ", output, re.MULTILINE) == ["8", "16"]


def test_pruning_benchmark_removes_heads_in_three_orders():
    options = ("--sentences", "12", "--draws", "1", "--step", "12")
    output = run_bench("prune_heads.py", *options)
    rows = re.findall(r"\| (\d+) \| ([\d.]+) \| ([\d.]+) \(.*?\) \| ([\d.]+) \|", output)
    assert [int(row[0]) for row in rows] == [0, 12, 24]
    intact, half, none = ([float(x) for x in row[1:]] for row in rows)
    assert len(set(intact)) == 1 and intact[0] > 80
    least_first, _, most_first = half
    assert least_first > 50 > most_first
    assert max(none) < 5


def test_browser_benchmark_compares_sizes_words_and_times():
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    output = run_bench("browser.py", "--sentences", "12", "--timed", "12")
    rows = re.findall(r"^\| (\w+) \| (\d\.\d\d) \| 12 of 12 \| \d+ of 12 \|$", output, re.M)
    assert [name for name, _ in rows] == ["float32", "float16", "int8"]
    assert re.search(r"^\| page's modules in node.*( \| \d+ ms, \d+ ms){2} \|$", output, re.M)
