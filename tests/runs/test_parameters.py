import resource
from math import inf, nan
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from regard.errors import RegardError
from regard.runs import parameters

METADATA = {"step": 7, "best": None, "history": {"3": 0.1}, "reason": "été — ⏎\n"}


def tensors_of_every_dtype():
    bits = torch.arange(2**16, dtype=torch.int32).to(torch.int16)
    return {
        "nan, infinity and signed zeros": torch.tensor([float("nan"), -0.0, 0.0, float("-inf")]),
        "every float16": bits.clone().view(torch.float16),
        "every bfloat16": bits.view(torch.bfloat16).view(2, -1),
        "double": torch.randn(2, 3, 5, dtype=torch.float64),
        "bytes": torch.arange(7, dtype=torch.uint8),
        "long": torch.tensor([2**62, -1]),
        "bool": torch.tensor([True, False, True]),
        "scalar": torch.tensor(3.5),
        "empty": torch.zeros(0, 4),
        "not contiguous": torch.randn(3, 4).t(),
        "parameter": nn.Parameter(torch.randn(4)),
    }


def bits_of(tensor):
    return tensor.detach().contiguous().flatten().view(torch.uint8)


def test_tensors_and_metadata_round_trip_bit_for_bit(tmp_path):
    expected = tensors_of_every_dtype()
    parameters.save(tmp_path / "some.safetensors", expected, METADATA)
    loaded, metadata = parameters.load(tmp_path / "some.safetensors")
    assert metadata == METADATA
    assert loaded.keys() == expected.keys()
    for name, tensor in expected.items():
        assert (loaded[name].dtype, loaded[name].shape) == (tensor.dtype, tensor.shape), name
        assert bits_of(loaded[name]).equal(bits_of(tensor)), name
    assert [path.name for path in tmp_path.iterdir()] == ["some.safetensors"]


def test_empty_state_round_trips(tmp_path):
    parameters.save(tmp_path / "none.safetensors", {})
    assert parameters.load(tmp_path / "none.safetensors") == ({}, {})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "some.safetensors"
    torch.manual_seed(0)
    tensors = {"a": torch.randn(3, 5), "b": torch.tensor([4, 2]), "c.weight": torch.randn(2)}
    parameters.save(path, tensors, METADATA)
    return path


positions = st.floats(0, 1, exclude_max=True)


@given(position=positions, bit=st.integers(0, 7))
def test_file_with_one_flipped_bit_is_refused(saved, position, bit):
    data = bytearray(saved.read_bytes())
    data[int(position * len(data))] ^= 1 << bit
    altered = saved.with_name("altered")
    altered.write_bytes(data)
    with pytest.raises(RegardError, match="altered is damaged: "):
        parameters.load(altered)


@given(position=positions, byte=st.integers(0, 255))
def test_no_changed_byte_gives_other_content(saved, position, byte):
    data = bytearray(saved.read_bytes())
    data[int(position * len(data))] = byte
    altered = saved.with_name("altered")
    altered.write_bytes(data)
    expected, expected_metadata = parameters.load(saved)
    try:
        loaded, metadata = parameters.load(altered)
    except RegardError:
        return
    assert metadata == expected_metadata
    assert all(loaded[name].equal(expected[name]) for name in expected)


@given(position=positions)
def test_truncated_file_is_refused(saved, position):
    data = saved.read_bytes()
    cut = saved.with_name("cut")
    cut.write_bytes(data[: int(position * len(data))])
    with pytest.raises(RegardError, match="cut is damaged"):
        parameters.load(cut)


def test_file_with_trailing_bytes_is_refused(saved):
    grown = saved.with_name("grown")
    grown.write_bytes(saved.read_bytes() + b"\0")
    with pytest.raises(RegardError, match="grown is damaged"):
        parameters.load(grown)


