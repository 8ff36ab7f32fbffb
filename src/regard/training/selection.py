"""The end of a training: which weights are kept, and the card that tells of them."""

from collections.abc import Callable
from pathlib import Path

from regard._support import files
from regard.decoding import translate
from regard.errors import RegardError
from regard.evaluation import metrics
from regard.models import Seq2SeqModel
from regard.runs import RunFolder, parameters
from regard.training.checkpoint import Checkpoints
from regard.training.distributed import Distributed
from regard.training.loop import validation_loss
from regard.training.model_card import card
from regard.training.objective import Objective
from regard.training.setup import Prepared
from regard.training.state import Progress

JUDGED = 1000  # validation pairs that are translated, at most


def finish(
    folder: RunFolder,
    prepared: Prepared,
    objective: Objective,
    progress: Progress,
    say: Callable[[str], None],
) -> None:
    """Write the mean of several checkpoints, or the best single one if that is better."""
    if folder.model_card.exists():
        say(f"{folder.path} is done already: {progress.finished}")
        return
    chosen, loss = _choose(folder, prepared, objective, progress, say)
    objective.eval()
    parameters.save(folder.model, parameters.state_of(objective.model), {"taken": chosen})
    texts, references = translated(objective.model, prepared)
    text = card(folder, prepared.settings, progress, chosen, loss, texts, references)
    files.write_file(folder.model_card, text)
    say(f"done: {progress.finished}; the weights are {chosen}; see {folder.model_card}")


def _choose(
    folder: RunFolder,
    prepared: Prepared,
    objective: Objective,
    progress: Progress,
    say: Callable[[str], None],
) -> tuple[str, float]:
    """Fill the model with the weights that validate best; name them, and give their loss."""
    candidates = _candidates(folder, prepared, progress, say)
    figures, losses = {}, {}
    crew = Distributed(device=next(objective.parameters()).device)
    settings = prepared.settings.train
    for name, paths in candidates.items():
        parameters.load_into(objective.model, parameters.average(paths), folder.checkpoints)
        losses[name] = validation_loss(objective, prepared.valid, settings.batch_tokens, crew)
        by_bleu = settings.validation_metric == "bleu"
        figures[name] = -validation_bleu(objective.model, prepared) if by_bleu else losses[name]
    chosen = min(figures, key=figures.__getitem__)
    parameters.load_into(
        objective.model, parameters.average(candidates[chosen]), folder.checkpoints
    )
    return chosen, losses[chosen]


def _candidates(
    folder: RunFolder, prepared: Prepared, progress: Progress, say: Callable[[str], None]
) -> dict[str, list[Path]]:
    """Name the weights that may be the result, and the files of which they are the mean."""
    checkpoints = Checkpoints(folder.checkpoints)

    def whole(step: int) -> bool:
        try:
            parameters.load(checkpoints.parameters_path(step))
        except RegardError as problem:
            say(f"{problem}; going on without it")
            return False
        return True

    steps = list(filter(whole, progress.averaged(prepared.settings.train)))
    best = checkpoints.parameters_path(progress.best_step)
    # the best weights are also where they are translated with
    single = best if progress.best_step in steps or whole(progress.best_step) else folder.model
    candidates = {f"those of step {progress.best_step}": [single]}
    if len(steps) > 1:
        name = f"the mean of steps {', '.join(map(str, steps[:-1]))} and {steps[-1]}"
        candidates[name] = [checkpoints.parameters_path(step) for step in steps]
    return candidates


def validation_bleu(model: Seq2SeqModel, prepared: Prepared) -> float:
    """Give the BLEU of the validation pairs; the model is left as it was."""
    was_training = model.training
    model.eval()
    texts, references = translated(model, prepared)
    model.train(was_training)
    return metrics.bleu(texts, references, chinese=metrics.is_chinese(references))


def translated(model: Seq2SeqModel, prepared: Prepared) -> tuple[list[str], list[str]]:
    """Translate the validation pairs; give the texts and their references."""
    sources, references = [], []
    for number in range(min(len(prepared.valid), JUDGED)):
        source, target = prepared.valid.pair(number)
        sources.append(prepared.tokenizers.source.decode(source.tolist()))
        references.append(prepared.tokenizers.target.decode(target.tolist()))
    found = translate(model, prepared.tokenizers, sources, prepared.settings.search)
    return [texts[0].text for texts in found], references
