"""The end of a training: which weights are kept, and the card that tells of them."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from regard import files, store
from regard.run import Folder
from regard.training.card import card
from regard.training.checkpoint import Checkpoints
from regard.training.distributed import Crew
from regard.training.loop import validation_loss
from regard.training.objective import Objective
from regard.training.prepare import Prepared
from regard.training.progress import Progress
from regard.translate import translate

JUDGED = 1000  # validation pairs that are translated, at most


def finish(
    folder: Folder,
    prepared: Prepared,
    objective: Objective,
    progress: Progress,
    say: Callable[[str], None],
) -> None:
    """Write the mean of several checkpoints, or the best single one if that is better."""
    if folder.card.exists():
        say(f"{folder.path} is done already: {progress.finished}")
        return
    chosen, loss = _choose(folder, prepared, objective, progress)
    objective.eval()
    store.save(folder.model, store.of(objective.model), {"taken": chosen})
    texts, references = translated(objective.model, prepared)
    text = card(folder, prepared.settings, progress, chosen, loss, texts, references)
    files.write(folder.card, text)
    say(f"done: {progress.finished}; the weights are {chosen}; see {folder.card}")


def _choose(
    folder: Folder, prepared: Prepared, objective: Objective, progress: Progress
) -> tuple[str, float]:
    """Fill the model with the weights that validate best; name them, and give their loss."""
    checkpoints = Checkpoints(folder.checkpoints)
    steps = progress.averaged(prepared.settings.train)
    paths = [checkpoints.weights_at(step) for step in steps]
    best = checkpoints.weights_at(progress.best_step)
    candidates: dict[str, Callable[[], dict[str, Tensor]]] = {
        f"those of step {progress.best_step}": partial(store.mean, [best])
    }
    if len(paths) > 1:
        name = f"the mean of steps {', '.join(map(str, steps[:-1]))} and {steps[-1]}"
        candidates[name] = partial(store.mean, paths)
    judged = {}
    crew = Crew(device=next(objective.parameters()).device)
    for name, weights in candidates.items():
        store.fill(objective.model, weights(), folder.checkpoints)
        tokens = prepared.settings.train.tokens
        judged[name] = validation_loss(objective, prepared.valid, tokens, crew)
    chosen = min(judged, key=judged.__getitem__)
    store.fill(objective.model, candidates[chosen](), folder.checkpoints)
    return chosen, judged[chosen]


def translated(model: nn.Module, prepared: Prepared) -> tuple[list[str], list[str]]:
    """Translate the validation pairs; give the texts and their references."""
    sources, references = [], []
    for number in range(min(len(prepared.valid), JUDGED)):
        source, target = prepared.valid.pair(number)
        sources.append(prepared.tokenizers.source.decode(source.tolist()))
        references.append(prepared.tokenizers.target.decode(target.tolist()))
    found = translate(model, prepared.tokenizers, sources, prepared.settings.search)
    return [texts[0].text for texts in found], references
