import math

import pytest
import torch
from starlette.exceptions import HTTPException

import regard
from regard import masks
from regard.attention import NadarayaWatson, make_score
from regard.explorer.playground import attend_with_steps, playground_options
from regard.explorer.schemas import AttendRequest
from regard.positions import ALiBi, Rotary, Sinusoidal

QUERIES, KEYS, WIDTH = 3, 5, 4
SCORES = playground_options()["scores"]
PARAMETER_FREE = [name for name in SCORES if name not in ("bilinear", "additive")]


def vectors(count, width=WIDTH, seed=0):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed)).tolist()


def attend(**fields):
    body = {"queries": vectors(QUERIES), "keys": vectors(KEYS, seed=1), "score": "dot"}
    return attend_with_steps(AttendRequest.model_validate(body | fields))


def to_tensor(rows):
    values = [[-math.inf if value is None else value for value in row] for row in rows]
    return torch.tensor(values, dtype=torch.float64)


def assert_close(rows, expected):
    torch.testing.assert_close(to_tensor(rows), expected.double(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("score", PARAMETER_FREE)
def test_score_weights_and_context_equal_those_of_the_library(score):
    values = vectors(KEYS, 2, seed=2)
    steps = attend(score=score, values=values)
    queries, keys = to_tensor(vectors(QUERIES)), to_tensor(vectors(KEYS, seed=1))
    assert_close(steps["scores"], make_score(score)(queries, keys))
    context, weights = regard.look(queries, keys, to_tensor(values), score=score, backend="dense")
    assert_close(steps["weights"], weights)
    assert_close(steps["context"], context)


def test_bilinear_score_returns_the_matrix_it_uses():
    keys = vectors(KEYS, 2, seed=1)
    steps = attend(score="bilinear", keys=keys)
    matrix = to_tensor(steps["formula"]["parameters"]["W"])
    assert_close(steps["scores"], to_tensor(steps["queries"]) @ matrix @ to_tensor(keys).T)


def test_additive_score_returns_the_parameters_it_uses():
    keys = vectors(KEYS, 2, seed=1)
    steps = attend(score="additive", keys=keys)
    parameters = steps["formula"]["parameters"]
    w, u = to_tensor(parameters["W"]), to_tensor(parameters["U"])
    v = torch.tensor(parameters["v"], dtype=torch.float64)
    hidden = (to_tensor(steps["queries"]) @ w.T)[:, None] + (to_tensor(keys) @ u.T)[None]
    assert_close(steps["scores"], hidden.tanh() @ v)


def test_parameters_of_a_score_do_not_depend_on_the_global_seed():
    first = attend(score="additive")
    torch.manual_seed(99)
    assert attend(score="additive") == first


@pytest.mark.parametrize("temperature", [0.25, 3.0])
def test_temperature_divides_the_scores(temperature):
    steps = attend(temperature=temperature)
    scaled = to_tensor(steps["scores"]) / temperature
    assert_close(steps["biased_scores"], scaled)
    assert_close(steps["weights"], scaled.softmax(-1))
    assert steps["scores"] == attend()["scores"]


@pytest.mark.parametrize(
    ("request_mask", "mask"),
    [
        ({"kind": "causal"}, masks.causal(align="first")),
        ({"kind": "window", "size": 1}, masks.window(1, align="first")),
        ({"kind": "lengths", "lengths": [2]}, masks.lengths(2)),
        ({"kind": "lengths", "lengths": [0, 5, 3]}, masks.lengths([0, 5, 3])),
    ],
)
def test_masks_equal_those_of_the_library(request_mask, mask):
    steps = attend(mask=request_mask)
    assert steps["mask"] == mask.to_tensor(QUERIES, KEYS).tolist()
    queries, keys = to_tensor(vectors(QUERIES)), to_tensor(vectors(KEYS, seed=1))
    assert_close(steps["weights"], regard.weights(queries, keys, score="dot", mask=mask))
    assert steps["scores"] == attend()["scores"]  # before the mask


def test_fully_masked_query_gets_zero_weights_and_context():
    cells = [[True, False, True, False, False], [False] * 5, [True] * 5]
    steps = attend(mask={"kind": "cells", "cells": cells})
    assert steps["mask"] == cells
    assert steps["weights"][1] == [0.0] * 5 and steps["context"][1] == [0.0] * WIDTH
    assert [weight > 0 for weight in steps["weights"][0]] == cells[0]


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
def test_positions_change_queries_and_keys_but_not_values(kind):
    steps = attend(positions=kind)
    encode = {"sinusoidal": Sinusoidal, "rotary": Rotary}[kind](WIDTH)
    queries, keys = (encode(to_tensor(rows)) for rows in (vectors(QUERIES), vectors(KEYS, seed=1)))
    assert_close(steps["queries"], queries)
    assert_close(steps["keys"], keys)
    assert_close(steps["scores"], queries @ keys.T)
    values = to_tensor(vectors(KEYS, seed=1))  # the keys as given
    assert_close(steps["context"], to_tensor(steps["weights"]) @ values)


def test_alibi_adds_a_bias_that_falls_with_distance():
    steps = attend(positions="alibi", temperature=2.0)
    bias = ALiBi(8)(QUERIES, KEYS, offset=0)[0, 0]
    assert_close(steps["biased_scores"], to_tensor(steps["scores"]) / 2 + bias)
    assert_close(steps["weights"], to_tensor(steps["biased_scores"]).softmax(-1))
    assert steps["formula"]["parameters"]["slope"] == 0.5


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar", "triangular", "epanechnikov", "average"])
def test_kernel_scores_equal_nadaraya_watson_regression(kernel):
    xs, ys = [[0.1], [0.4], [0.8], [1.5]], [[1.0], [3.0], [2.0], [0.0]]
    grid = [[n / 10] for n in range(20)]
    steps = attend(queries=grid, keys=xs, values=ys, score=kernel, bandwidth=0.3)
    regression = NadarayaWatson(kernel, 0.3).fit(to_tensor(xs), to_tensor(ys))
    assert_close(steps["context"], regression.predict(to_tensor(grid)))
    assert_close(steps["weights"], regression.weights(to_tensor(grid)))


def test_minus_infinity_is_null():
    steps = attend(queries=[[0.0]], keys=[[0.5], [9.0]], score="boxcar")
    assert steps["scores"] == [[0.0, None]] and steps["biased_scores"] == [[0.0, None]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"queries": [[1.0], [1.0, 2.0]]}, "queries must all have the same width"),
        ({"queries": [[1.0]]}, "queries and keys must have the same width"),
        ({"values": [[1.0]]}, "values must be as many as keys, 5, but there are 1"),
        ({"mask": {"kind": "window"}}, "mask.size is required"),
        ({"mask": {"kind": "lengths"}}, "mask.lengths must be one integer or one for each of 3"),
        ({"mask": {"kind": "lengths", "lengths": []}}, "mask.lengths must be"),
        ({"mask": {"kind": "lengths", "lengths": [6]}}, "from 0 to 5"),
        ({"mask": {"kind": "cells"}}, "mask.cells must be 3 rows of 5 booleans"),
        ({"mask": {"kind": "cells", "cells": [[True]]}}, "mask.cells must be 3 rows of 5 booleans"),
        (
            {"queries": [[1.0] * 3], "keys": [[1.0] * 3], "positions": "rotary"},
            "the width of queries must be even, but it is 3",
        ),
    ],
)
def test_inconsistent_request_is_422(fields, message):
    with pytest.raises(HTTPException, match=message) as error:
        attend(**fields)
    assert error.value.status_code == 422


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("size", [1e6, -1e6, 0.0])
def test_weights_stay_finite_at_the_limits_of_a_request(client, score, size):
    body = {
        "queries": [[size] * 128],
        "keys": [[1e6] * 128, [0.0] * 128],
        "score": score,
        "bandwidth": 1e-6,
        "temperature": 1e-6,
        "positions": "sinusoidal",
    }
    response = client.post("/api/attend", json=body)
    assert response.status_code == 200
    has_compact_support = score in ("boxcar", "triangular", "epanechnikov")
    assert sum(response.json()["weights"][0]) == pytest.approx(1) or has_compact_support
