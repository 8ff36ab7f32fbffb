import json
import re

import pytest
import torch
from torch.nn.functional import cross_entropy

from regard.analysis import best_alignment_head, extract_alignment
from regard.config import RunConfig
from regard.data import (
    BOS,
    EOS,
    Pair,
    Tokenizers,
    WordSpans,
    encode_pairs,
    train_tokenizer,
    whitespace_spans,
)
from regard.decoding import TorchEngine
from regard.errors import RegardError
from regard.evaluation import corpus_alignment_error_rate
from regard.models import build
from regard.runs import Run, RunFolder, RunTasks, load
from regard.runs.evaluation import evaluate_alignment, reference_loss
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
    model = build(config.model, len(tokenizer)).eval()
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    tokenizers = Tokenizers(tokenizer, tokenizer)
    return Run(folder, config, tokenizers, model, TorchEngine(model, tokenizers))


def tasks_of(run):
    return RunTasks(run.model, run.tokenizers)


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
    assert reference_loss(tasks_of(run), PAIRS) == pytest.approx(nll / tokens, rel=1e-5)


def test_reference_loss_equals_the_validation_loss_of_training(run, tmp_path):
    encoded = encode_pairs(PAIRS, run.tokenizers, run.settings.data, tmp_path)
    loss = validation_loss(Objective(run.model).eval(), encoded, 4096, Distributed())
    assert reference_loss(tasks_of(run), PAIRS) == pytest.approx(loss, rel=1e-6)


def test_reference_loss_keeps_the_model_in_evaluation_mode(run):
    reference_loss(tasks_of(run), PAIRS)
    assert not run.model.training


def test_report_prints_every_metric_with_signatures(run, test_set):
    report = run.evaluate(*test_set, beam_size=2)
    lines = str(report).splitlines()
    assert re.fullmatch(r"BLEU +\d+\.\d\d ± \d+\.\d\d  nrefs:1\|bs:1000\|.*tok:13a.*", lines[0])
    assert re.fullmatch(r"chrF +\d+\.\d\d .*nc:6.*", lines[1])
    assert lines[2].split() == ["exact", "match", "0.0", "%"]
    assert lines[3].split() == ["perplexity", f"{report.perplexity:.3f}", "per", "token"]
    assert f"{report.bleu:.2f}" in lines[0] and f"{report.chrf:.2f}" in lines[1]
    assert report.alignment_error_rate is None and len(lines) == 4


def test_report_is_a_dict_that_json_can_hold(run, test_set):
    report = run.evaluate(*test_set, beam_size=1)
    content = json.loads(json.dumps(report.to_dict()))
    assert content["bleu"]["value"] == report.bleu
    assert content["chrf"]["signature"] == report.chrf_score.signature
    assert content["perplexity"] == report.perplexity and content["alignment"] is None


def test_lists_of_sentences_are_evaluated_as_files_are(run, test_set, tmp_path):
    links = tmp_path / "links.txt"
    links.write_text("0-0 1-1\n0-0 1-1 2-2\n")
    by_file = run.evaluate(*test_set, gold=links, beam_size=1)
    source, reference = ([pair[side] for pair in PAIRS[:2]] for side in (0, 1))
    gold = [[(0, 0), (1, 1)], [(0, 0), (1, 1), (2, 2)]]
    assert run.evaluate(source, reference, gold=gold, beam_size=1) == by_file
    mixed = run.evaluate(
        iter(source), test_set[1], gold=links.read_text().split("\n")[:2], beam_size=1
    )
    assert mixed == by_file


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a", "b"], ["c"]), "^sources and translations must be equally many.* are 2 and 1"),
        (([], []), "source must have sentences, but it is empty"),
        ((["a"], ["b"], ["0-1"]), "alignment 1: links must be .* from 0-0 to 0-0, but .*'0-1'"),
        ((["a"], ["b"], []), "equally many, but there are 1, 1 and 0"),
    ],
)
def test_lists_that_do_not_match_are_refused(run, arguments, message):
    source, reference, *gold = arguments
    with pytest.raises(RegardError, match=message):
        run.evaluate(source, reference, gold=gold[0] if gold else None)


