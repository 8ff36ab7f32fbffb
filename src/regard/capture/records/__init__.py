"""Records of attention: the weights of one call or their summary, joined over its steps.

`record.py` has the record, `keys.py` what it keeps of the keys, and `summary.py` what is kept
instead of weights. `cached_keys.py` recognises the next step of a generation, `parts.py` the next
part of one softmax, and `kinds.py` decides between self-, causal and cross-attention.
"""

from regard.capture.records.kinds import classify, classify_windows
from regard.capture.records.record import KEEP_CHOICES, CapturedAttention, Keep
from regard.capture.records.summary import join_summaries, summarize_call

__all__ = [
    "KEEP_CHOICES",
    "CapturedAttention",
    "Keep",
    "classify",
    "classify_windows",
    "join_summaries",
    "summarize_call",
]
