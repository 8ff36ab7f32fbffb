"""Token ids with a fixed meaning in every vocabulary: padding, start, end, unknown."""

PAD, BOS, EOS, UNK = range(4)
"""Ids of padding, start of sequence, end of sequence and unknown token."""

SPECIAL_TOKENS = ("<padding>", "<start>", "<end>", "<unknown>")
"""Their names in pictures; text that looks like one of them is never read as one."""
