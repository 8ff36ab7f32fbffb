"""What the page's modules must compute, as the Python modules do: data for their node tests."""

import random
import unicodedata
import warnings

import torch

from regard.attention import Additive, ScaledDot
from regard.browser import describe_translator
from regard.config import ModelConfig, SearchConfig
from regard.data import Tokenizer, Tokenizers, train_tokenizer
from regard.data.phrasebook import load_phrasebook
from regard.decoding import translate
from regard.models import build
from regard.positions import Rotary
from regard.runs import assign_words, trace_translation

TEXTS = [
    "le chat dort",
    "l'été à 9 heures",
    "猫坐在垫子上",
    "don't, it’s 10 o'clock!",
    "naïve café",
]
# merges of equal pieces, from the left, and runs of white space
REPETITIONS = ["haaaaaaa!", "no!!! wait....... ", "a    b   c  d", "x \n\n\n y", "     z"]
ALPHABETS = (
    "abcdeABC ",
    "''’.,!?- ab",
    "éàçœßñ aeñ",
    "猫狗坐在垫子上。，了 a",
    "0123456789²½ a",
    " \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u2003\u2028\u3000\ufeff\u200b ab",
    "aaaa!!.. ",
    "😀👩‍👩‍👧🇫🇷e\u0301\u0327a",
    "ابتثا नमस्ते ไทย 한국어 ひらがな",
    "<>end/script&0xE4\udfff",
)
SEARCH = SearchConfig(beam_size=3, length_penalty=0.8)


def random_texts(count):
    """Return texts of one alphabet or of all characters that Unicode had assigned early on."""
    rng = random.Random(0)
    assigned = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.ucd_3_2_0.category(chr(code)) not in ("Cn", "Cs", "Co")
    ]
    alphabets = [*ALPHABETS, "".join(ALPHABETS)]
    texts = []
    for n in range(count):
        alphabet = assigned if n % 5 == 0 else rng.choice(alphabets)
        texts.append("".join(rng.choices(alphabet, k=rng.randrange(14))))
    return texts


def tokenizer_fixture():
    """Return tokenizers, texts and token ids with what the Python tokenizer makes of them."""
    pairs = load_phrasebook("zh").train[:300] + load_phrasebook("fr").train[:300]
    corpus = [text for pair in pairs for text in (pair.source, pair.target)]
    corpus += [*TEXTS, *REPETITIONS] * 40
    texts = [*TEXTS, *REPETITIONS, "", *corpus[:600], *random_texts(2000)]
    return {
        kind: _tokenizer_cases(train_tokenizer(corpus, kind, vocab_size=900), texts)
        for kind in ("bpe", "words", "characters")
    }


def _tokenizer_cases(tokenizer: Tokenizer, texts):
    rng = random.Random(1)
    sequences = [rng.choices(range(len(tokenizer)), k=rng.randrange(9)) for _ in range(300)]
    sequences += [rng.choices(range(4, 260), k=rng.randrange(7)) for _ in range(300)]  # bytes
    sequences += [[4 + byte for byte in "\ufeffa".encode()], [4 + 0xE7, 4 + 0xE7, 4 + 0x8C]]
    decoded = [tokenizer.decode(ids) for ids in sequences]
    return {
        "record": {
            "kind": tokenizer.kind,
            "pieces": tokenizer.pieces,
            "merges": tokenizer.merges,
        },
        "texts": texts,
        "stripped": [text.strip() for text in texts],
        "ids": tokenizer.encode_batch(texts),
        "words": [[text[slice(*span)] for span in tokenizer.word_spans(text)] for text in texts],
        "sequences": sequences,
        "decoded": decoded,
        "assigned": [
            assign_words(tokenizer.offsets(ids), tokenizer.word_spans(text))
            for ids, text in zip(sequences, decoded, strict=True)
        ],
    }


