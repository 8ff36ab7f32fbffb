import cmath
import math

import pytest
import torch

from helpers import no_float64
from regard.errors import RegardError
from regard.positions import ALiBi, Learned, Rotary, Sinusoidal, rotate, sinusoidal

BATCH, HEADS, LENGTH, WIDTH = 2, 3, 5, 12


def wave(position, column, width, base=10_000.0):
    """Compute one entry of the table by the paper's formula."""
    angle = position / base ** (2 * (column // 2) / width)
    return math.cos(angle) if column % 2 else math.sin(angle)


@pytest.fixture
def float64_default():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.parametrize("width", [1, 2, 7, 12])
@pytest.mark.parametrize("base", [10_000.0, 100.0])
def test_sinusoidal_agrees_with_the_formula(width, base, float64_default):
    table = sinusoidal(LENGTH, width, base=base)
    assert table.shape == (LENGTH, width)
    for position in range(LENGTH):
        for column in range(width):
            expected = wave(position, column, width, base)
            assert abs(table[position, column].item() - expected) < 1e-12


def test_sinusoidal_is_exact_at_a_million_positions():
    position = 1_000_000  # in float32, angles of this size would be off by 0.03
    row = sinusoidal(1, WIDTH, offset=position)
    expected = torch.tensor([[wave(position, column, WIDTH) for column in range(WIDTH)]])
    torch.testing.assert_close(row, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("offset", [0, 3, 40])
def test_sinusoidal_with_offset_is_a_slice_of_the_table(offset):
    assert sinusoidal(LENGTH, 7, offset).equal(sinusoidal(50, 7)[offset : offset + LENGTH])


def test_sinusoidal_of_no_positions_is_empty():
    assert sinusoidal(0, WIDTH).shape == (0, WIDTH)


@pytest.mark.parametrize("shift", [1, 4, 30])
def test_rotation_of_each_pair_shifts_sinusoidal_positions(shift, float64_default):
    table = sinusoidal(60, WIDTH)
    shifted = torch.empty(60 - shift, WIDTH)
    for pair in range(WIDTH // 2):
        angle = shift / 10_000 ** (2 * pair / WIDTH)
        rotation = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        )
        columns = slice(2 * pair, 2 * pair + 2)
        shifted[:, columns] = table[: 60 - shift, columns] @ rotation.T
    torch.testing.assert_close(shifted, table[shift:])


def test_growing_table_agrees_with_the_function():
    positions = Sinusoidal(WIDTH)
    for offset, length in ((0, 3), (0, 5), (2, 1), (90, 7), (0, 2), (11, 0), (300, 4)):
        vectors = torch.randn(BATCH, length, WIDTH)
        expected = vectors + sinusoidal(length, WIDTH, offset)
        assert positions(vectors, offset).equal(expected), (offset, length)


@pytest.mark.parametrize("interleaved", [False, True])
def test_growing_table_of_rotary_agrees_with_a_tensor_of_positions(interleaved):
    rotary = Rotary(WIDTH - 2, interleaved=interleaved)
    for offset, length in ((0, 0), (0, 3), (0, 5), (2, 1), (90, 7), (0, 2), (11, 0), (300, 4)):
        vectors = torch.randn(BATCH, length, WIDTH, dtype=torch.float64)
        expected = rotary(vectors, torch.arange(offset, offset + length))
        assert rotary(vectors, offset).equal(expected), (offset, length)


@pytest.mark.parametrize("kind", [Sinusoidal, Rotary])
def test_table_that_another_thread_replaces_is_not_read(kind):
    class Shortened(kind):
        def __setattr__(self, name, value):
            super().__setattr__(name, value[:1] if name == "table" else value)

    vectors = torch.ones(LENGTH, WIDTH)
    assert torch.equal(Shortened(WIDTH)(vectors), kind(WIDTH)(vectors))


@pytest.mark.parametrize("kind", [Sinusoidal, Rotary])
def test_thousand_steps_rebuild_the_table_a_few_times(kind):
    positions, tables = kind(WIDTH), []
    for step in range(1000):
        positions(torch.zeros(1, WIDTH), step)
        if not any(positions.table is table for table in tables):
            tables.append(positions.table)
    assert len(tables) <= math.log2(1000) + 1


def test_averaged_model_works_while_the_table_grows():
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), Sinusoidal(WIDTH))
    mean = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    for length in (3, 20):
        model(torch.zeros(length, WIDTH))
        mean.update_parameters(model)
    assert torch.equal(mean.module[0].weight, model[0].weight)


@pytest.mark.parametrize("kind", [Sinusoidal, Rotary])
def test_table_of_inference_mode_is_no_inference_tensor(kind):
    positions = kind(WIDTH)
    with torch.inference_mode():
        positions(torch.zeros(9, WIDTH))
    assert not positions.table.is_inference()


def test_alibi_from_the_meta_device_has_the_same_slopes():
    with torch.device("meta"):
        on_meta = ALiBi(HEADS)
    alibi = on_meta.to_empty(device="cpu")
    assert torch.equal(alibi.slopes, ALiBi(HEADS).slopes)
    assert torch.equal(alibi(3, 3), ALiBi(HEADS)(3, 3))


def test_sinusoidal_and_alibi_have_an_empty_state_dict():
    assert not Sinusoidal(WIDTH).state_dict()
    assert not ALiBi(HEADS).state_dict()


@pytest.mark.parametrize("make", [lambda: Sinusoidal(WIDTH), lambda: Learned(9, WIDTH).half()])
def test_adding_positions_keeps_the_dtype(make):
    assert make()(torch.zeros(LENGTH, WIDTH).half()).dtype == torch.float16


def test_learned_position_is_a_row_of_the_table():
    positions = Learned(9, WIDTH)
    vectors = torch.randn(BATCH, LENGTH, WIDTH)
    moved = positions(vectors, offset=2)
    for row in range(LENGTH):
        torch.testing.assert_close(moved[:, row], vectors[:, row] + positions.table[row + 2])


def test_only_used_positions_get_a_gradient():
    positions = Learned(9, WIDTH)
    positions(torch.zeros(BATCH, LENGTH, WIDTH), offset=2).sum().backward()
    used = positions.table.grad.abs().sum(-1) > 0
    assert used.tolist() == [False] * 2 + [True] * LENGTH + [False] * 2


def test_learned_positions_start_with_norms_near_one():
    assert 0.8 < Learned(400, 64).table.norm(dim=-1).mean() < 1.2


def test_position_beyond_the_learned_table_is_refused():
    positions = Learned(9, WIDTH)
    positions(torch.zeros(LENGTH, WIDTH), offset=4)
    message = r"below 9.*the last is 9; use Learned\(10, 12\) or Sinusoidal\(12\)"
    with pytest.raises(RegardError, match=message):
        positions(torch.zeros(LENGTH, WIDTH), offset=5)


@pytest.mark.parametrize("make", [Sinusoidal, Rotary])
@pytest.mark.parametrize("base", [0.0, -1.0, math.inf, math.nan])
def test_base_that_is_not_above_zero_is_refused(make, base):
    with pytest.raises(RegardError, match=f"base must be above 0 and finite, but it is {base}"):
        make(WIDTH, base=base)


@pytest.mark.parametrize("make", [Sinusoidal, Rotary])
def test_negative_width_is_refused(make):
    with pytest.raises(RegardError, match="width must be 0 or more, but it is -2"):
        make(-2)


def test_learned_positions_without_a_row_or_column_are_refused():
    with pytest.raises(RegardError, match="length must be 1 or more, but it is 0"):
        Learned(0, WIDTH)
    with pytest.raises(RegardError, match="width must be 1 or more, but it is 0"):
        Learned(9, 0)


def test_negative_offset_of_rotary_is_refused():
    with pytest.raises(RegardError, match="offset must be 0 or more, but it is -1"):
        Rotary(WIDTH)(torch.zeros(LENGTH, WIDTH), offset=-1)


def test_negative_numbers_of_sinusoidal_are_refused():
    with pytest.raises(RegardError, match="length must be 0 or more, but it is -1"):
        sinusoidal(-1, WIDTH)
    with pytest.raises(RegardError, match="offset must be 0 or more, but it is -1"):
        sinusoidal(LENGTH, WIDTH, offset=-1)


@pytest.mark.parametrize("make", [Sinusoidal, lambda width: Learned(9, width)])
def test_vectors_of_another_width_and_negative_offset_are_refused(make):
    with pytest.raises(RegardError, match="vectors must have a width of 12, but it is 1"):
        make(WIDTH)(torch.zeros(LENGTH, 1))  # which would be broadcast without a check
    with pytest.raises(RegardError, match="offset must be 0 or more.*but it is -1"):
        make(WIDTH)(torch.zeros(1, WIDTH), offset=-1)


def rotate_pairs(vector, position, width, interleaved):
    """Rotate pairs as complex numbers, one by one."""
    result = list(vector)
    for pair in range(width // 2):
        x, y = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + width // 2)
        angle = position / 10_000 ** (2 * pair / width)
        number = complex(vector[x], vector[y]) * cmath.exp(1j * angle)
        result[x], result[y] = number.real, number.imag
    return result


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("width", [2, 8, WIDTH])
def test_rotary_agrees_with_complex_multiplication(width, interleaved):
    vectors = torch.randn(BATCH, HEADS, LENGTH, WIDTH, dtype=torch.float64)
    computed = Rotary(width, interleaved=interleaved)(vectors, offset=4)
    for index in torch.cartesian_prod(*map(torch.arange, (BATCH, HEADS, LENGTH))).tolist():
        expected = rotate_pairs(vectors[tuple(index)].tolist(), index[-1] + 4, width, interleaved)
        torch.testing.assert_close(
            computed[tuple(index)], torch.tensor(expected, dtype=torch.float64)
        )


@pytest.mark.parametrize("interleaved", [False, True])
def test_dot_products_of_rotated_vectors_depend_on_distance_alone(interleaved):
    rotary = Rotary(WIDTH, interleaved=interleaved)
    query, key = torch.randn(2, 1, WIDTH, dtype=torch.float64)

    def score(query_position, key_position):
        return (rotary(query, query_position) * rotary(key, key_position)).sum()

    for distance in (0, 1, 6):
        for start in (1, 20, 5000):
            torch.testing.assert_close(score(start + distance, start), score(distance, 0))
    assert not torch.isclose(score(6, 0), score(1, 0))


def test_rotary_keeps_norms_and_leaves_position_zero_unchanged():
    vectors = torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    computed = Rotary(WIDTH)(vectors)
    torch.testing.assert_close(computed.norm(dim=-1), vectors.norm(dim=-1))
    assert computed[:, 0].equal(vectors[:, 0])


def test_rotary_with_offset_is_a_slice_of_the_whole():
    vectors, rotary = torch.randn(BATCH, HEADS, 9, WIDTH), Rotary(WIDTH)
    assert rotary(vectors[..., 4:, :], offset=4).equal(rotary(vectors)[..., 4:, :])


def test_rotary_takes_a_tensor_of_positions():
    vectors, positions = torch.randn(2, 5, 6), torch.tensor([3, 0, 3, 3, 7])
    rotated = Rotary(6)(vectors, positions)
    for row, position in enumerate(positions.tolist()):
        expected = Rotary(6)(vectors[:, row : row + 1], position)
        torch.testing.assert_close(rotated[:, row : row + 1], expected)


def test_partial_rotary_leaves_the_remaining_components_unchanged():
    vectors = torch.randn(BATCH, LENGTH, WIDTH)
    computed = Rotary(8)(vectors)
    assert computed[..., 8:].equal(vectors[..., 8:])
    assert computed[..., :8].equal(Rotary(8)(vectors[..., :8]))


def test_interleaved_rotary_is_a_permutation_of_the_other():
    vectors = torch.randn(BATCH, LENGTH, WIDTH)
    order = torch.arange(WIDTH).reshape(2, -1).T.flatten()  # 0, 6, 1, 7, …
    neighbours = Rotary(WIDTH, interleaved=True)(vectors[..., order])
    torch.testing.assert_close(neighbours, Rotary(WIDTH)(vectors)[..., order])


def test_rotary_keeps_the_dtype():
    assert Rotary(WIDTH)(torch.randn(LENGTH, WIDTH).half()).dtype == torch.float16


def test_rotate_takes_angles_for_each_batch_item():
    vectors = torch.randn(BATCH, LENGTH, WIDTH)
    angles = torch.rand(BATCH, LENGTH, 4)
    computed = rotate(vectors, angles.cos(), angles.sin())
    for item in range(BATCH):
        expected = rotate(vectors[item], angles[item].cos(), angles[item].sin())
        assert computed[item].equal(expected)


def test_rotary_of_odd_width_is_refused():
    with pytest.raises(RegardError, match="width must be even, to rotate pairs, but it is 7"):
        Rotary(7)


def test_rotary_wider_than_the_vectors_is_refused():
    with pytest.raises(RegardError, match="rotate 14 components, but vectors have a width of 12"):
        Rotary(14)(torch.zeros(LENGTH, WIDTH))


def published_slopes(heads):
    """Compute the slopes as the paper's own code does, by recursion for twice the power."""
    if math.log2(heads).is_integer():
        start = 2 ** (-(2 ** -(math.log2(heads) - 3)))
        return [start * start**i for i in range(heads)]
    power = 2 ** math.floor(math.log2(heads))
    return published_slopes(power) + published_slopes(2 * power)[0::2][: heads - power]


def test_slopes_of_eight_heads_worked_by_hand():
    assert ALiBi(8).slopes.tolist() == [2.0**-power for power in range(1, 9)]


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 7, 12, 16, 20])
def test_slopes_agree_with_the_published_code(heads):
    torch.testing.assert_close(ALiBi(heads).slopes, torch.tensor(published_slopes(heads)))


