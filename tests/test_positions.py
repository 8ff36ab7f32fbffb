import cmath
import math

import pytest
import torch

from regard.positions import ALiBi, Learned, Rotary, Sinusoidal, rotate, sinusoidal

BATCH, HEADS, LENGTH, WIDTH = 2, 3, 5, 12


def wave(position, column, width, base=10_000.0):
    """Compute one number of the table as the paper writes it."""
    angle = position / base ** (2 * (column // 2) / width)
    return math.cos(angle) if column % 2 else math.sin(angle)


@pytest.fixture
def in_float64():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.parametrize("width", [1, 2, 7, 12])
@pytest.mark.parametrize("base", [10_000.0, 100.0])
def test_waves_are_those_of_the_formula(width, base, in_float64):
    table = sinusoidal(LENGTH, width, base=base)
    assert table.shape == (LENGTH, width)
    for position in range(LENGTH):
        for column in range(width):
            want = wave(position, column, width, base)
            assert abs(table[position, column].item() - want) < 1e-12


def test_waves_stay_exact_far_out():
    far = 1_000_000  # in float32, angles of this size would be off by 0.03
    row = sinusoidal(1, WIDTH, offset=far)
    want = torch.tensor([[wave(far, column, WIDTH) for column in range(WIDTH)]])
    torch.testing.assert_close(row, want, atol=1e-6, rtol=0)


@pytest.mark.parametrize("offset", [0, 3, 40])
def test_waves_from_an_offset_are_a_slice_of_the_longer_table(offset):
    assert sinusoidal(LENGTH, 7, offset).equal(sinusoidal(50, 7)[offset : offset + LENGTH])


def test_no_positions_make_an_empty_table():
    assert sinusoidal(0, WIDTH).shape == (0, WIDTH)


@pytest.mark.parametrize("shift", [1, 4, 30])
def test_a_rotation_per_pair_moves_waves_from_one_position_to_another(shift, in_float64):
    table = sinusoidal(60, WIDTH)
    moved = torch.empty(60 - shift, WIDTH)
    for pair in range(WIDTH // 2):
        angle = shift / 10_000 ** (2 * pair / WIDTH)
        turn = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        )
        columns = slice(2 * pair, 2 * pair + 2)
        moved[:, columns] = table[: 60 - shift, columns] @ turn.T
    torch.testing.assert_close(moved, table[shift:])


def test_tables_grow_and_stay_right():
    positions = Sinusoidal(WIDTH)
    for offset, length in ((0, 3), (0, 5), (2, 1), (90, 7), (0, 2), (11, 0), (300, 4)):
        vectors = torch.randn(BATCH, length, WIDTH)
        want = vectors + sinusoidal(length, WIDTH, offset)
        assert positions(vectors, offset).equal(want), (offset, length)


def test_a_table_that_another_thread_makes_shorter_is_not_read():
    class Shortened(Sinusoidal):
        def __setattr__(self, name, value):
            super().__setattr__(name, value[:1] if name == "table" else value)

    waves = Shortened(WIDTH)(torch.zeros(LENGTH, WIDTH))
    assert torch.equal(waves, sinusoidal(LENGTH, WIDTH))


def test_step_by_step_the_table_is_written_only_a_few_times():
    positions, tables = Sinusoidal(WIDTH), []
    for step in range(1000):
        positions(torch.zeros(1, WIDTH), step)
        if not any(positions.table is table for table in tables):
            tables.append(positions.table)
    assert len(tables) <= math.log2(1000) + 1


def test_copies_of_a_model_take_over_weights_whatever_it_has_read():
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), Sinusoidal(WIDTH))
    mean = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    for length in (3, 20):
        model(torch.zeros(length, WIDTH))
        mean.update_parameters(model)
    assert torch.equal(mean.module[0].weight, model[0].weight)


def test_a_table_made_in_inference_mode_may_be_used_in_any_other():
    positions = Sinusoidal(WIDTH)
    with torch.inference_mode():
        positions(torch.zeros(9, WIDTH))
    assert not positions.table.is_inference()


def test_a_model_that_was_made_without_numbers_has_the_same_slopes():
    with torch.device("meta"):
        empty = ALiBi(HEADS)
    there = empty.to_empty(device="cpu")
    assert torch.equal(there.slopes, ALiBi(HEADS).slopes)
    assert torch.equal(there(3, 3), ALiBi(HEADS)(3, 3))


