"""The demo: the library's main job in two minutes, and the small models that lessons use.

`showcase.py` is `regard demo`: it trains a translator on the phrasebook, evaluates it and shows its
attention. `models.py` has the demo's models, and trains each of them once for the gallery, the
explorer and the documentation. `five_words.py` is `regard words`: attention computed step by step.
"""

from regard.demo.five_words import TOKENS, TRAITS, WORDS, run_five_words
from regard.demo.models import MODELS, dataset_id, find_cached, load_or_train, train_demo
from regard.demo.showcase import choose_head, run_demo

__all__ = [
    "MODELS",
    "TOKENS",
    "TRAITS",
    "WORDS",
    "choose_head",
    "dataset_id",
    "find_cached",
    "load_or_train",
    "run_demo",
    "run_five_words",
    "train_demo",
]
