import math

import pytest
import torch

import regard
from regard import masks
from regard.attention import NadarayaWatson, make_score
from regard.explorer.errors import Refused
from regard.explorer.playground import attend, known
from regard.explorer.schemas import AttendForm
from regard.positions import ALiBi, Rotary, Sinusoidal

QUERIES, KEYS, WIDTH = 3, 5, 4
NAMES = known()["scores"]
PARAMETER_FREE = [name for name in NAMES if name not in ("bilinear", "additive")]


def vectors(count, width=WIDTH, seed=0):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed)).tolist()


def ask(**parts):
    form = {"queries": vectors(QUERIES), "keys": vectors(KEYS, seed=1), "score": "dot"}
    return attend(AttendForm.model_validate(form | parts))


def tensor(rows):
    numbers = [[-math.inf if n is None else n for n in row] for row in rows]
    return torch.tensor(numbers, dtype=torch.float64)


def close(told, wanted):
    torch.testing.assert_close(tensor(told), wanted.double(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("score", PARAMETER_FREE)
def test_every_score_is_the_librarys(score):
    told = ask(score=score, values=vectors(KEYS, 2, seed=2))
    queries, keys = tensor(vectors(QUERIES)), tensor(vectors(KEYS, seed=1))
    close(told["scores"], make_score(score)(queries, keys))
    context, weights = regard.look(
        queries, keys, tensor(vectors(KEYS, 2, seed=2)), score=score, backend="dense"
    )
    close(told["weights"], weights)
    close(told["context"], context)


def test_a_learned_score_shows_the_numbers_it_uses():
    keys = vectors(KEYS, 2, seed=1)
    told = ask(score="bilinear", keys=keys)
    matrix = tensor(told["formula"]["parameters"]["W"])
    close(told["scores"], tensor(told["queries"]) @ matrix @ tensor(keys).T)
    told = ask(score="additive", keys=keys)
    w, u = (tensor(told["formula"]["parameters"][name]) for name in "WU")
    v = torch.tensor(told["formula"]["parameters"]["v"], dtype=torch.float64)
    both = (tensor(told["queries"]) @ w.T)[:, None] + (tensor(keys) @ u.T)[None]
    close(told["scores"], both.tanh() @ v)


def test_a_learned_score_is_always_the_same():
    first = ask(score="additive")
    torch.manual_seed(99)
    assert ask(score="additive") == first


@pytest.mark.parametrize("temperature", [0.25, 3.0])
def test_a_temperature_divides_the_scores(temperature):
    told = ask(temperature=temperature)
    close(told["biased_scores"], tensor(told["scores"]) / temperature)
    close(told["weights"], (tensor(told["scores"]) / temperature).softmax(-1))
    assert told["scores"] == ask()["scores"]


@pytest.mark.parametrize(
    ("form", "mask"),
    [
        ({"kind": "causal"}, masks.causal(align="first")),
        ({"kind": "window", "size": 1}, masks.window(1, align="first")),
        ({"kind": "lengths", "lengths": [2]}, masks.lengths(2)),
        ({"kind": "lengths", "lengths": [0, 5, 3]}, masks.lengths([0, 5, 3])),
    ],
)
def test_masks_are_the_librarys(form, mask):
    told = ask(mask=form)
    assert told["mask"] == mask.to_tensor(QUERIES, KEYS).tolist()
    queries, keys = tensor(vectors(QUERIES)), tensor(vectors(KEYS, seed=1))
    close(told["weights"], regard.weights(queries, keys, score="dot", mask=mask))
    assert told["scores"] == ask()["scores"]  # before the mask


def test_cells_say_who_may_look_and_who_may_look_nowhere_sees_zeros():
    cells = [[True, False, True, False, False], [False] * 5, [True] * 5]
    told = ask(mask={"kind": "cells", "cells": cells})
    assert told["mask"] == cells
    assert told["weights"][1] == [0.0] * 5 and told["context"][1] == [0.0] * WIDTH
    assert [weight > 0 for weight in told["weights"][0]] == cells[0]


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
def test_positions_change_queries_and_keys_before_the_score(kind):
    told = ask(positions=kind)
    module = {"sinusoidal": Sinusoidal, "rotary": Rotary}[kind](WIDTH)
    queries, keys = (module(tensor(rows)) for rows in (vectors(QUERIES), vectors(KEYS, seed=1)))
    close(told["queries"], queries)
    close(told["keys"], keys)
    close(told["scores"], queries @ keys.T)
    plain = tensor(vectors(KEYS, seed=1))  # keys are their own values, as they were given
    close(told["context"], tensor(told["weights"]) @ plain)


def test_alibi_adds_a_bias_that_falls_with_distance():
    told = ask(positions="alibi", temperature=2.0)
    bias = ALiBi(8)(QUERIES, KEYS, offset=0)[0, 0]
    close(told["biased_scores"], tensor(told["scores"]) / 2 + bias)
    close(told["weights"], tensor(told["biased_scores"]).softmax(-1))
    assert told["formula"]["parameters"]["slope"] == 0.5


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar", "triangular", "epanechnikov", "average"])
def test_kernel_regression_is_the_same_call(kernel):
    xs, ys = [[0.1], [0.4], [0.8], [1.5]], [[1.0], [3.0], [2.0], [0.0]]
    grid = [[n / 10] for n in range(20)]
    told = ask(queries=grid, keys=xs, values=ys, score=kernel, bandwidth=0.3)
    fitted = NadarayaWatson(kernel, 0.3).fit(tensor(xs), tensor(ys))
    close(told["context"], fitted.predict(tensor(grid)))
    close(told["weights"], fitted.weights(tensor(grid)))


def test_minus_infinity_is_null():
    told = ask(queries=[[0.0]], keys=[[0.5], [9.0]], score="boxcar")
    assert told["scores"] == [[0.0, None]] and told["biased_scores"] == [[0.0, None]]


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"queries": [[1.0], [1.0, 2.0]]}, "queries must be of one width"),
        ({"queries": [[1.0]]}, "queries and keys must be of equal width"),
        ({"values": [[1.0]]}, "values must be as many as keys, 5, but there are 1"),
        ({"mask": {"kind": "window"}}, "mask.size is needed"),
        ({"mask": {"kind": "lengths"}}, "mask.lengths must be one number or one for each of 3"),
        ({"mask": {"kind": "lengths", "lengths": []}}, "mask.lengths must be"),
        ({"mask": {"kind": "lengths", "lengths": [6]}}, "from 0 to 5"),
        ({"mask": {"kind": "cells"}}, "mask.cells must be 3 rows of 5 cells"),
        ({"mask": {"kind": "cells", "cells": [[True]]}}, "mask.cells must be 3 rows of 5 cells"),
        (
            {"queries": [[1.0] * 3], "keys": [[1.0] * 3], "positions": "rotary"},
            "the width of queries must be even, but it is 3",
        ),
    ],
)
def test_what_cannot_be_is_refused(parts, sentence):
    with pytest.raises(Refused, match=sentence):
        ask(**parts)


@pytest.mark.parametrize("score", NAMES)
@pytest.mark.parametrize("size", [1e6, -1e6, 0.0])
def test_numbers_stay_finite_at_the_edges(client, score, size):
    form = {
        "queries": [[size] * 128],
        "keys": [[1e6] * 128, [0.0] * 128],
        "score": score,
        "bandwidth": 1e-6,
        "temperature": 1e-6,
        "positions": "sinusoidal",
    }
    answer = client.post("/api/attend", json=form)
    assert answer.status_code == 200
    assert sum(answer.json()["weights"][0]) == pytest.approx(1) or score in (
        "boxcar",
        "triangular",
        "epanechnikov",
    )
