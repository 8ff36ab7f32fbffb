"""Attention as it is written in the wild: small modules in many styles, each with its true weights.

Each theme file registers patterns with `base.pattern`; `PATTERNS` has them all, by id. A pattern
collects its true weights by itself, in an arrangement written by hand: see `base.Attention.note`.
`../test_patterns.py` checks that truth without regard, and then that `regard.watch` finds it.
"""

from importlib import import_module

from capture.patterns.base import PATTERNS, Attention, Pattern, Sizes

THEMES = (
    *("layouts", "products", "heads", "sdpa", "normalisers", "after_softmax", "windows", "cross"),
    *("pooling", "assembled", "graphs", "selected", "pairs", "not_attention", "mixtures"),
    *("unresolved", "running", "parts", "late_division", "ambiguous", "learned_keys"),
    *("reordered", "additive", "token_mixing"),
)

for _theme in THEMES:
    import_module(f"capture.patterns.{_theme}")

__all__ = ["PATTERNS", "THEMES", "Attention", "Pattern", "Sizes"]