def test_waves_are_not_saved_with_the_weights():
    assert not Sinusoidal(WIDTH).state_dict()
    assert not ALiBi(HEADS).state_dict()


@pytest.mark.parametrize("make", [lambda: Sinusoidal(WIDTH), lambda: Learned(9, WIDTH).half()])
def test_adding_positions_keeps_the_dtype(make):
    assert make()(torch.zeros(LENGTH, WIDTH).half()).dtype == torch.float16


def test_a_learned_position_is_a_row_of_the_table():
    positions = Learned(9, WIDTH)
    vectors = torch.randn(BATCH, LENGTH, WIDTH)
    moved = positions(vectors, offset=2)
    for row in range(LENGTH):
        torch.testing.assert_close(moved[:, row], vectors[:, row] + positions.table[row + 2])


def test_only_positions_that_were_used_learn():
    positions = Learned(9, WIDTH)
    positions(torch.zeros(BATCH, LENGTH, WIDTH), offset=2).sum().backward()
    used = positions.table.grad.abs().sum(-1) > 0
    assert used.tolist() == [False] * 2 + [True] * LENGTH + [False] * 2


def test_learned_vectors_are_about_as_long_as_one():
    assert 0.8 < Learned(400, 64).table.norm(dim=-1).mean() < 1.2


def test_learned_positions_end_where_their_table_ends():
    positions = Learned(9, WIDTH)
    positions(torch.zeros(LENGTH, WIDTH), offset=4)
    words = r"below 9.*the last is 9; Learned\(10, 12\) or Sinusoidal\(12\) would hold it"
    with pytest.raises(ValueError, match=words):
        positions(torch.zeros(LENGTH, WIDTH), offset=5)


@pytest.mark.parametrize("make", [Sinusoidal, lambda width: Learned(9, width)])
def test_vectors_that_do_not_fit_are_refused(make):
    with pytest.raises(ValueError, match="vectors must have a width of 12, but it is 1"):
        make(WIDTH)(torch.zeros(LENGTH, 1))  # without a check, one number would be stretched
    with pytest.raises(ValueError, match="offset must be 0 or more.*but it is -1"):
        make(WIDTH)(torch.zeros(1, WIDTH), offset=-1)