def untrained(**settings):
    """Return a tiny model with peaked predictions, and its tokenizers."""
    torch.manual_seed(1)
    separate = settings.pop("separate", False)
    source = train_tokenizer(TEXTS, "bpe", vocab_size=310)
    target = train_tokenizer(["a b c d", *TEXTS], "characters", 300) if separate else source
    config = ModelConfig(
        **{"width": 12, "layers": 2, "heads": 3, "ffn_width": 10, "dropout": 0.0} | settings
    )
    model = build(config, (len(source), len(target))).eval()
    for parameter in model.parameters():
        parameter.data *= 1.5
        if parameter.ndim == 1:
            parameter.data += torch.rand_like(parameter) / 4
    return model, Tokenizers(source, target)


def gelu():
    model, tokenizers = untrained(norm="pre")
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.feed_forward.activation = "gelu"
    return model, tokenizers


def interleaved_rotary():
    model, tokenizers = untrained(positions="rotary", width=24, norm="pre")
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.attention.positions = Rotary(4, base=100.0, interleaved=True)
    return model, tokenizers


def wide_additive():
    model, tokenizers = untrained()
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.attention.score = Additive(4, hidden_width=7)
    return model, tokenizers


def capped():
    model, tokenizers = untrained()
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.attention.score = ScaledDot(scale=0.7, cap=1.5)
    return model, tokenizers


MODELS = {
    "post-norm, sinusoidal": lambda: untrained(norm="post"),
    "pre-norm, learned, too short": lambda: untrained(
        norm="pre", positions="learned", max_positions=11
    ),
    "rotary, grouped queries": lambda: untrained(
        positions="rotary", width=24, heads=6, key_heads=2
    ),
    "rotary, interleaved": interleaved_rotary,
    "ALiBi, multi-query": lambda: untrained(positions="alibi", key_heads=1),
    "two vocabularies": lambda: untrained(separate=True, tie_output=False),
    "odd width": lambda: untrained(width=15, share_embeddings=False),
    "GELU": gelu,
    "dot": lambda: untrained(score="dot"),
    "soft cap": capped,
    "cosine": lambda: untrained(score="cosine", positions="rotary", width=24),
    "gaussian": lambda: untrained(score="gaussian"),
    "additive": lambda: untrained(score="additive", key_heads=1),
    "additive, wide": wide_additive,
    "recurrent, additive": lambda: untrained(kind="recurrent", score="additive"),
    "recurrent, bilinear": lambda: untrained(kind="recurrent", score="bilinear", tie_output=False),
    "recurrent, cosine": lambda: untrained(kind="recurrent", score="cosine", layers=1),
    "recurrent, without attention": lambda: untrained(kind="recurrent", use_attention=False),
    "bilinear": lambda: untrained(score="bilinear", key_heads=1, heads=2),
}


def model_fixture(model, tokenizers, texts, search=SEARCH, quantization="float32", traces=1):
    """Return a translator as the page's data, and the translations and traces of torch."""
    data = describe_translator(model, tokenizers, search, name="tiny", quantization=quantization)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "sentences must have at most")
        best = [translations[0] for translations in translate(model, tokenizers, texts, search)]
        greedy = translate(model, tokenizers, texts, SearchConfig(beam_size=1))
    return {
        "record": data.record,
        "parameters": data.parameters,
        "texts": texts,
        "beam": [{"tokens": one.tokens, "text": one.text, "score": one.score} for one in best],
        "greedy": [{"tokens": one.tokens, "text": one.text} for (one,) in greedy],
        "traces": [
            _trace_fixture(model, tokenizers, text.strip(), list(one.tokens))
            for text, one in list(zip(texts, best, strict=True))[:traces]
        ],
    }


def _trace_fixture(model, tokenizers, text, tokens):
    trace = trace_translation(model, tokenizers, text, tokens, name="tiny")
    record = trace.to_dict()
    weights = [attention_map.weights.flatten().tolist() for attention_map in trace.maps]
    return {
        "tokens": record["tokens"],
        "title": record["title"],
        "maps": [
            {name: one.get(name) for name in ("name", "kind", "queries", "keys", "query_inputs")}
            | {"heads": one["heads"], "shape": one["shape"], "values": values}
            for one, values in zip(record["maps"], weights, strict=True)
        ],
    }
