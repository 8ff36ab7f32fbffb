"""Run the ONNX cases of operators: `python onnx_cases.py Attention` prints which passed."""

import json
import os
import sys
import warnings
from importlib import import_module

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import ml_dtypes
import numpy as np
import onnx
import torch
from einops import rearrange
from onnx.backend.test.case import node as standard
from onnx.backend.test.runner import Runner
from torch import Tensor

from regard.attention import KVCache, ScaledDot, look
from regard.masks import Mask, as_mask, causal, lengths, window
from regard.positions import rotate

RAW, CAPPED, BIASED, SOFTMAX = range(4)  # the values of qk_matmul_output_mode


def attention(inputs: dict[str, Tensor], attributes: dict[str, object]) -> dict[str, Tensor]:
    """Compute one Attention node by `look`, a `KVCache` and masks."""
    queries, keys, values = (inputs[name] for name in "QKV")
    flat = queries.ndim == 3
    if flat:
        queries = rearrange(queries, "b q (h d) -> b h q d", h=attributes["q_num_heads"])
        keys, values = (
            rearrange(x, "b k (h d) -> b h k d", h=attributes["kv_num_heads"])
            for x in (keys, values)
        )
    cache = KVCache()
    if "past_key" in inputs:
        cache = cache.extend(inputs["past_key"], inputs["past_value"])
    offset = len(cache)
    cache = cache.extend(keys, values)
    if "nonpad_kv_seqlen" in inputs:
        offset = inputs["nonpad_kv_seqlen"] - queries.shape[-2]
    score = ScaledDot(attributes.get("scale"), attributes.get("softcap"))
    mask, bias = masks_and_bias(inputs, attributes, offset, len(cache))
    context, weights = look(queries, cache.keys, cache.values, score=score, mask=mask, bias=bias)
    return {
        "Y": rearrange(context, "b h q d -> b q (h d)") if flat else context,
        "present_key": cache.keys,
        "present_value": cache.values,
        "qk_matmul_output": intermediate(
            attributes, score, queries, cache.keys, mask, bias, weights
        ),
    }


def masks_and_bias(inputs, attributes, offset, keys) -> tuple[Mask | None, Tensor | None]:
    parts: list[Mask] = []
    bias = None
    attn_mask = inputs.get("attn_mask")
    if attn_mask is not None:
        if attn_mask.ndim == 1:
            attn_mask = attn_mask[None]
        if attn_mask.ndim == 3:
            attn_mask = attn_mask[
                None
            ]  # the standard aligns masks from the right: (head, query, key)
        missing = keys - attn_mask.shape[-1]
        if attn_mask.dtype == torch.bool:
            parts.append(as_mask(torch.nn.functional.pad(attn_mask, (0, missing), value=False)))
        else:
            bias = torch.nn.functional.pad(attn_mask, (0, missing), value=-torch.inf)
    if attributes.get("is_causal"):
        parts.append(causal(align=offset))
    behind, ahead = (attributes.get(f"{side}_window_size", -1) for side in ("left", "right"))
    if behind >= 0 or ahead >= 0:
        unlimited = 2 * keys + 1
        parts.append(
            window(
                behind if behind >= 0 else unlimited,
                ahead if ahead >= 0 else unlimited,
                align=offset,
            )
        )
    if "nonpad_kv_seqlen" in inputs:
        parts.append(lengths(inputs["nonpad_kv_seqlen"]))
    mask = None
    for part in parts:
        mask = part if mask is None else mask & part
    return mask, bias


def intermediate(attributes, score, queries, keys, mask, bias, weights) -> Tensor:
    """Return the standard's optional output between the two matrix products."""
    mode = attributes.get("qk_matmul_output_mode", RAW)
    if mode == SOFTMAX:
        return weights
    groups = queries.shape[1] // keys.shape[1]
    scores = score(queries, keys.repeat_interleave(groups, dim=1))
    if mode == BIASED:
        scores = scores if bias is None else scores + bias
        if mask is not None:
            allowed = mask.to_tensor(*scores.shape[-2:], batch=tuple(scores.shape[:2]))
            scores = scores.masked_fill(~allowed, -torch.inf)
    return scores.to(queries.dtype)


def rotary(inputs: dict[str, Tensor], attributes: dict[str, object]) -> dict[str, Tensor]:
    """Compute one RotaryEmbedding node by `rotate`."""
    vectors, cosines, sines = (inputs[name] for name in ("input", "cos_cache", "sin_cache"))
    flat = vectors.ndim == 3
    if flat:
        vectors = rearrange(vectors, "b n (h d) -> b h n d", h=attributes["num_heads"])
    if "position_ids" in inputs:
        cosines, sines = cosines[inputs["position_ids"]], sines[inputs["position_ids"]]
    interleaved = bool(attributes.get("interleaved", 0))
    rotated = rotate(vectors, cosines[:, None], sines[:, None], interleaved)
    return {"output": rearrange(rotated, "b h n d -> b n (h d)") if flat else rotated}


def to_torch(array: np.ndarray) -> Tensor:
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(np.array(array))


def to_numpy(tensor: Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        return tensor.float().numpy().astype(ml_dtypes.bfloat16)
    return tensor.numpy()


def run(case) -> None:
    """Raise an AssertionError unless the outputs agree, by the standard's own comparison."""
    node = case.model.graph.node[0]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    compute = {"Attention": attention, "RotaryEmbedding": rotary}[node.op_type]
    for arrays, expected in case.data_sets:
        names = [name for name in node.input if name]
        inputs = dict(zip(names, map(to_torch, arrays), strict=True))
        outputs = compute(inputs, attributes)
        computed = [to_numpy(outputs[name]) for name in node.output if name]
        Runner.assert_similar_outputs(expected, computed, rtol=case.rtol, atol=case.atol)


def cases_of(operator: str) -> list:
    """Collect the cases of one operator, without those of the two hundred others."""
    module = f"{standard.__name__}.{operator.lower()}"
    standard.import_recursive = lambda package: import_module(module)
    return standard.collect_testcases(operator)


def outcome(operator: str) -> dict[str, object]:
    """Return the names of the cases that passed, and the errors of those that failed."""
    passed, failed = [], {}
    for case in cases_of(operator):
        if len(case.model.graph.node) > 1 or case.model.graph.node[0].op_type != operator:
            continue  # the same case again, decomposed into smaller operators
        try:
            run(case)
            passed.append(case.name)
        except Exception as error:
            failed[case.name] = f"{type(error).__name__}: {error}"[:600]
    return {"passed": passed, "failed": failed}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({operator: outcome(operator) for operator in sys.argv[1:]}))
