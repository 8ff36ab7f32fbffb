import json
import resource

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from regard.errors import RegardError
from regard.runs import parameters

NOTES = {"step": 7, "best": None, "judged": {"3": 0.1}, "why": "été — ⏎\n"}


def kinds_of_tensors():
    bits = torch.arange(2**16, dtype=torch.int32).to(torch.int16)
    return {
        "not numbers and signed zeros": torch.tensor([float("nan"), -0.0, 0.0, float("-inf")]),
        "every half": bits.clone().view(torch.float16),
        "every brain": bits.view(torch.bfloat16).view(2, -1),
        "double": torch.randn(2, 3, 5, dtype=torch.float64),
        "bytes": torch.arange(7, dtype=torch.uint8),
        "long": torch.tensor([2**62, -1]),
        "bool": torch.tensor([True, False, True]),
        "number": torch.tensor(3.5),
        "none": torch.zeros(0, 4),
        "turned": torch.randn(3, 4).t(),
        "learned": nn.Parameter(torch.randn(4)),
    }


def bits_of(tensor):
    return tensor.detach().contiguous().flatten().view(torch.uint8)


def test_tensors_and_notes_come_back_to_the_bit(tmp_path):
    wanted = kinds_of_tensors()
    parameters.save(tmp_path / "some.safetensors", wanted, NOTES)
    found, notes = parameters.load(tmp_path / "some.safetensors")
    assert notes == NOTES
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape), name
        assert bits_of(found[name]).equal(bits_of(tensor)), name
    assert [path.name for path in tmp_path.iterdir()] == ["some.safetensors"]


def test_nothing_can_be_saved_too(tmp_path):
    parameters.save(tmp_path / "none.safetensors", {})
    assert parameters.load(tmp_path / "none.safetensors") == ({}, {})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "some.safetensors"
    torch.manual_seed(0)
    tensors = {"a": torch.randn(3, 5), "b": torch.tensor([4, 2]), "c.weight": torch.randn(2)}
    parameters.save(path, tensors, NOTES)
    return path


places = st.floats(0, 1, exclude_max=True)


@given(place=places, bit=st.integers(0, 7))
def test_a_single_flipped_bit_is_refused(whole, place, bit):
    data = bytearray(whole.read_bytes())
    data[int(place * len(data))] ^= 1 << bit
    altered = whole.with_name("altered")
    altered.write_bytes(data)
    with pytest.raises(RegardError, match="altered is torn|altered was altered: its checksum"):
        parameters.load(altered)


@given(place=places, byte=st.integers(0, 255))
def test_no_other_byte_anywhere_gives_other_content(whole, place, byte):
    data = bytearray(whole.read_bytes())
    data[int(place * len(data))] = byte
    altered = whole.with_name("altered")
    altered.write_bytes(data)
    wanted, notes = parameters.load(whole)
    try:
        found, told = parameters.load(altered)
    except RegardError:
        return
    assert told == notes
    assert all(found[name].equal(wanted[name]) for name in wanted)


@given(place=places)
def test_a_file_that_was_cut_is_refused(whole, place):
    data = whole.read_bytes()
    cut = whole.with_name("cut")
    cut.write_bytes(data[: int(place * len(data))])
    with pytest.raises(RegardError, match="cut is torn"):
        parameters.load(cut)


def test_a_file_that_grew_is_refused(whole):
    grown = whole.with_name("grown")
    grown.write_bytes(whole.read_bytes() + b"\0")
    with pytest.raises(RegardError, match="grown is torn"):
        parameters.load(grown)


@pytest.mark.parametrize("change", [{"a": torch.ones(4)}, {"a": torch.ones(1, 3)}, {}, {"b": 1}])
def test_a_checksum_holds_for_its_own_tensors_alone(tmp_path, change):
    path = tmp_path / "some.safetensors"
    parameters.save(path, {"a": torch.ones(3)})
    with parameters.safe_open(path, framework="pt") as file:
        notes = file.metadata()
    other = {n: t if torch.is_tensor(t) else torch.ones(3) for n, t in change.items()}
    save_file(other, path, notes)
    with pytest.raises(RegardError, match="was altered: its checksum does not fit"):
        parameters.load(path)


