"""Capture of the attention weights of any PyTorch model, without changing what it computes.

`watch(model)` is a context manager around any forward pass; `Capture` is what it yields. The way of
a call from the model to the printed table::

    a torch function of the model
      -> attention_mode.py    AttentionMode runs it unchanged, and has the call examined
      -> recogniser.py        AttentionRecogniser: is it attention? Four trackers know its tensors:
           axes/                which axis is the batch, a head, a window, a query, a key
           rows/                where each element was before it was moved, to place windows
           lineage.py           which rows a tensor was projected from, whether a cache grew
           weights/             which tensors are weights on their way to the values
      -> recognised_attention.py    RecognisedAttention: the call (calls/), its axes (layout/),
                                    and the module and line (call_site/)
      -> capture_mode.py      CaptureMode passes it on
      -> recorder.py          Recorder makes a record of it (records/), or extends one
      -> capture.py           Capture: the records, printed by capture_table.py, and to_trace.py

1. **Modes**. A `TorchFunctionMode` (`attention_mode.py`) sees every torch function, also those
   imported by name. It runs the function unchanged and then examines arguments and result, isolated
   from autograd and from other modes (`modes.py`). Compiled models run eagerly meanwhile, and
   regard's own attention notifies the mode, which is registered as its observer. `capture_mode.py`
   records what is recognised, `gradients.py` adds its gradient, and `regard.edit` replaces its
   result. An error while capturing is noted in the `Capture` and never reaches the model.
2. **Recognition** (`recogniser.py`). Five kinds of attention are recognised:
   `scaled_dot_product_attention` (that of `nn.MultiheadAttention` too, by running a twin of its
   Python code) and `flex_attention` (`fused_functions.py`), regard's own attention, attention
   functions of transformers (`attention_interface.py`), and weights that the model computes itself
   (`weights/`): a softmax or another normaliser of scores is followed through dropout, masks,
   reshapes, mixing of heads and gates to the product with values, which `functions/equations.py`
   reads however it was written. A softmax over experts, features or classes is no attention over
   positions, nor is one whose context queries are multiplied with, as in linear attention: these
   are listed apart; so is one that never met values. In graphs, weights of edges are normalised and
   summed by index.
3. **Calls** (`calls/`). Each becomes a `CapturedCall`, which holds the inputs and recomputes any
   block of the weights (batch, head, query, key), also where a fused kernel never computed them.
4. **Axes** (`axes/`, `layout/`, `rows/`). Every axis is labelled with its origin, which is followed
   through views, products and joins. Heads were split from a projection, windows from the rows that
   are attended to; the rest is the batch. Where nothing is known, axes are taken in torch's order,
   and the record says which are uncertain. Which positions are in a window follows from running the
   functions that arranged its rows again, on indices.
5. **Lineage** (`lineage.py`, `call_site/`). Where queries and keys were projected from decides
   whether attention is "self", "causal" or "cross"; whether keys were appended to a cache decides
   whether a call is a generation step. The Python stack names the module and line that called; in
   exported graphs, the module that the running node comes from.
6. **Records** (`recorder.py`, `records/`). The recorder makes a `CapturedAttention` of each call,
   with the weights or their summary, or appends the call to the record that it continues: as the
   next step of a generation, the next chunk of queries, or another part of one softmax.
   `capture.py` holds the records of one `watch`, `capture_table.py` prints them, and
   `diagnostics.py` has what was seen and is not among them.
7. **Trace** (`to_trace.py`). `Capture.trace(source, target)` selects one batch item, puts windows
   back to positions (`windows.py`) and attaches tokens (`token_lists.py`): the `regard.trace.Trace`
   that every picture and analysis reads.

docs/architecture.md follows a softmax through these files, line by line of a model.

`huggingface.py` has `trace_hf`, all of this in one call for a model of transformers, and
`hf_tokens.py` the tokens of such a model's inputs. Neither imports transformers.

`recover.py` is independent of all this: `recover_weights` computes the weights of any function that
is linear in its values, for what is not recognised.

**Private names of torch**, tested with torch 2.13.0. They may change with any release; a test
checks that this list is complete and that the installed torch has them::

    attention_mode.py
      torch._C._current_graph_task_id                       skip recomputation in the backward pass
      torch._C._set_grad_enabled                            computes nothing: skipped
    modes.py
      torch.overrides._get_current_function_mode_stack      leave the stack of modes in any order,
      torch.overrides._pop_mode                             as asyncio tasks do; put edits below
      torch.overrides._push_mode                            captures
      torch.utils._device.DeviceContext                     the default device stays below them
      torch._C._len_torch_dispatch_stack                    is any dispatch mode active?
      torch._ops._len_torch_dispatch_stack_pre_dispatch     the same during export
      torch.utils._python_dispatch._disable_current_modes   hide recomputation from flop counters,
                                                            selective checkpointing and export
    calls/score_copy.py
      torch.nn.Module._buffers                              copy a score with buffers of its own
      torch.nn.Module._modules
      torch._dynamo.OptimizedModule._orig_mod               the module that was compiled
    call_site/module_names.py
      torch._dynamo.OptimizedModule._orig_mod               leave the wrapper out of names
      torch.nn.Module._buffers                              which tensors are constants
      torch.nn.Module._parameters
    call_site/frames.py
      torch.nn.Module._call_impl                            recognise the frame of a module's call
    calls/mask_analysis.py
      torch.nn.attention.bias.CausalBias._materialize       read causal biases as tensors
    axes/label_store.py
      torch.Tensor._version                                 were buffers, as KV caches, written to?
    weights/normalisers.py
      torch._masked_softmax                                 recognised as a softmax
      torch.ops.aten._sparse_softmax                        noted as a softmax
    weights/tracker.py
      torch._masked_softmax                                 where its argument dim is
    functions/names.py
      torch.ops.aten._unsafe_view                           recognised as a view, in exported graphs
    functions/arguments.py
      torch._softmax                                        recognised as a softmax
      torch.ops.aten._safe_softmax                          the same
      torch._segment_reduce                                 recognised as a sum by index
    calls/flex.py
      torch.nn.attention.flex_attention._vmap_for_bhqkv     evaluate score_mod and mask_mod for all
      torch._dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex   positions at once
    ../_support/torch_modes.py
      torch._C._functorch                                   is torch.func or forward-mode
      torch.autograd.forward_ad._current_level              differentiation active?
      torch._C._get_dispatch_mode                           are operations recorded, or tensors
      torch._C._TorchDispatchModeKey                        fake, so that values cannot be read?
      torch._subclasses.fake_tensor.FakeTensor              the same, outside of their mode

Public names whose implementation matters: `torch.nn.functional.multi_head_attention_forward` must
be a Python function that calls the global `has_torch_function` and takes `num_heads`, `bias_k` and
`add_zero_attn`; the higher-order operator `flex_attention` must pass its arguments in the order of
`FlexCall`. `torch.multiprocessing.reductions.StorageWeakRef` and
`torch.utils.weak.WeakTensorKeyDictionary` are undocumented, and so are weak references to tensors.
"""

from regard.capture.capture import Capture
from regard.capture.capture_mode import watch
from regard.capture.gradients import GradientCapture, Sources, watch_gradients
from regard.capture.huggingface import trace_hf
from regard.capture.records import CapturedAttention
from regard.capture.recover import recover_weights
from regard.capture.windows import find_unplaced, windows_to_positions

__all__ = [
    "Capture",
    "CapturedAttention",
    "GradientCapture",
    "Sources",
    "find_unplaced",
    "recover_weights",
    "trace_hf",
    "watch",
    "watch_gradients",
    "windows_to_positions",
]
