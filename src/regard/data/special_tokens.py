"""Token ids with a fixed meaning in every vocabulary: padding, start, end, unknown."""

PAD, BOS, EOS, UNK = range(4)
SPECIAL_TOKENS = ("<padding>", "<start>", "<end>", "<unknown>")
"""Their names in pictures; text that looks like one of them is never read as one."""
