"""The HTML translator: size, agreement with the torch engine, and speed in node and Chromium.

    python bench/browser.py [--run demo-model] [--sentences 500] [--timed 100]

Needs node; Chromium is measured if it and playwright are installed. Translations of torch are
searched one sentence at a time, as the page searches them, on one thread. Times are CPU time, but
those of Chromium, which are measured by the page. Those of the page include the trace of every
layer and head, those of torch do not.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import regard
from regard.browser import QUANTIZATIONS, describe_translator
from regard.data.phrasebook import load_phrasebook
from regard.runs import Run

SCRIPT = Path(__file__).with_suffix(".mjs")


def translate_in_node(run: Run, texts: list[str], beam_size: int, quantization: str) -> Any:
    """Return tokens and milliseconds of the page's modules."""
    data = describe_translator(
        run.model, run.tokenizers, run.settings.search, name=run.name, quantization=quantization
    )
    job = data._asdict() | {"texts": texts, "beamSize": beam_size}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(job))
        result = subprocess.run(
            ["node", SCRIPT, file], capture_output=True, text=True, check=True
        ).stdout
    return json.loads(result)


def time_torch(run: Run, texts: list[str], beam_size: int) -> list[float]:
    """Return the milliseconds of each sentence."""
    milliseconds = []
    for text in texts:
        start = time.process_time()
        run.translate(text, beam_size=beam_size)
        milliseconds.append(1000 * (time.process_time() - start))
    return milliseconds


def time_chromium(page: Path, texts: list[str]) -> list[float]:
    """Return the milliseconds from request to shown translation, in a page without network."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    milliseconds = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        window = browser.new_context(offline=True, locale="en-US").new_page()
        window.goto(page.as_uri())
        for text in texts:
            window.fill("#text", text)
            # the source words are shown together with the translation
            window.wait_for_function(
                "(text) => document.querySelector('.source-text').textContent === text", arg=text
            )
            status = window.locator(".translation-status").inner_text()
            milliseconds.append(float(status.split()[2]))
        browser.close()
    return milliseconds


def describe(milliseconds: list[float]) -> str:
    """Return the median and the 95th percentile; the first sentences are for the compiler."""
    warm = milliseconds[len(milliseconds) // 10 :]
    return f"{statistics.median(warm):.0f} ms, {statistics.quantiles(warm, n=20)[-1]:.0f} ms"


def main() -> None:
    """Measure, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", default="demo-model")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--timed", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    run = regard.load(options.run, engine="torch")
    texts = [pair.source for pair in load_phrasebook("fr").test[: options.sentences]]
    beams = {"greedy": 1, f"beam {run.settings.search.beam_size}": run.settings.search.beam_size}
    expected = {
        name: [list(one.tokens) for one in run.translate(texts, beam_size=size)]
        for name, size in beams.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "translator.html"
        print(f"| parameters | page, MiB | {' | '.join(f'same words, {n}' for n in beams)} |")
        print("|---|---|---|---|")
        for quantization in QUANTIZATIONS:
            run.export(page, "html", quantization)
            cells = [f"{page.stat().st_size / 2**20:.2f}"]
            for name, size in beams.items():
                result = translate_in_node(run, texts, size, quantization)
                pairs = zip(result["tokens"], expected[name], strict=True)
                cells.append(f"{sum(a == b for a, b in pairs)} of {len(texts)}")
            print(f"| {quantization} | {' | '.join(cells)} |", flush=True)
        timed = texts[: options.timed]
        print("\n| median and 95th percentile per sentence | " + " | ".join(beams) + " |")
        print("|---|---|---|")
        rows = {
            "torch engine, one thread, CPU time": lambda size: time_torch(run, timed, size),
            "page's modules in node, CPU time": lambda size: translate_in_node(
                run, timed, size, "float16"
            )["milliseconds"],
        }
        for name, measure in rows.items():
            cells = [describe(measure(size)) for size in beams.values()]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
        if shutil.which("chromium") or shutil.which("google-chrome"):
            run.export(page, "html")
            cell = describe(time_chromium(page, timed))
            print(f"| page in Chromium, from request to shown | | {cell} |")


if __name__ == "__main__":
    main()
