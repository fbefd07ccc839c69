"""safetensors files: round trips, and files that break one rule of the format."""

import io
import struct

import pytest
from tensor_support import raw, sample

import torch
from torch.serialization import CheckpointError, load_safetensors, save_safetensors


def _safetensors(header, data=b"", length=None):
    raw_header = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(raw_header) if length is None else length) + raw_header + data


def test_safetensors_round_trip(tmp_path):
    names = "bool uint8 int16 int64 float16 bfloat16 float32 float64 uint16 uint32 uint64"
    tensors = {name: sample(name) for name in names.split()}
    tensors["empty"] = torch.empty(0, 3)
    tensors["scalar"] = torch.tensor(2.5)
    tensors["turned"] = torch.arange(6.0).view(2, 3).t()
    save_safetensors(tensors, tmp_path / "x.safetensors", {"format": "pt"})
    found, metadata = load_safetensors(tmp_path / "x.safetensors", return_metadata=True)
    assert metadata == {"format": "pt"}
    assert set(found) == set(tensors)
    for key, tensor in tensors.items():
        assert found[key].dtype is tensor.dtype and found[key].shape == tensor.shape
        assert raw(found[key]) == raw(tensor)


F32 = '{"a":{"dtype":"F32","shape":[%s],"data_offsets":[%s]}}'
SAFETENSORS = {
    "too short": b"\0\0\0",
    "header longer than the file": _safetensors("{}", length=1000),
    "header of 2^63 bytes": _safetensors("{}", length=1 << 63),
    "header that is no JSON": _safetensors("{nonsense"),
    "header that is a list": _safetensors("[]"),
    "header with a space first": _safetensors(" {}"),
    "not UTF-8": _safetensors(b'{"\xff":1}'),
    "name twice": _safetensors(F32[:-1] % ("0", "0,0") + "," + F32[1:] % ("0", "0,0")),
    "hole": _safetensors(F32 % ("1", "4,8"), b"\0" * 8),
    "bytes left over": _safetensors(F32 % ("1", "0,4"), b"\0" * 8),
    "data missing": _safetensors(F32 % ("2", "0,8"), b"\0" * 4),
    "shape larger than the data": _safetensors(F32 % ("2", "0,4"), b"\0" * 4),
    "shape that overflows": _safetensors(
        F32 % ("4294967296,4294967296,4294967296", "0,4"), b"\0" * 4
    ),
    "negative size": _safetensors(F32 % ("-1", "0,4"), b"\0" * 4),
    "size that is a fraction": _safetensors(F32 % ("1.0", "0,4"), b"\0" * 4),
    "offsets in reverse": _safetensors(F32 % ("1", "4,0"), b"\0" * 4),
    "one offset": _safetensors(F32 % ("1", "4"), b"\0" * 4),
    "unknown dtype": _safetensors(F32.replace("F32", "F99") % ("1", "0,4"), b"\0" * 4),
    "too many dimensions": _safetensors(F32 % (",".join("1" * 65), "0,4"), b"\0" * 4),
    "metadata that is no text": _safetensors('{"__metadata__":{"a":1}}'),
    "boolean bytes": _safetensors(F32.replace("F32", "BOOL") % ("1", "0,1"), b"\x02"),
    "deep JSON": _safetensors('{"a":' + "[" * 100_000 + "]" * 100_000 + "}"),
    "overlap": _safetensors(
        F32[:-1] % ("1", "0,4") + "," + (F32 % ("1", "0,4"))[1:].replace('"a"', '"b"'), b"\0" * 4
    ),
}


@pytest.mark.parametrize("data", SAFETENSORS.values(), ids=SAFETENSORS.keys())
def test_damaged_safetensors_are_refused(data):
    with pytest.raises(CheckpointError):
        load_safetensors(io.BytesIO(data))


def test_safetensors_refuses_what_it_cannot_hold():
    with pytest.raises(ValueError, match="only tensors"):
        save_safetensors({"a": 1}, io.BytesIO())
    with pytest.raises(ValueError, match="cannot be the name"):
        save_safetensors({3: torch.ones(1)}, io.BytesIO())
    with pytest.raises(ValueError, match="no code"):
        save_safetensors({"a": torch.ones(1, dtype=torch.complex128)}, io.BytesIO())
