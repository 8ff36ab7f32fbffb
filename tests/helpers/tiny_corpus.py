"""A tiny language and settings with which training takes a second or two."""

from regard.data import Corpus, Pair

NOUNS = {"cat": "chat", "dog": "chien", "bird": "oiseau", "man": "homme", "boat": "bateau"}
VERBS = {"sees": "voit", "likes": "aime", "hears": "entend"}
ADJECTIVES = {"big": "grand", "red": "rouge", "old": "vieux"}

TINY = {
    "data": {"vocab_size": 400, "validation_pairs": 20},
    "model": {"width": 16, "layers": 1, "heads": 2, "ffn_width": 24, "dropout": 0.1},
    "train": {
        "steps": 12,
        "batch_tokens": 256,
        "warmup": 3,
        "validate_every": 4,
        "average_checkpoints": 2,
        "learning_rate": 5e-3,
        "seed": 3,
    },
}


def tiny_pairs():
    """Return the 225 sentences of the language, such as "the old cat sees the dog"."""
    return [
        Pair(
            f"the {adjective} {subject} {verb} the {noun}",
            f"le {sujet} {adjectif} {verbe} le {nom}",
        )
        for subject, sujet in NOUNS.items()
        for adjective, adjectif in ADJECTIVES.items()
        for verb, verbe in VERBS.items()
        for noun, nom in NOUNS.items()
    ]


def tiny_corpus(name="tiny", dataset=None):
    return Corpus.from_pairs(name, tiny_pairs(), dataset)


def write_tsv(path):
    path.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in tiny_pairs()))
    return path
