import re

import pytest
import torch
from torch.nn.functional import cross_entropy

from regard.config import RunConfig
from regard.data import BOS, EOS, Pair, Tokenizers, encode_pairs, train_tokenizer
from regard.errors import RegardError
from regard.evaluation import evaluate
from regard.evaluation.report import reference_loss
from regard.models import build
from regard.runs import Run, RunFolder
from regard.training.distributed import Distributed
from regard.training.objective import Objective
from regard.training.validation import validation_loss

PAIRS = [Pair("a cat", "un chat"), Pair("the dog sleeps", "le chien dort"), Pair("", "")]
TINY_MODEL = {"model": {"width": 12, "layers": 1, "heads": 2, "ffn_width": 8}}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """An untrained run that spells its words."""
    texts = [text for pair in PAIRS for text in pair[:2]]
    tokenizer = train_tokenizer(texts, "characters", 300)
    config = RunConfig.from_dict(TINY_MODEL)
    torch.manual_seed(0)
    model = build(config.model, (len(tokenizer), len(tokenizer))).eval()
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    return Run(folder, config, Tokenizers(tokenizer, tokenizer), model)


@pytest.fixture
def test_set(tmp_path):
    """Files of sources and references."""
    paths = tmp_path / "source.txt", tmp_path / "reference.txt"
    for side, path in enumerate(paths):
        path.write_text("".join(f"{pair[side]}\n" for pair in PAIRS[:2]))
    return paths


def test_reference_loss_is_the_mean_over_tokens_of_all_pairs(run):
    nll = tokens = 0
    for pair in PAIRS[:2]:
        source = torch.tensor([run.tokenizers.source.encode(pair.source)])
        target = run.tokenizers.target.encode(pair.target)
        with torch.no_grad():
            encoded = run.model.encode(source, torch.tensor([source.shape[1]]))
            states = run.model.decode(torch.tensor([[BOS, *target]]), encoded)[0]
            logits = states @ run.model.output_weight.T
        nll += float(cross_entropy(logits, torch.tensor([*target, EOS]), reduction="sum"))
        tokens += len(target) + 1
    assert reference_loss(run, PAIRS) == pytest.approx(nll / tokens, rel=1e-5)


def test_reference_loss_equals_the_validation_loss_of_training(run, tmp_path):
    encoded = encode_pairs(PAIRS, run.tokenizers, run.settings.data, tmp_path)
    loss = validation_loss(Objective(run.model).eval(), encoded, 4096, Distributed())
    assert reference_loss(run, PAIRS) == pytest.approx(loss, rel=1e-6)


def test_reference_loss_keeps_the_model_in_evaluation_mode(run):
    reference_loss(run, PAIRS)
    assert not run.model.training


def test_report_has_every_metric_with_signatures(run, test_set):
    report = evaluate(run, *test_set, beam_size=2)
    text = "\n".join(report.lines())
    assert re.search(r"BLEU \d+\.\d\d ± \d+\.\d\d  nrefs:1\|bs:1000\|.*tok:13a", text)
    assert re.search(r"chrF \d+\.\d\d .*nc:6", text)
    assert "exact match 0.0%" in text and f"perplexity {report.perplexity:.3f} per token" in text
    assert f"BLEU {report.bleu:.2f}" in text and f"chrF {report.chrf:.2f}" in text
    assert report.alignment_error_rate is None and "alignment" not in text


def test_empty_file_is_refused(run, tmp_path):
    empty, other = tmp_path / "empty.txt", tmp_path / "other.txt"
    for path in (empty, other):
        path.write_text("")
    with pytest.raises(RegardError, match=r"empty.txt must have sentences, but it is empty"):
        evaluate(run, empty, other)


def test_alignment_error_rate_leaves_out_pairs_with_an_empty_side(run, test_set, tmp_path):
    source, reference = test_set
    links = tmp_path / "links.txt"
    links.write_text("0-0 1-1\n0-0 1-1 2-2\n")
    expected = evaluate(run, *test_set, links, beam_size=2)
    source.write_text(source.read_text() + "\n  \na\n")
    reference.write_text(reference.read_text() + "\nun\n \n")
    links.write_text(links.read_text() + "\n\n\n")
    report = evaluate(run, *test_set, links, beam_size=2)
    assert report.alignment == expected.alignment
    assert 0 <= report.alignment_error_rate <= 1
    assert report.lines()[-1].startswith(f"alignment error rate {report.alignment_error_rate:.3f}")


def test_pairs_longer_than_the_models_positions_are_left_out_of_the_loss(run):
    config = run.settings.update({"model": {"positions": "learned", "max_positions": 9}})
    model = build(config.model, run.tokenizers.vocab_sizes).eval()
    limited = Run(run.folder, config, run.tokenizers, model)
    assert reference_loss(limited, PAIRS) == reference_loss(limited, PAIRS[:1])


def test_loss_without_any_usable_pair_is_refused(run):
    with pytest.raises(RegardError, match="perplexity needs pairs with words on both sides"):
        reference_loss(run, PAIRS[2:])
