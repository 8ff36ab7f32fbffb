"""How much one request may ask for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most of everything; what is above is refused with a sentence."""

    characters: int = 1000  # of a text
    tokens: int = 200  # of a text, once it is in pieces
    beams: int = 12
    nbest: int = 12
    body: int = 1 << 18  # bytes of a request
    trace: int = 1 << 24  # bytes of a file of traces, packed or not
    traces: int = 200  # of one file
    cells: int = 20_000  # queries times keys of the playground


LIMITS = Limits()