def test_alibi_bias_falls_with_distance_on_both_sides():
    bias = ALiBi(HEADS)(LENGTH, LENGTH)
    assert bias.shape == (1, HEADS, LENGTH, LENGTH)
    slopes = published_slopes(HEADS)
    for head, query, key in torch.cartesian_prod(
        *map(torch.arange, (HEADS, LENGTH, LENGTH))
    ).tolist():
        expected = -slopes[head] * abs(query - key)
        assert bias[0, head, query, key].item() == pytest.approx(expected)
    assert bias.equal(bias.mT)


@pytest.mark.parametrize("offset", [0, 2, 6])
def test_alibi_bias_with_offset_has_the_rows_of_the_whole(offset):
    alibi = ALiBi(HEADS)
    whole = alibi(9, 9)
    assert alibi(3, 9, offset).equal(whole[:, :, offset : offset + 3])


def test_alibi_bias_between_positions_agrees_with_the_whole():
    queries, keys = torch.tensor([4, 4, 2]), torch.tensor([[0, 1, 1, 4], [3, 2, 1, 0]])
    whole = ALiBi(3)(5, 5)
    for row, positions in zip(ALiBi(3).between(queries, keys), keys, strict=True):
        assert torch.equal(row, whole[0, :, queries][..., positions])