@pytest.mark.parametrize("change", [{"a": torch.ones(4)}, {"a": torch.ones(1, 3)}, {}, {"b": 1}])
def test_checksum_of_other_tensors_is_refused(tmp_path, change):
    path = tmp_path / "some.safetensors"
    parameters.save(path, {"a": torch.ones(3)})
    with parameters.safe_open(path, framework="pt") as file:
        header = file.metadata()
    other = {n: t if torch.is_tensor(t) else torch.ones(3) for n, t in change.items()}
    save_file(other, path, header)
    with pytest.raises(RegardError, match="is damaged: its checksum is wrong"):
        parameters.load(path)


def test_checksum_of_other_metadata_is_refused(tmp_path):
    path = tmp_path / "some.safetensors"
    parameters.save(path, {"a": torch.ones(3)}, {"step": 3})
    with parameters.safe_open(path, framework="pt") as file:
        header = file.metadata()
    save_file({"a": torch.ones(3)}, path, {"regard": header["regard"].replace("3", "4", 1)})
    with pytest.raises(RegardError, match="is damaged: its checksum is wrong"):
        parameters.load(path)


def test_equal_content_gives_equal_bytes_whatever_its_order(tmp_path):
    tensors = tensors_of_every_dtype()
    parameters.save(tmp_path / "one", tensors, METADATA, {"run": "7f", "step": 3})
    for number in range(5):  # each time, safetensors may order several entries differently
        path = tmp_path / str(number)
        reversed_tensors = dict(reversed(tensors.items()))
        parameters.save(path, reversed_tensors, dict(METADATA), {"run": "7f", "step": 3})
        assert path.read_bytes() == (tmp_path / "one").read_bytes()


def test_file_of_another_run_or_step_is_refused(tmp_path):
    path = tmp_path / "some.safetensors"
    parameters.save(path, {"a": torch.ones(3)}, {}, {"run": "7f", "step": 3})
    for read in (parameters.load, parameters.read_metadata):
        read(path, {"run": "7f"})
        with pytest.raises(RegardError, match="some.safetensors must be of step 4, but it is of"):
            read(path, {"run": "7f", "step": 4})


def test_missing_or_other_file_is_reported_in_one_line(tmp_path):
    with pytest.raises(RegardError, match="there is no parameter file .*missing"):
        parameters.load(tmp_path / "missing")
    (tmp_path / "text").write_text("not parameters")
    with pytest.raises(RegardError, match="text is damaged"):
        parameters.load(tmp_path / "text")
    with pytest.raises(RegardError, match="must be a file, but it is a folder"):
        parameters.load(tmp_path)