def test_other_notes_are_refused(tmp_path):
    path = tmp_path / "some.safetensors"
    parameters.save(path, {"a": torch.ones(3)}, {"step": 3})
    with parameters.safe_open(path, framework="pt") as file:
        notes = file.metadata()
    save_file({"a": torch.ones(3)}, path, notes | {"about": json.dumps({"step": 4})})
    with pytest.raises(RegardError, match="was altered: its checksum does not fit"):
        parameters.load(path)


def test_a_file_that_is_not_there_or_is_something_else_is_one_sentence(tmp_path):
    with pytest.raises(RegardError, match="there are no weights at .*missing"):
        parameters.load(tmp_path / "missing")
    (tmp_path / "text").write_text("not weights at all")
    with pytest.raises(RegardError, match="text is torn"):
        parameters.load(tmp_path / "text")
    with pytest.raises(RegardError, match="is torn"):
        parameters.load(tmp_path)


def test_a_full_disk_leaves_the_weights_that_were_there(tmp_path):
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
    """An embedding that is the output layer too, a buffer to keep and one to forget."""

    def __init__(self, width=3):
        super().__init__()
        self.embedding = nn.Embedding(5, width)
        self.output = nn.Linear(width, 5)
        self.output.weight = self.embedding.weight
        self.register_buffer("counted", torch.tensor([2, 4]))
        self.register_buffer("passing", torch.ones(7), persistent=False)


def test_what_is_shared_comes_once_and_what_is_passing_never():
    weights = parameters.state_of(Tied())
    assert weights.keys() == {"embedding.weight", "output.bias", "counted"}


def test_a_model_comes_back_with_what_it_shares(tmp_path):
    one, other = Tied(), Tied()
    one.counted += 5
    path = tmp_path / "some.safetensors"
    parameters.save(path, parameters.state_of(one))
    parameters.load_into(other, parameters.load(path)[0], path)
    assert other.output.weight is other.embedding.weight
    assert all(other.state_dict()[name].equal(kept) for name, kept in one.state_dict().items())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"counted": None}, "the file has not 'counted'"),
        ({"extra": torch.ones(2)}, "the model has not 'extra'"),
        ({"output.bias": torch.ones(7)}, r"'output.bias' must be \(5,\), but it is \(7,\)"),
    ],
)
def test_weights_that_do_not_fit_are_refused_and_change_nothing(tmp_path, change, words):
    model = Tied()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    weights = {
        name: torch.zeros_like(tensor) for name, tensor in parameters.state_of(model).items()
    } | change
    weights = {name: tensor for name, tensor in weights.items() if tensor is not None}
    with pytest.raises(RegardError, match=f"file does not fit the settings.*{words}"):
        parameters.load_into(model, weights, tmp_path / "file")
    assert all(tensor.equal(before[name]) for name, tensor in model.state_dict().items())


def test_a_mean_is_the_mean_of_numbers_and_the_last_of_counts(tmp_path):
    kept = [{"w": torch.randn(3, 4), "n": torch.tensor([step])} for step in (3, 5, 8)]
    paths = [tmp_path / f"{number}.safetensors" for number in range(3)]
    for path, tensors in zip(paths, kept, strict=True):
        parameters.save(path, tensors)
    found = parameters.average(iter(paths))
    by_hand = sum(tensors["w"].double() for tensors in kept) / 3
    assert found["w"].equal(by_hand.float())
    assert found["n"].tolist() == [8]


def test_the_mean_of_one_file_is_that_file(tmp_path):
    weights = {"w": torch.randn(50)}
    parameters.save(tmp_path / "one.safetensors", weights)
    assert parameters.average([tmp_path / "one.safetensors"])["w"].equal(weights["w"])


def test_a_torn_file_has_no_part_in_a_mean(tmp_path):
    parameters.save(tmp_path / "one.safetensors", {"w": torch.ones(2)})
    (tmp_path / "two.safetensors").write_bytes(b"torn")
    with pytest.raises(RegardError, match="two.safetensors is torn"):
        parameters.average([tmp_path / "one.safetensors", tmp_path / "two.safetensors"])


def test_whoever_may_read_other_files_may_read_weights(tmp_path):
    plain, weights = tmp_path / "plain", tmp_path / "weights.safetensors"
    plain.write_text("text")
    parameters.save(weights, {"a": torch.ones(2)})
    assert weights.stat().st_mode == plain.stat().st_mode
