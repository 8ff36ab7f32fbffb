"""What weights tell: how far, how sharply and in which role a head looks, and alignments.

Weights show where values were read from, not why a model decided as it did.
"""

from regard.insight.alignment import BestHead as BestHead
from regard.insight.alignment import align as align
from regard.insight.alignment import alignment_error_rate as alignment_error_rate
from regard.insight.alignment import best_head as best_head
from regard.insight.alignment import read_alignment as read_alignment
from regard.insight.alignment import symmetrise as symmetrise