def turned(vector, position, width, interleaved):
    """Turn pairs as complex numbers, one by one."""
    result = list(vector)
    for pair in range(width // 2):
        x, y = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + width // 2)
        angle = position / 10_000 ** (2 * pair / width)
        number = complex(vector[x], vector[y]) * cmath.exp(1j * angle)
        result[x], result[y] = number.real, number.imag
    return result


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("width", [2, 8, WIDTH])
def test_rotary_turns_pairs_by_the_angle_of_their_position(width, interleaved):
    vectors = torch.randn(BATCH, HEADS, LENGTH, WIDTH, dtype=torch.float64)
    got = Rotary(width, interleaved=interleaved)(vectors, offset=4)
    for place in torch.cartesian_prod(*map(torch.arange, (BATCH, HEADS, LENGTH))).tolist():
        want = turned(vectors[tuple(place)].tolist(), place[-1] + 4, width, interleaved)
        torch.testing.assert_close(got[tuple(place)], torch.tensor(want, dtype=torch.float64))


@pytest.mark.parametrize("interleaved", [False, True])
def test_dot_products_of_turned_vectors_depend_on_distance_alone(interleaved):
    rotary = Rotary(WIDTH, interleaved=interleaved)
    query, key = torch.randn(2, 1, WIDTH, dtype=torch.float64)

    def score(query_place, key_place):
        return (rotary(query, query_place) * rotary(key, key_place)).sum()

    for distance in (0, 1, 6):
        for start in (1, 20, 5000):
            torch.testing.assert_close(score(start + distance, start), score(distance, 0))
    assert not torch.isclose(score(6, 0), score(1, 0))


def test_turning_keeps_lengths_and_leaves_position_zero():
    vectors = torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    got = Rotary(WIDTH)(vectors)
    torch.testing.assert_close(got.norm(dim=-1), vectors.norm(dim=-1))
    assert got[:, 0].equal(vectors[:, 0])


def test_rotary_from_an_offset_is_a_slice_of_the_longer_one():
    vectors, rotary = torch.randn(BATCH, HEADS, 9, WIDTH), Rotary(WIDTH)
    assert rotary(vectors[..., 4:, :], offset=4).equal(rotary(vectors)[..., 4:, :])


def test_rotary_takes_the_place_of_every_vector():
    vectors, places = torch.randn(2, 5, 6), torch.tensor([3, 0, 3, 3, 7])
    turned = Rotary(6)(vectors, places)
    for row, place in enumerate(places.tolist()):
        alone = Rotary(6)(vectors[:, row : row + 1], place)
        torch.testing.assert_close(turned[:, row : row + 1], alone)


def test_rotary_of_part_of_the_width_leaves_the_rest():
    vectors = torch.randn(BATCH, LENGTH, WIDTH)
    got = Rotary(8)(vectors)
    assert got[..., 8:].equal(vectors[..., 8:])
    assert got[..., :8].equal(Rotary(8)(vectors[..., :8]))


def test_halves_and_neighbours_are_one_rotation_in_another_order():
    vectors = torch.randn(BATCH, LENGTH, WIDTH)
    order = torch.arange(WIDTH).reshape(2, -1).T.flatten()  # 0, 6, 1, 7, …
    neighbours = Rotary(WIDTH, interleaved=True)(vectors[..., order])
    torch.testing.assert_close(neighbours, Rotary(WIDTH)(vectors)[..., order])


def test_turning_keeps_the_dtype():
    assert Rotary(WIDTH)(torch.randn(LENGTH, WIDTH).half()).dtype == torch.float16


def test_each_sentence_may_be_turned_by_angles_of_its_own():
    vectors = torch.randn(BATCH, LENGTH, WIDTH)
    angles = torch.rand(BATCH, LENGTH, 4)
    got = rotate(vectors, angles.cos(), angles.sin())
    for sentence in range(BATCH):
        alone = rotate(vectors[sentence], angles[sentence].cos(), angles[sentence].sin())
        assert got[sentence].equal(alone)


def test_pairs_need_an_even_width():
    with pytest.raises(ValueError, match="width must be even, to turn pairs, but it is 7"):
        Rotary(7)


def test_more_cannot_be_turned_than_there_is():
    with pytest.raises(ValueError, match="turn 14 numbers, but vectors have a width of 12"):
        Rotary(14)(torch.zeros(LENGTH, WIDTH))


def published_slopes(heads):
    """Give the slopes as the paper's own code does, by calling itself for twice the power."""
    if math.log2(heads).is_integer():
        start = 2 ** (-(2 ** -(math.log2(heads) - 3)))
        return [start * start**i for i in range(heads)]
    power = 2 ** math.floor(math.log2(heads))
    return published_slopes(power) + published_slopes(2 * power)[0::2][: heads - power]


def test_eight_heads_have_slopes_from_a_half_to_a_256th():
    assert ALiBi(8).slopes.tolist() == [2.0**-power for power in range(1, 9)]


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 7, 12, 16, 20])
def test_slopes_follow_the_published_rule(heads):
    torch.testing.assert_close(ALiBi(heads).slopes, torch.tensor(published_slopes(heads)))


def test_the_bias_falls_with_distance_on_both_sides():
    bias = ALiBi(HEADS)(LENGTH, LENGTH)
    assert bias.shape == (1, HEADS, LENGTH, LENGTH)
    slopes = published_slopes(HEADS)
    for head, query, key in torch.cartesian_prod(
        *map(torch.arange, (HEADS, LENGTH, LENGTH))
    ).tolist():
        want = -slopes[head] * abs(query - key)
        assert bias[0, head, query, key].item() == pytest.approx(want)
    assert bias.equal(bias.mT)


@pytest.mark.parametrize("offset", [0, 2, 6])
def test_the_bias_from_an_offset_has_the_rows_of_the_whole(offset):
    alibi = ALiBi(HEADS)
    whole = alibi(9, 9)
    assert alibi(3, 9, offset).equal(whole[:, :, offset : offset + 3])


def test_the_bias_between_places_is_that_of_the_whole_there():
    queries, keys = torch.tensor([4, 4, 2]), torch.tensor([[0, 1, 1, 4], [3, 2, 1, 0]])
    whole = ALiBi(3)(5, 5)
    for row, places in zip(ALiBi(3).at(queries, keys), keys, strict=True):
        assert torch.equal(row, whole[0, :, queries][..., places])


def test_unequal_lengths_are_asked_where_the_first_query_stands():
    with pytest.raises(ValueError, match="offset= to say.*5 queries and 7 keys"):
        ALiBi(HEADS)(5, 7)


def test_there_is_one_head_at_least():
    with pytest.raises(ValueError, match="heads must be 1 or more, but it is 0"):
        ALiBi(0)
