"""A small corpus and settings with which a training takes a second or two."""

from regard.data import Corpus, Pair

NOUNS = {"cat": "chat", "dog": "chien", "bird": "oiseau", "man": "homme", "boat": "bateau"}
VERBS = {"sees": "voit", "likes": "aime", "hears": "entend"}
TRICKS = {"big": "grand", "red": "rouge", "old": "vieux"}

SMALL = [
    {
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
]


def pairs():
    found = []
    for one, un in NOUNS.items():
        for adjective, adjectif in TRICKS.items():
            for verb, verbe in VERBS.items():
                for two, deux in NOUNS.items():
                    source = f"the {adjective} {one} {verb} the {two}"
                    found.append(Pair(source, f"le {un} {adjectif} {verbe} le {deux}"))
    return found


def corpus(name="small", dataset=None):
    return Corpus.from_pairs(name, pairs(), dataset)


def write_tsv(path):
    path.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in pairs()))
    return path
