"""What weights tell: how far, how sharply and in which role a head looks, and alignments.

Weights show where values were read from, not why a model decided as it did.
"""

from regard.analysis.alignment import BestHead as BestHead
from regard.analysis.alignment import Reading as Reading
from regard.analysis.alignment import align as align
from regard.analysis.alignment import alignment_error_rate as alignment_error_rate
from regard.analysis.alignment import best_head as best_head
from regard.analysis.alignment import best_reading as best_reading
from regard.analysis.alignment import between_words as between_words
from regard.analysis.alignment import read_alignment as read_alignment
from regard.analysis.alignment import symmetrise as symmetrise
from regard.analysis.difference import Change as Change
from regard.analysis.difference import difference as difference
from regard.analysis.flow import rollout as rollout
from regard.analysis.flow import similarity as similarity
from regard.analysis.flow import value_weighted as value_weighted
from regard.analysis.heads import Heads as Heads
from regard.analysis.heads import heads as heads
from regard.analysis.heads import table as table
