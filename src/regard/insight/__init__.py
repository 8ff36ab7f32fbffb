"""What weights tell: how far, how sharply and in which role a head looks, and alignments.

Weights show where values were read from, not why a model decided as it did.
"""

from regard.insight.alignment import BestHead as BestHead
from regard.insight.alignment import Reading as Reading
from regard.insight.alignment import align as align
from regard.insight.alignment import alignment_error_rate as alignment_error_rate
from regard.insight.alignment import best_head as best_head
from regard.insight.alignment import best_reading as best_reading
from regard.insight.alignment import between_words as between_words
from regard.insight.alignment import read_alignment as read_alignment
from regard.insight.alignment import symmetrise as symmetrise
from regard.insight.difference import Change as Change
from regard.insight.difference import difference as difference
from regard.insight.flow import rollout as rollout
from regard.insight.flow import similarity as similarity
from regard.insight.flow import value_weighted as value_weighted
from regard.insight.heads import Heads as Heads
from regard.insight.heads import heads as heads
from regard.insight.heads import table as table