def test_full_disk_keeps_the_old_parameters(tmp_path):
    path = tmp_path / "some.safetensors"
    parameters.save(path, {"a": torch.ones(3)})
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))
    try:
        with pytest.raises(RegardError, match=r"^cannot write .*some.safetensors: .*too large"):
            parameters.save(path, {"a": torch.ones(3000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
    assert parameters.load(path)[0]["a"].equal(torch.ones(3))
    assert [path.name for path in tmp_path.iterdir()] == ["some.safetensors"]


class Tied(nn.Module):
    """An embedding tied to the output layer, a persistent buffer and one that is not."""

    def __init__(self, width=3):
        super().__init__()
        self.embedding = nn.Embedding(5, width)
        self.output = nn.Linear(width, 5)
        self.output.weight = self.embedding.weight
        self.register_buffer("counts", torch.tensor([2, 4]))
        self.register_buffer("scratch", torch.ones(7), persistent=False)


def test_state_has_shared_parameters_once_and_persistent_buffers_only():
    state = parameters.state_of(Tied())
    assert state.keys() == {"embedding.weight", "output.bias", "counts"}


def test_loaded_model_keeps_tied_parameters(tmp_path):
    one, other = Tied(), Tied()
    one.counts += 5
    path = tmp_path / "some.safetensors"
    parameters.save(path, parameters.state_of(one))
    parameters.load_into(other, parameters.load(path)[0], path)
    assert other.output.weight is other.embedding.weight
    assert all(other.state_dict()[name].equal(tensor) for name, tensor in one.state_dict().items())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": None}, "the file has no 'counts'"),
        ({"extra": torch.ones(2)}, "the model has no 'extra'"),
        (
            {"output.bias": torch.ones(7)},
            r"'output.bias' must have shape \(5,\), but it has \(7,\)",
        ),
    ],
)
def test_state_of_another_model_is_refused_and_changes_nothing(tmp_path, change, message):
    model = Tied()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = {
        name: torch.zeros_like(tensor) for name, tensor in parameters.state_of(model).items()
    } | change
    state = {name: tensor for name, tensor in state.items() if tensor is not None}
    with pytest.raises(RegardError, match=f"file does not match the run's settings.*{message}"):
        parameters.load_into(model, state, tmp_path / "file")
    assert all(tensor.equal(before[name]) for name, tensor in model.state_dict().items())


def test_average_is_the_mean_of_floats_and_the_last_of_integers(tmp_path):
    states = [{"w": torch.randn(3, 4), "n": torch.tensor([step])} for step in (3, 5, 8)]
    paths = [tmp_path / f"{number}.safetensors" for number in range(3)]
    for path, tensors in zip(paths, states, strict=True):
        parameters.save(path, tensors)
    loaded = parameters.average(iter(paths))
    by_hand = sum(tensors["w"].double() for tensors in states) / 3
    assert loaded["w"].equal(by_hand.float())
    assert loaded["n"].tolist() == [8]


def test_average_of_one_file_is_that_file(tmp_path):
    state = {"w": torch.randn(50)}
    parameters.save(tmp_path / "one.safetensors", state)
    assert parameters.average([tmp_path / "one.safetensors"])["w"].equal(state["w"])


def test_average_refuses_a_damaged_file(tmp_path):
    parameters.save(tmp_path / "one.safetensors", {"w": torch.ones(2)})
    (tmp_path / "two.safetensors").write_bytes(b"damaged")
    with pytest.raises(RegardError, match="two.safetensors is damaged"):
        parameters.average([tmp_path / "one.safetensors", tmp_path / "two.safetensors"])


def test_parameter_file_has_the_permissions_of_other_files(tmp_path):
    plain, state = tmp_path / "plain", tmp_path / "parameters.safetensors"
    plain.write_text("text")
    parameters.save(state, {"a": torch.ones(2)})
    assert state.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("value", [nan, inf, -inf, 1e300])
def test_parameters_that_are_not_finite_are_refused(value):
    model = Tied()
    tensors = {name: tensor.clone() for name, tensor in parameters.state_of(model).items()}
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    tensors["output.bias"] = tensors["output.bias"].double()  # 1e300 overflows in float32
    tensors["output.bias"][2] = value
    with pytest.raises(RegardError, match=r"some must have finite parameters, but 'output.bias'"):
        parameters.load_into(model, tensors, Path("some"))
    assert all(tensor.equal(before[name]) for name, tensor in parameters.state_of(model).items())


def test_parameters_of_another_kind_of_number_are_refused():
    tensors = {**parameters.state_of(Tied()), "output.bias": torch.ones(5, dtype=torch.int32)}
    with pytest.raises(RegardError, match=r"'output.bias' must be torch.float32, but it is torch"):
        parameters.load_into(Tied(), tensors, Path("some"))


def test_size_of_a_file_is_known_from_its_header(tmp_path):
    path = tmp_path / "some.safetensors"
    parameters.save(path, {"a": torch.ones(3, 4), "b": torch.ones(0, 9), "c": torch.ones(())})
    parameters.check_size(path, min_values=13, min_tensors=3)
    for values, tensors in ((14, 3), (13, 4)):
        with pytest.raises(RegardError, match=f"{values} parameters or more .* has 13 in 3"):
            parameters.check_size(path, values, tensors)
