"""The attacks: files that claim more than they hold, name things twice, or never end.

Each is a small file, or a run folder with one file exchanged. Where a checksum would refuse it at
once, it is signed, as an attacker would sign it.
"""

import base64
import gzip
import json
import os
import struct
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import torch

from helpers.sample_trace import sample_trace
from regard.runs import RunFolder, parameters

DEEP = 100_000  # lists within one another
FILE_KINDS = ("trace", "corpus", "sources", "alignments", "toml")


class Attack(NamedTuple):
    """One attack.

    Attributes:
        kind: which readers it is for: a kind of file, or "run" or "training data" of a folder.
        write: writes the file, or changes the copy of a run.
        message: what the refusal says, as a regular expression.
    """

    kind: str
    write: Callable[[Path], object]
    message: str
    suffix: str = ""


# ---- files in general ----


def text(content):
    return lambda path: path.write_text(content, encoding="utf-8")


def data(content):
    return lambda path: path.write_bytes(content)


def fifo(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def sparse(path):
    """Write a file of 1 TiB that takes no space."""
    with path.open("wb") as file:
        file.truncate(2**40)


def nested(opening="[", closing="]"):
    return opening * DEEP + closing * DEEP


NO_FILE = {
    "fifo": (fifo, "must be a file.* a pipe"),
    "device": (device, "must be a file.* a device"),
    "folder": (Path.mkdir, "must be a file, but it is a folder|Is a directory"),
}

# ---- traces ----

RECORD = sample_trace().to_dict()


def array(shape, content=b"", bits=8, scale=1.0):
    coded = base64.b64encode(content).decode()
    return {"shape": shape, "bits": bits, "scale": scale, "data": coded}


def trace(**changes):
    """Return the JSON of a trace with some members exchanged."""
    return json.dumps(RECORD | changes)


def trace_of_map(**changes):
    """Return the JSON of a trace with one map, and some members of it exchanged."""
    return trace(maps=[RECORD["maps"][0] | changes])


def trace_of_heads(shape, **changes):
    without_heads = {key: value for key, value in RECORD["maps"][0].items() if key != "heads"}
    return trace(
        tokens={"source": {"pieces": []}},
        gold=None,
        maps=[without_heads | {"weights": array(shape), "shape": shape} | changes],
    )


def summary(**changes):
    arrays = {
        "top_keys": array([1, 1, 1], b"\0"),
        "top_weights": array([1, 1, 1], b"\1"),
        "remainder": array([1, 1], b"\0"),
        "tiles": array([1, 1, 1], b"\1"),
        "entropy": array([1, 1], b"\0"),
        "received": array([1, 1], b"\1"),
        "distance": array([1, 1], b"\0"),
    }
    one = {**RECORD["maps"][0], "heads": [0], "summary": arrays | changes}
    del one["weights"]
    return trace(tokens={"source": {"pieces": ["a"]}}, gold=None, maps=[one])


FIRST = RECORD["maps"][0]["weights"]
TRACES = {
    "heads without values": (trace_of_heads([50_000_000, 0, 0]), "must list its heads"),
    "empty list of heads": (trace_of_heads([50_000_000, 0, 0], heads=[]), "must list its heads"),
    "summary of no values": (
        summary(top_keys=array([50_000_000, 0, 0])).replace('"heads": [0]', '"heads": []'),
        "must list its heads",
    ),
    "axis of 64 bits": (trace_of_heads([2**63, 0, 0]), "must list its heads|cannot be read"),
    "many axes": (
        trace_of_map(weights=FIRST | {"shape": [10**18] * 50_000}),
        "shape of at most 3 axes",
    ),
    "product of axes": (trace_of_map(weights=FIRST | {"shape": [10**18] * 3}), "must have .*bytes"),
    "negative axis": (trace_of_map(weights=FIRST | {"shape": [-1, 2, 3]}), "must have 8, 16 or 32"),
    "fewer bytes": (trace_of_map(weights=FIRST | {"data": "AAAA"}), "bytes, not 3"),
    "no base64": (trace_of_map(weights=FIRST | {"data": "?" * 99}), "must be an array with"),
    "scale of nothing": (trace_of_map(weights=FIRST | {"scale": 0}), "a scale above 0"),
    "scale beyond float32": (trace_of_map(weights=FIRST | {"scale": 1e38}), "a scale above 0"),
    "bits of no type": (trace_of_map(weights=FIRST | {"bits": 64}), "8, 16 or 32 bits"),
    "bits of a list": (trace_of_map(weights=FIRST | {"bits": []}), "must be an array with"),
    "heads of no number": (trace_of_map(heads=["a", "b"]), "head indices"),
    "missing token list": (trace(tokens={}), "but the token lists are"),
    "missing queries": (trace_of_map(queries="nothing"), "but the token lists are"),
    "queries of a list": (trace_of_map(queries=[]), "must be the name of a token list"),
    "other number of tokens": (trace(tokens={"source": {"pieces": ["a"] * 99}}), "tokens"),
    "tokens of numbers": (trace(tokens={"source": {"pieces": [1, 2]}}), "list of strings"),
    "million characters": (trace(tokens={"x": {"pieces": ["é" * 10**6, 1]}}), "list of strings"),
    "million tokens": (trace(tokens={"x": {"pieces": ["a"] * 10**6}}), "but the token lists are"),
    "word of no piece": (trace(tokens={"x": {"pieces": ["a"], "words": [-1]}}), "words must be"),
    "special beyond the end": (
        trace(tokens={"x": {"pieces": ["a"], "special": [10**18]}}),
        "positions from 0 to 0",
    ),
    "gold beyond the end": (trace(gold=[[10**18, 0]]), "gold links must be"),
    "kind of attention": (trace_of_map(kind="\x1b[2J"), r"kind must be one of .*\\x1b"),
    "call of a string": (trace_of_map(call="9" * 5000), "call must be an integer"),
    "title of a list": (trace(title=[[]]), "title must be a string"),
    "top keys beyond": (summary(top_keys=array([1, 1, 1], b"\xff")), "top_keys of .* must be from"),
    "tiles of other heads": (summary(tiles=array([9, 1, 1], bytes(9))), "tiles of"),
    "huge integer": (trace_of_map(call=0).replace('"call": 0', f'"call": {"9" * 9999}'), "digits"),
    "overflow": (trace_of_map().replace('"scale": ', '"scale": 1e400, "x": '), "finite numbers"),
    "NaN": (trace(title=float("nan")), "finite numbers, but one is NaN"),
    "key twice": (trace().replace("{", '{"title": "other", ', 1), "each key once, but 'title'"),
    "deep list": (nested(), "nested at most 32 deep"),
    "deep object": (nested('{"a":', "}").replace(":}", ":0}"), "nested at most 32 deep"),
    "deep title": (trace(title="?").replace('"?"', nested()), "nested at most 32 deep"),
    "no object": ("[]", "not a trace"),
    "page with a trace": (f"<!DOCTYPE html><script>{trace()}</script>", "must be JSON"),
}
ZEROS = gzip.compress(bytes(2**26))
TRACE_BYTES = {
    "not UTF-8": (b'{"format": "\xff"}', "UTF-8|cannot be decoded"),
    "UTF-16": (trace().encode("utf-16"), "UTF-8|cannot be decoded"),
    "zeros compressed": (ZEROS, "at most"),
    "repeated list compressed": (gzip.compress(b"[" + b"0," * 2**25), "at most"),
    "truncated gzip": (gzip.compress(trace().encode())[:-20], "truncated"),
    "wrong CRC": (gzip.compress(trace().encode())[:-8] + b"\0" * 8, "damaged|decompress"),
    "gzip and garbage": (gzip.compress(trace().encode()) + b"garbage", "damaged|after its end"),
    "gzip header alone": (b"\x1f\x8b", "damaged|truncated"),
}

# ---- texts ----

LONG_LINE = gzip.compress(b"a" * 2**26)
LINE = b"a" * 99 + b"\tb\n"
PAIRS = b"a cat\tun chat\n" * 20
TEXTS = {
    "line without end": (b"a" * (2**20 + 1), "", "lines of at most 1,048,576 bytes, but line 1"),
    "later line without end": (PAIRS + b"a" * 2**21, "", "but line 21 is longer"),
    "compressed line": (LONG_LINE, ".gz", "lines of at most 1,048,576 bytes"),
    "members of one line": (gzip.compress(b"a" * 2**19) * 9, ".gz", "lines of at most 1,048,576"),
    "compressed lines": (gzip.compress(LINE * 2**16), ".gz", "at most 100 times its size"),
    "zero bytes": (PAIRS + b"a\0b\tc\n", "", "line 21 has a zero byte"),
    "not UTF-8": (PAIRS + b"a\xff\tb\n", "", "must be UTF-8, but line 21"),
    "surrogate": (PAIRS + b"a\xed\xa0\x80\tb\n", "", "must be UTF-8, but line 21"),
    "UTF-16": (PAIRS.decode().encode("utf-16"), "", "must be UTF-8, but it is UTF-16"),
    "UTF-32": (PAIRS.decode().encode("utf-32"), "", "must be UTF-8, but it is UTF-32"),
    "truncated gzip": (gzip.compress(PAIRS)[:-12], ".gz", "damaged"),
    "wrong CRC": (gzip.compress(PAIRS)[:-8] + bytes(8), ".gz", "damaged"),
    "garbage after gzip": (gzip.compress(PAIRS) + b"garbage", ".gz", "damaged"),
    "no gzip": (PAIRS, ".gz", "damaged"),
}
LINKS = {
    "huge number": ("9" * 5000 + "-0", "links must be source-target word numbers"),
    "beyond the end": ("0-99999999999", "links must be"),
    "negative": ("-1--1", "links must be"),
    "no numbers": ("\x1b[2J-\u202e", r"links must be .*\\x1b"),
    "three numbers": ("0-0-0", "links must be"),
    "long line": ("0-0 " * 2**19, "lines of at most|links must be|ends before line"),
}

# ---- settings in TOML ----

TOMLS = {
    "deep list": (f"a = {nested()}", "at most 65,536 bytes"),
    "deep enough": (f"a = {'[' * 20_000}{']' * 20_000}", "nested too deeply"),
    "long key": (f"{'a.' * 20_000}a = 1", "at most 100 dots in a line, but line 1"),
    "hexadecimal": (f"[model]\nwidth = 0x{'f' * 50_000}", "model.width must be at most"),
    "negative hexadecimal": (f"[train]\nseed = -{'9' * 400}", "train.seed must be 0 or more"),
    "decimal": (f"[model]\nwidth = {'9' * 5000}", "must be TOML"),
    "integer beyond floats": (f"[model]\ndropout = {'9' * 400}", "model.dropout must be finite"),
    "overflow": ("[train]\nlearning_rate = 1e400", "train.learning_rate must be finite"),
    "NaN": ("[train]\nlearning_rate = nan", "must be 0 or more"),
    "layers": ("[model]\nlayers = 10000", "model.layers must be at most 1000"),
    "size": ("[model]\nlayers = 1000\nwidth = 999936", "which needs .* to train"),
    "positions": ("[model]\npositions = 'learned'\nmax_positions = 100000000\nwidth = 65536", "GB"),
    "negative": ("[model]\nheads = -1", "model.heads must be 1 or more"),
    "key twice": ("[model]\nwidth = 1\nwidth = 2", "must be TOML"),
    "long string": (f"[model]\nkind = '{'x' * 60_000}'", "no choice for model.kind"),
    "section of a number": ("model = 3", "must be a table"),
    "control characters": ('[model]\nkind = "\\u001b[2J\\u202e"', r"\\x1b\[2J\\u202e"),
    "list": (f"[train]\nbetas = [{'1,' * 9999}1]", "train.betas must be 2 numbers"),
    "empty key": ('"" = 1', "no section is called ''"),
}
TOML_BYTES = {"not UTF-8": b"a = '\xff'", "UTF-16": "[model]\nwidth = 3".encode("utf-16")}

# ---- runs ----


def sign(body):
    """Add the checksum that regard writes to the text of a JSON object."""
    body = f'{body.rstrip().removesuffix("}")}, "checksum": "'
    return f'{body}{sha256(body.encode("utf-8", "surrogatepass")).hexdigest()}"}}\n'


def content_of(path):
    content = json.loads(path.read_text("utf-8"))
    del content["checksum"]
    return content


def settings(change):
    """Return an attack that changes the content of settings.json, in place or as text."""

    def write(folder):
        path = RunFolder(folder).settings
        content = content_of(path)
        changed = change(content)
        body = changed if isinstance(changed, str) else json.dumps(content)
        path.write_bytes(sign(body).encode("utf-8", "surrogatepass"))

    return write


def setting(section, **changes):
    return settings(lambda content: content[section].update(changes))


def member(name, raw):
    """Return an attack that sets a member of settings.json to some text."""

    def change(content):
        return json.dumps(content | {name: "?"}).replace('"?"', raw)

    return settings(change)


def tokenizer(change):
    """Return an attack that changes the tokenizer of source and target."""

    def write(folder):
        path = RunFolder(folder).tokenizer
        content = content_of(path)
        change(content["both"])
        path.write_text(sign(json.dumps(content)))

    return write


def replace_file(name, write):
    def replace(folder):
        (folder / name).unlink()
        write(folder / name)

    return replace


def change_parameters(change):
    """Return an attack that changes the tensors; the file is signed."""

    def write(folder):
        path = RunFolder(folder).model
        tensors, metadata = parameters.load(path)
        change(tensors)
        parameters.save(path, tensors, metadata)

    return write


def first(tensors):
    return next(
        name
        for name, tensor in tensors.items()
        if tensor.dim() == 2 and tensor.shape[0] != tensor.shape[1]
    )


def safetensors(header, body=b""):
    """Return the bytes of a safetensors file with some header."""
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + body


def float_tensor(shape, start, end):
    return {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}


RUNS = {
    "layers": (setting("model", layers=10_000), "model.layers must be at most 1000"),
    "layers within the limit": (setting("model", layers=1000), "describe a model of"),
    "width": (setting("model", width=999_936), "describe a model of"),
    "inner width": (setting("model", ffn_width=10**7), "describe a model of"),
    "positions": (
        setting("model", positions="learned", max_positions=10**8),
        "describe a model of",
    ),
    "heads": (setting("model", heads=10**9), r"the settings under \[model\] do not fit"),
    "negative heads": (setting("model", heads=-4), "model.heads must be 1 or more"),
    "key heads": (setting("model", key_heads=10**15), r"the settings under \[model\] do not fit"),
    "no key heads": (setting("model", key_heads=0), r"\[model\] do not fit|model.key_heads"),
    "score": (setting("model", score="\x1b[2J" * 9), r"\[model\] do not fit: .*\\x1b"),
    "beam": (setting("search", beam_size=10**9), "search.beam_size must be at most"),
    "huge integer": (member("x", "9" * 5000), "at most 20 digits"),
    "deep": (member("x", nested()), "nested at most 32 deep"),
    "key twice": (member("x", '1, "train": {}'), "each key once, but 'train'"),
    "section of a list": (member("model", "[]"), "must be a table"),
    "missing section": (settings(lambda content: content.pop("search") and None), "damaged"),
    "settings are a list": (replace_file("settings.json", text("[]")), "damaged"),
    "texts of numbers": (setting("origin", texts=[1]), "damaged"),
    "control characters": (setting("model", kind="\x1b[2J\u202e"), r"\\x1b\[2J\\u202e"),
    "long string": (setting("model", kind="x" * 900_000), "no choice for model.kind"),
    "surrogate": (member("regard", r'"\ud800"'), "lone surrogate"),
    "settings not UTF-8": (replace_file("settings.json", data(b'{"a": "\xff"}')), "damaged"),
    "large settings": (replace_file("settings.json", sparse), "at most 1,048,576 bytes"),
    "other version": (member("format_version", "9" * 18), "newer version of regard"),
    "merge of no piece": (
        tokenizer(lambda one: one["merges"].append(["no", "such"])),
        "merges must be pairs of its pieces",
    ),
    "merge without result": (
        tokenizer(lambda one: one["merges"].insert(0, one["merges"][-1][::-1])),
        "merges must (give pieces|be pairs)",
    ),
    "merge of three": (tokenizer(lambda one: one["merges"].append(["a", "b", "c"])), "merges must"),
    "merges of numbers": (tokenizer(lambda one: one.update(merges=[[1, 2]])), "merges must"),
    "merges of a string": (tokenizer(lambda one: one.update(merges="ab")), "merges must be a list"),
    "piece twice": (
        tokenizer(lambda one: one["pieces"].append(one["pieces"][0])),
        "pieces must be different",
    ),
    "special piece": (tokenizer(lambda one: one["pieces"].append("<0x00>")), "pieces must be diff"),
    "empty piece": (tokenizer(lambda one: one["pieces"].append("")), "not empty"),
    "surrogate piece": (tokenizer(lambda one: one["pieces"].append("\ud800")), "lone surrogate"),
    "more pieces": (
        tokenizer(lambda one: one["pieces"].extend(f"x{n}" for n in range(10**5))),
        "describe a model of|must be of tokenizer",
    ),
    "kind of tokenizer": (tokenizer(lambda one: one.update(kind="\x1b")), r"called '\\x1b'"),
    "large tokenizer": (replace_file("tokenizer.json", sparse), "at most 268,435,456 bytes"),
    "deep tokenizer": (replace_file("tokenizer.json", text(nested())), "nested at most 32 deep"),
    "NaN parameters": (
        change_parameters(lambda tensors: tensors[first(tensors)][0].fill_(torch.nan)),
        "must have finite parameters",
    ),
    "infinite parameters": (
        change_parameters(lambda tensors: tensors[first(tensors)][0].fill_(-torch.inf)),
        "must have finite parameters",
    ),
    "overflow in float32": (
        change_parameters(
            lambda tensors: tensors.update(
                {first(tensors): torch.full_like(tensors[first(tensors)], 1e300, dtype=float)}
            )
        ),
        "must have finite parameters",
    ),
    "complex parameters": (
        change_parameters(
            lambda tensors: tensors.update(
                {first(tensors): tensors[first(tensors)].to(torch.complex64)}
            )
        ),
        "does not match the run",
    ),
    "integer parameters": (
        change_parameters(
            lambda tensors: tensors.update({first(tensors): tensors[first(tensors)].int()})
        ),
        "does not match the run",
    ),
    "transposed parameters": (
        change_parameters(
            lambda tensors: tensors.update({first(tensors): tensors[first(tensors)].T.contiguous()})
        ),
        "must have shape",
    ),
    "tensor without values": (
        change_parameters(lambda tensors: tensors.update({first(tensors): torch.ones(0, 2**40)})),
        "describe a model of|must have shape",
    ),
    "tensor of another name": (
        change_parameters(lambda tensors: tensors.update({"\x1b[2J": torch.ones(3)})),
        r"the model has no '\\x1b\[2J'",
    ),
    "no tensors": (change_parameters(dict.clear), "describe a model of"),
    "header beyond the file": (
        replace_file("model.safetensors", data(struct.pack("<Q", 2**62) + b"{}")),
        "damaged",
    ),
    "header of 100 MB": (
        replace_file("model.safetensors", data(struct.pack("<Q", 10**8 - 9) + b"{}")),
        "damaged",
    ),
    "deep header": (
        replace_file("model.safetensors", data(safetensors(nested().encode()))),
        "damaged",
    ),
    "tensors that overlap": (
        replace_file(
            "model.safetensors",
            data(
                safetensors(
                    {"a": float_tensor([2], 0, 8), "b": float_tensor([2], 4, 12)}, bytes(12)
                )
            ),
        ),
        "damaged",
    ),
    "tensors beyond the file": (
        replace_file(
            "model.safetensors", data(safetensors({"a": float_tensor([2**40], 0, 2**42)}))
        ),
        "damaged",
    ),
    "shape that overflows": (
        replace_file(
            "model.safetensors",
            data(safetensors({"a": float_tensor([2**40, 2**40], 0, 8)}, bytes(8))),
        ),
        "damaged",
    ),
    "sparse parameters": (replace_file("model.safetensors", sparse), "damaged"),
    **{
        f"{name} for {file}": (replace_file(file, write), message)
        for file in ("settings.json", "tokenizer.json", "model.safetensors")
        for name, (write, message) in NO_FILE.items()
    },
}

# ---- encoded pairs ----


def encoded(name, change):
    """Return an attack that changes a file of encoded pairs and signs it."""

    def write(folder):
        path = folder / "data" / "train" / name
        content = content_of(path.with_name("metadata.json"))
        if name == "metadata.json":
            change(content)
        else:
            path.write_bytes(change(path.read_bytes()))
            content["digests"][name] = sha256(path.read_bytes()).hexdigest()
        path.with_name("metadata.json").write_text(sign(json.dumps(content)))

    return write


def integer(index, value):
    """Return a change of one integer of 64 bits."""

    def change(content):
        at = 8 * index if index >= 0 else len(content) + 8 * index
        return content[:at] + struct.pack("<q", value) + content[at + 8 :]

    return change


DATA = {
    "starts that fall": (encoded("source.starts", integer(3, 2**40)), "must rise from 0"),
    "negative start": (encoded("source.starts", integer(0, -5)), "must rise from 0"),
    "end beyond the tokens": (encoded("target.starts", integer(-1, 2**62)), "must rise from 0"),
    "no starts": (encoded("source.starts", lambda content: b""), "one number more"),
    "fewer starts": (encoded("target.starts", lambda content: content[:-8]), "one number more"),
    "half a start": (encoded("target.starts", lambda content: content[:-3]), "damaged"),
    "tokens beyond the vocabulary": (
        encoded("source.tokens", lambda content: b"\xff\xff" + content[2:]),
        "source token 65535, but the vocabulary has",
    ),
    "links without pairs": (
        encoded("links.tokens", lambda content: content + b"\0\0"),
        "must rise from 0",
    ),
    "type of an object": (
        encoded("metadata.json", lambda content: content["dtypes"].update(source="O")),
        "values must be one of <u2",
    ),
    "type of a list": (
        encoded("metadata.json", lambda content: content.update(dtypes=[])),
        "damaged",
    ),
    "counts of lists": (
        encoded("metadata.json", lambda content: content.update(dropped={"x": [[]]})),
        "dropped must be numbers",
    ),
    "fifo for tokens": (replace_file("data/train/source.tokens", fifo), "must be a file"),
    "device for starts": (replace_file("data/train/source.starts", device), "must be a file"),
    "deep metadata": (
        replace_file("data/train/metadata.json", text(sign(f'{{"a": {nested()}}}'))),
        "nested at most 32 deep",
    ),
}


def _log_line(run_id, body):
    body = f'{body.removesuffix("}")}, "checksum": "'
    digest = sha256("\n".join((run_id, body)).encode()).hexdigest()
    return f'{body}{digest[:16]}"}}\n'


def log(body):
    """Return an attack that adds a signed line to the log."""

    def write(folder):
        files = RunFolder(folder)
        line = _log_line(files.read_id(), body) if body.startswith("{") else f"{body}\n"
        files.log.write_text(line + files.log.read_text())

    return write


LOGS = {
    "list": (log("[]"), "line 1 is wrong"),
    "no step": (log('{"loss": 1}'), "line 1 is wrong"),
    "step of a string": (log('{"step": "1"}'), "line 1 is wrong"),
    "deep": (log(f'{{"step": 1, "a": {nested()}}}'), "line 1 is wrong"),
    "key twice": (log('{"step": 1, "step": 2}'), "line 1 is wrong"),
    "huge integer": (log(f'{{"step": {"9" * 9999}}}'), "line 1 is wrong"),
    "fifo": (replace_file("log.jsonl", fifo), "must be a file"),
    "device": (replace_file("log.jsonl", device), "must be a file"),
    "large": (replace_file("log.jsonl", sparse), "at most 1,073,741,824 bytes"),
}


def _collect():
    """Return all attacks by name."""
    attacks = {}

    def add(kind, name, write, message, suffix=""):
        attacks[f"{kind}: {name}"] = Attack(kind, write, message, suffix)

    for name, (content, message) in TRACES.items():
        add("trace", name, text(content), message, ".json")
    for name, (content, message) in TRACE_BYTES.items():
        add("trace", name, data(content), message, ".json")
    for name, (content, suffix, message) in TEXTS.items():
        for kind in ("corpus", "sources"):
            add(kind, name, data(content), message, suffix)
    for name, (content, message) in LINKS.items():
        add("alignments", name, text(f"{content}\n"), message)
    for name, (content, message) in TOMLS.items():
        add("toml", name, text(content), message, ".toml")
    for name, content in TOML_BYTES.items():
        add("toml", name, data(content), "must be UTF-8", ".toml")
    for kind in ("trace", "toml"):
        for name, (write, message) in NO_FILE.items():
            add(kind, name, write, message)
        add(kind, "sparse file of 1 TiB", sparse, "must have at most .* bytes, but it has")
    for kind, table in (("run", RUNS), ("training data", DATA), ("log", LOGS)):
        for name, (write, message) in table.items():
            add(kind, name, write, message)
    return attacks


ATTACKS = _collect()
