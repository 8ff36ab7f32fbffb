"""Records of attention: the weights of one call or their summary, joined over its steps.

`record.py` has the record, and `stored_weights.py` its weights, in full or summarized
(`summary.py`). `builder.py` appends calls to a record: it recognises the next step of a generation
by its keys (`cached_keys.py`), and joins parts of one softmax (`parts.py`), also where one of them
is within windows (`window_parts.py`). `key_data.py` has what is kept for each key, and `kinds.py`
decides between self-, causal and cross-attention.
"""

from regard.capture.records.builder import RecordBuilder
from regard.capture.records.kinds import classify, classify_windows
from regard.capture.records.record import CapturedAttention
from regard.capture.records.stored_weights import KEEP_CHOICES, Keep, StoredWeights
from regard.capture.records.summary import join_summaries, summarize_call

__all__ = [
    "KEEP_CHOICES",
    "CapturedAttention",
    "Keep",
    "RecordBuilder",
    "StoredWeights",
    "classify",
    "classify_windows",
    "join_summaries",
    "summarize_call",
]
