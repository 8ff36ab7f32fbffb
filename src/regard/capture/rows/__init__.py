"""Where the rows of each tensor come from, element by element.

The labels of axes say where an axis comes from, as long as it is one. Chunks that overlap,
diagonals that were skewed and rows that an index picked have no such axis. `tracker.py` therefore
notes which functions arranged the elements of a tensor, `sources.py` runs them again on indices if
it matters, and `positions.py` derives the positions of windows from these.
"""

from regard.capture.rows.positions import (
    learned_keys,
    positions_of_vectors,
    positions_of_weights,
)
from regard.capture.rows.tracker import RowTracker

__all__ = ["RowTracker", "learned_keys", "positions_of_vectors", "positions_of_weights"]
