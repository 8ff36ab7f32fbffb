"""The kind of attention: self, causal or cross."""

from regard.capture.calls import CapturedCall
from regard.capture.layout import CallAxes
from regard.trace import Kind


def classify(
    call: CapturedCall,
    same_rows: bool | None,
    from_cache: bool = False,
    leading_keys: int = 0,
) -> Kind:
    """Return the kind of attention: by where queries and keys come from, else by their numbers.

    A single query of the same text as the keys is at its end if these came from a cache. Several
    are if their mask is causal. Otherwise queries may be anywhere in it, as a class token is, and
    count as a text of their own; so do summaries of its rows that serve as keys. Learned keys,
    `leading_keys` at the start and `extra_keys` of the call at the end, do not count.
    """
    queries, keys = call.shape[2], call.shape[3] - call.extra_keys
    if same_rows is None:
        same_rows = queries == keys or call.is_causal
    if not same_rows:
        return "cross"
    if call.is_causal or (queries == 1 < keys and from_cache):
        return "causal"
    return "self" if queries == keys - leading_keys else "cross"


def classify_windows(call: CapturedCall, axes: CallAxes, same_rows: bool | None) -> Kind:
    """Return the kind of attention within windows, whose queries are not the last of the keys.

    Queries that have positions of their own, as pooled rows have, are a text of their own.
    """
    known = axes.positions
    if known is not None and not known.is_over_same_rows:
        same_rows = same_rows and known.num_queries == known.num_keys
    if same_rows is None:
        same_rows = axes.is_over_same_rows
    if not same_rows:
        return "cross"
    return "causal" if call.is_causal and call.shape[2] == call.shape[3] else "self"
