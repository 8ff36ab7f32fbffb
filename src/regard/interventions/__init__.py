"""Interventions: change the attention of any PyTorch model while it runs, and measure the effect.

`edit(model)` is a context manager like `regard.watch`, built on the same recognition. How a call
is edited:

1. `edit_mode.py`: `EditMode` is an `AttentionMode`, which runs every torch function unchanged. Of a
   recognised call in a module with edits it makes an `EditableAttention`.
2. `editable.py`: `EditableAttention` has the weights and the context (batch, head, query, …) of
   the call with gradients. For fused calls, weights are computed in addition to the kernel's
   result; for attention that the model computes itself, the product with values is run again, and
   over the edges of a graph (`edges.py`), the sum by index, too. Only the elements of edited heads
   are replaced in the result.
3. `operations.py`: the operations, applied in order: ablate, block, set weights or contexts,
   temperature, gate.
4. `edits.py`: `Edits` and `Selection`, which choose modules and heads, and the errors for edits
   that matched nothing. `tokens.py` finds positions by the text of tokens, and `positions.py` those
   of each call: during generation, and where a model computes queries chunk by chunk.

`reference.py` has the contexts of another run, and means over a reference batch. The edited weights
are registered with the capture package, so that a `watch` records them.
"""

from regard.interventions.edit_mode import edit
from regard.interventions.editable import EditableAttention
from regard.interventions.edits import Edits, Selection
from regard.interventions.operations import Inspection, Operation
from regard.interventions.reference import call_model, head_contexts, reference_means
from regard.interventions.tokens import tokens_of

__all__ = [
    "EditableAttention",
    "Edits",
    "Inspection",
    "Operation",
    "Selection",
    "call_model",
    "edit",
    "head_contexts",
    "reference_means",
    "tokens_of",
]
