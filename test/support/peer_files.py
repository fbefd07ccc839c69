"""Values whose files were recorded from PyTorch 2.13, in every form that torch.save has there: the
loader must give back exactly what was saved. `python test/support/peer_files.py OUT` writes the
recording with whichever torch the interpreter has; peer_files.txt came from PyTorch's."""

import base64
import collections
import io
import sys
import warnings
import zlib

import torch

DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "complex32 complex64 complex128 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz "
    "float8_e8m0fnu"
).split()
FORMS = {
    "zip": {},
    "zip, protocol 3": {"pickle_protocol": 3},
    "zip, protocol 4": {"pickle_protocol": 4},
    "zip, protocol 5": {"pickle_protocol": 5},
    "legacy": {"_use_new_zipfile_serialization": False},
    "legacy, protocol 4": {"_use_new_zipfile_serialization": False, "pickle_protocol": 4},
}


def pattern(name):
    """Twelve elements of a dtype."""
    raw = bytearray((7 * i + 1) % 251 for i in range(12 * 16))
    if name == "bool":
        raw = bytearray(i % 2 for i in range(12))
    return torch.frombuffer(raw, dtype=getattr(torch, name), count=12).clone()


def _dtypes():
    return {name: pattern(name) for name in DTYPES}


def _views():
    base = torch.arange(20.0)
    return {
        "base": base,
        "row": base[3:7],
        "turned": base.view(4, 5).t(),
        "expanded": base[:2].expand(3, 2),
        "same": base,
        "zero": base[4],
        "empty": base[:0].view(0, 3),
        "last": torch.arange(48.0).view(1, 3, 4, 4).to(memory_format=torch.channels_last),
    }


def _module():
    torch.manual_seed(0)
    layers = collections.OrderedDict(
        a=torch.nn.Linear(3, 4), b=torch.nn.BatchNorm1d(4), c=torch.nn.Embedding(5, 4)
    )
    model = torch.nn.Sequential(layers)
    model.register_buffer("kept", torch.arange(3))
    model.register_buffer("left out", torch.ones(1), persistent=False)
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.arange(parameter.numel()).view(parameter.shape) + number)
    return model.state_dict()


def _parameters():
    marked = torch.nn.Parameter(torch.arange(3.0), requires_grad=False)
    marked.tag = "x"
    noted = torch.arange(2.0)
    noted.note = [1, {"a": 2}]
    return [
        torch.nn.Parameter(torch.arange(3.0)),
        marked,
        noted,
        torch.nn.Buffer(torch.arange(2.0)),
        torch.zeros(2, requires_grad=True),
    ]


def _bits():
    numbers = torch.tensor([1 + 2j, 3 - 4j])
    return [numbers.conj(), numbers.clone().conj().imag, torch._neg_view(torch.arange(3.0))]


def _sparse():
    loose = torch.sparse_coo_tensor(
        torch.tensor([[0, 1, 1], [2, 0, 0]]), torch.tensor([3.0, 4.0, 5.0]), (2, 3)
    )
    hybrid = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(2, 3), (4, 3))
    dense = torch.arange(24.0).view(4, 6)
    dense[1] = 0
    blocks = [dense.to_sparse_bsr((2, 3)), dense.to_sparse_bsc((2, 3))]
    return [loose, loose.coalesce(), hybrid, dense.to_sparse_csr(), dense.to_sparse_csc(), *blocks]


def _plain():
    return {
        "numbers": [1, -5, 2**40, 2**100, -(2**70), 2.5, float("inf"), 1j, True, None],
        "texts": ["", "text", "\u00e9\u4e2d", b"\0\xff", bytearray(b"x")],
        "tuple": (1, (2, [3])),
        "sets": ({1, "a"}, frozenset([1])),
        "ordered": collections.OrderedDict([("z", 1), ("a", 2)]),
        "counter": collections.Counter("hello"),
        "size": torch.Size([2, 3]),
        "devices": [torch.device("cpu"), torch.device("cuda", 1), torch.device("meta")],
        "dtypes": [getattr(torch, name) for name in DTYPES],
        "layouts": [torch.strided, torch.sparse_coo, torch.sparse_csr],
        1: {2.5: {None: {(1, "k"): 0}}},
    }


def _meta():
    return [torch.empty(2, 3, device="meta"), torch.empty(2, 3, device="meta").t()]


def _random_state():
    return torch.Generator().manual_seed(3).get_state()


VALUES = {
    "dtypes": _dtypes,
    "views": _views,
    "module": _module,
    "parameters": _parameters,
    "bits": _bits,
    "sparse": _sparse,
    "plain": _plain,
    "meta": _meta,
    "random state": _random_state,
}


def _sparse_parts(tensor):
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values(), torch.tensor(tensor.is_coalesced())]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]


def _describe_tensor(tensor, storages):
    facts = [type(tensor).__name__, str(tensor.dtype), tuple(tensor.shape), str(tensor.device)]
    facts.append([tensor.requires_grad, tensor.is_conj(), tensor.is_neg(), str(tensor.layout)])
    facts.append(sorted((k, str(v)) for k, v in getattr(tensor, "__dict__", {}).items()))
    if tensor.layout is not torch.strided:
        # How the parts lie in memory is a matter of the kernel that made them.
        return [*facts, *((str(part.dtype), part.tolist()) for part in _sparse_parts(tensor))]
    facts += [tensor.stride(), tensor.storage_offset()]
    if tensor.device.type == "meta":
        return facts
    storage = tensor.untyped_storage()
    # Which tensors share memory is a part of the value; an empty storage has no address.
    key = storage.data_ptr() if storage.nbytes() else None
    return [*facts, storages.setdefault(key, len(storages)), bytes(storage.tolist())]


def describe(value, storages=None):
    """All that can be seen of a value, in plain types."""
    storages = {} if storages is None else storages
    if isinstance(value, torch.Tensor):
        return _describe_tensor(value, storages)
    name = type(value).__name__
    if isinstance(value, dict):
        pairs = [(repr(key), describe(item, storages)) for key, item in value.items()]
        return [name, pairs, repr(getattr(value, "_metadata", None))]
    if isinstance(value, (set, frozenset)):
        return [name, sorted(map(repr, value))]
    if isinstance(value, (list, tuple)):
        return [name, [describe(item, storages) for item in value]]
    return [name, repr(value)]


def saved(value, **options):
    """The bytes of a file."""
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def record(path):
    """Writes a line for each value and form: name, form, content."""
    with open(path, "w") as out:
        for name, make in VALUES.items():
            for form, options in FORMS.items():
                coded = base64.b64encode(zlib.compress(saved(make(), **options), 9)).decode()
                out.write(f"{name}|{form}|{coded}\n")
        torch.serialization.set_crc32_options(False)
        coded = base64.b64encode(zlib.compress(saved(_views()), 9)).decode()
        out.write(f"views|zip without checksums|{coded}\n")


def recorded(path):
    """(name, form, bytes) of each line."""
    with open(path) as file:
        for line in file:
            name, form, coded = line.rstrip("\n").split("|")
            yield name, form, zlib.decompress(base64.b64decode(coded))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    record(sys.argv[1])