@pytest.mark.parametrize("links", [0, [0], [(0,)], [(0, 0, 0)]])
def test_gold_links_that_are_no_pairs_are_refused(run, unchecked, links):
    message = "^gold must be lines such as 0-0 1-2, or pairs of word numbers, but one is "
    with pytest.raises(RegardError, match=message):
        run.evaluate(["a", "b"], ["c", "d"], gold=[[(0, 0)], links])


@pytest.mark.parametrize("name", ["source", "reference"])
def test_sentence_that_is_no_string_is_a_type_error(run, unchecked, name):
    texts = {"source": ["a"], "reference": ["b"], name: [["a", "b"]]}
    with pytest.raises(TypeError, match=f"^each {name} must be a string, but it is of type list"):
        run.evaluate(**texts)


def test_empty_file_is_refused(run, tmp_path):
    empty, other = tmp_path / "empty.txt", tmp_path / "other.txt"
    for path in (empty, other):
        path.write_text("")
    with pytest.raises(RegardError, match=r"empty.txt must have sentences, but it is empty"):
        run.evaluate(empty, other)


def test_alignment_error_rate_leaves_out_pairs_with_an_empty_side(run, test_set, tmp_path):
    source, reference = test_set
    links = tmp_path / "links.txt"
    links.write_text("0-0 1-1\n0-0 1-1 2-2\n")
    expected = run.evaluate(*test_set, gold=links, beam_size=2)
    source.write_text(source.read_text() + "\n  \na\n")
    reference.write_text(reference.read_text() + "\nun\n \n")
    links.write_text(links.read_text() + "\n\n\n")
    report = run.evaluate(*test_set, gold=links, beam_size=2)
    assert report.alignment == expected.alignment
    assert 0 <= report.alignment_error_rate <= 1
    last = str(report).splitlines()[-1]
    assert last.startswith(f"alignment error rate  {report.alignment_error_rate:.3f}")


def test_pairs_longer_than_the_models_positions_are_left_out_of_the_loss(run):
    config = run.settings.update({"model": {"positions": "learned", "max_positions": 9}})
    model = build(config.model, run.tokenizers.vocab_sizes).eval()
    engine = TorchEngine(model, run.tokenizers)
    limited = Run(run.folder, config, run.tokenizers, model, engine)
    assert reference_loss(tasks_of(limited), PAIRS) == reference_loss(tasks_of(limited), PAIRS[:1])


def test_loss_without_any_usable_pair_is_refused(run):
    with pytest.raises(RegardError, match="perplexity needs pairs with words on both sides"):
        reference_loss(tasks_of(run), PAIRS[2:])


def test_alignment_is_that_of_the_head_with_the_highest_agreement(tiny_run):
    """The reference holds all traces in memory, and uses the functions of `regard.analysis`."""
    run = load(tiny_run)
    pairs = [Pair("the old cat sees the dog", "le vieux chat voit le chien"), Pair("a cat", "un")]
    gold = [{(n, n) for n in range(6)}, {(0, 0)}]
    report = evaluate_alignment(tasks_of(run), list(with_links(pairs, gold)))
    traces = [
        run.trace(
            pair.source,
            pair.target,
            words=WordSpans(whitespace_spans(pair.source), whitespace_spans(pair.target)),
        )
        for pair in pairs
    ]
    best = best_alignment_head(traces)
    predicted = [extract_alignment(trace, best.layer, best.head) for trace in traces]
    assert (report.layer, report.head) == (best.layer, best.head)
    assert report.error_rate == corpus_alignment_error_rate(predicted, gold)


def with_links(pairs, gold):
    for pair, links in zip(pairs, gold, strict=True):
        source, target = whitespace_spans(pair.source), whitespace_spans(pair.target)
        yield pair._replace(links=tuple((source[s], target[t]) for s, t in links))


def test_metrics_are_the_same_when_items_and_results_pass_through_json(run, test_set, tmp_path):
    links = tmp_path / "links.txt"
    links.write_text("0-0 1-1\n0-0 1-1 2-2\n")

    def map_by_json(function, items):
        for item in items:
            yield json.loads(json.dumps(function(json.loads(json.dumps(item)))))

    here = run.evaluate(*test_set, gold=links, beam_size=2)
    assert run.evaluate(*test_set, gold=links, beam_size=2, map=map_by_json) == here
