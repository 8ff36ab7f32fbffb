import re

import pytest
import torch
from torch.nn.functional import cross_entropy

from regard.config import RunConfig
from regard.data import Pair, Tokenizers, train_tokenizer
from regard.errors import RegardError
from regard.evaluation.report import evaluate, loss
from regard.models import build
from regard.runs import Run, RunFolder

PAIRS = [Pair("a cat", "un chat"), Pair("the dog sleeps", "le chien dort"), Pair("", "")]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    both = train_tokenizer([text for pair in PAIRS for text in pair[:2]], "characters", 300)
    settings = RunConfig.from_dict(
        {"model": {"width": 12, "layers": 1, "heads": 2, "ffn_width": 8}}
    )
    torch.manual_seed(0)
    model = build(settings.model, (len(both), len(both))).eval()
    return Run(RunFolder(tmp_path_factory.mktemp("r")), settings, Tokenizers(both, both), model)


@pytest.fixture
def files(tmp_path):
    paths = tmp_path / "source.txt", tmp_path / "reference.txt"
    for side, path in enumerate(paths):
        path.write_text("".join(f"{pair[side]}\n" for pair in PAIRS[:2]))
    return paths


def test_the_loss_is_the_mean_over_pieces_of_all_pairs(run):
    lost = count = 0
    for pair in PAIRS[:2]:
        source = torch.tensor([run.tokenizers.source.encode(pair.source)])
        target = run.tokenizers.target.encode(pair.target)
        with torch.no_grad():
            memory = run.model.encode(source, torch.tensor([source.shape[1]]))
            scores = run.model.logits(run.model.decode(torch.tensor([[1, *target]]), memory))[0]
        lost += float(cross_entropy(scores, torch.tensor([*target, 2]), reduction="sum"))
        count += len(target) + 1
    assert loss(run, PAIRS) == pytest.approx(lost / count, rel=1e-5)


def test_a_loss_leaves_the_model_as_it_was(run):
    assert not run.model.training
    loss(run, PAIRS)
    assert not run.model.training


def test_a_report_names_figures_with_signatures(run, files):
    told = "\n".join(evaluate(run, *files, None, beam_size=2))
    assert re.search(r"BLEU \d+\.\d\d ± \d+\.\d\d  nrefs:1\|bs:1000\|.*tok:13a", told)
    assert re.search(r"chrF \d+\.\d\d .*nc:6", told)
    assert "exact match 0.0%" in told and "perplexity" in told


def test_an_empty_file_is_refused(run, tmp_path):
    empty, other = tmp_path / "empty.txt", tmp_path / "other.txt"
    for path in (empty, other):
        path.write_text("")
    with pytest.raises(RegardError, match=r"empty.txt must have sentences, but it is empty"):
        list(evaluate(run, empty, other, None, None))


def test_pairs_with_an_empty_side_are_left_out_of_the_alignment(run, files, tmp_path):
    source, reference = files
    links = tmp_path / "links.txt"
    links.write_text("0-0 1-1\n0-0 1-1 2-2\n")
    wanted = list(evaluate(run, *files, links, beam_size=2))[-1]
    source.write_text(source.read_text() + "\n  \na\n")
    reference.write_text(reference.read_text() + "\nun\n \n")
    links.write_text(links.read_text() + "\n\n\n")
    assert list(evaluate(run, *files, links, beam_size=2))[-1] == wanted
    assert wanted.startswith("alignment error rate")


def test_pairs_for_which_a_model_has_no_positions_are_left_out_of_the_loss(run):
    changed = {"model": {"positions": "learned", "max_positions": 9}}
    settings = run.settings.update(changed)
    model = build(settings.model, run.tokenizers.vocab_sizes).eval()
    short = Run(run.folder, settings, run.tokenizers, model)
    assert loss(short, PAIRS) == loss(short, PAIRS[:1])
