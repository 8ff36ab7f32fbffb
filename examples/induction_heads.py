"""Find the induction heads of a model, then ablate them: the copying stops.

Takes about ten seconds. `capture` and `edit` are used as on any other PyTorch model.
"""

import torch

import regard
from regard.analysis import induction_scores
from regard.gallery.copying import random_texts, train_copier


def main() -> None:
    """Train a model of two attention layers on repeated texts; score and ablate its heads."""
    model = train_copier()
    texts = random_texts(200, torch.Generator().manual_seed(1))
    print(f"repeated letters predicted: {model.accuracy(texts):.0%}")

    with torch.no_grad(), regard.watch(model, keep="all") as capture:
        model(texts.letters)
    print("\nhead                        induction score  predicted without it")
    induction_heads = []
    for record in capture:
        for head, score in enumerate(induction_scores(record.weights, texts.letters)):
            with regard.edit(model) as edit:
                edit[record.name].heads(head).ablate()
                accuracy = model.accuracy(texts)
            print(f"{record.name}, head {head}  {score:15.2f}  {accuracy:20.0%}")
            if score > 0.5:
                induction_heads.append((record.name, head))

    with regard.edit(model) as edit:
        for name, head in induction_heads:
            edit[name].heads(head).ablate()
        accuracy = model.accuracy(texts)
    names = ", ".join(f"{name} {head}" for name, head in induction_heads)
    print(f"\nwithout the induction heads ({names}): {accuracy:.0%}")


if __name__ == "__main__":
    main()