def test_alibi_of_unequal_lengths_without_offset_is_refused():
    with pytest.raises(RegardError, match="offset= for the key.*5 queries and 7 keys"):
        ALiBi(HEADS)(5, 7)


def test_alibi_without_heads_is_refused():
    with pytest.raises(RegardError, match="heads must be 1 or more, but it is 0"):
        ALiBi(0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_devices_without_float64_get_the_positions_of_the_cpu(dtype):
    vectors, indices = torch.randn(BATCH, LENGTH, WIDTH).to(dtype), torch.tensor([7, 0, 3, 90, 1])
    sinusoidal_positions, rotary = Sinusoidal(WIDTH), Rotary(WIDTH)
    expected = [
        sinusoidal_positions(vectors, 70_000),
        rotary(vectors, 70_000),
        rotary(vectors, indices),
    ]
    with no_float64.SimulatedDevice():
        moved, moved_indices = (x.to(no_float64.DEVICE) for x in (vectors, indices))
        actual = [
            sinusoidal_positions(moved, 70_000),
            rotary(moved, 70_000),
            rotary(moved, moved_indices),
        ]
        assert all(x.device == no_float64.DEVICE for x in actual)
        actual = [x.cpu() for x in actual]
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=torch.finfo(dtype).eps, atol=1e-6)
