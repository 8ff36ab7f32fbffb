"""How much one request may ask for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most of everything; what is above is refused with a sentence."""

    max_characters: int = 1000  # of a text
    max_tokens: int = 200  # of a text, once it is in pieces
    max_beam_size: int = 12
    max_n_best: int = 12
    max_body_bytes: int = 1 << 18  # bytes of a request
    max_trace_bytes: int = 1 << 24  # bytes of a file of traces, packed or not
    max_traces_per_file: int = 200  # of one file
    max_attention_cells: int = 20_000  # queries times keys of the playground


LIMITS = Limits()
