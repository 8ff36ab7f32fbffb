"""The gallery: each figure of the chapter on attention, drawn by the code that it shows."""

FIGURES = (
    "kernel_regression",
    "scores",
    "masked_softmax",
    "five_tokens",
    "cross_attention",
    "self_attention",
    "bahdanau",
    "positions",
    "three_attentions",
    "residual_and_norm",
    "complexity",
    "while_learning",
    "words_and_image",
    "induction_heads",
)
"""Each is a module of this package with a function `draw`, and a file of texts, in this order."""

LANGUAGES = {"en": "English", "zh": "中文"}
