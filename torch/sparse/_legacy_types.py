"""torch.sparse.FloatTensor and its like: old names that make a COO tensor of one dtype and test for
it. They are classes only in appearance, as those of torch._legacy_types."""

import torch


def sparse_new(dtype, *args, **kwargs):
    """A COO tensor of sizes, or of indices, values and perhaps a size; values keep their dtype."""
    if not args:
        return torch.sparse_coo_tensor((0,), dtype=dtype, **kwargs)
    if isinstance(args[0], torch.Size):
        return torch.sparse_coo_tensor(args[0], dtype=dtype, **kwargs)
    if isinstance(args[0], int):
        return torch.sparse_coo_tensor(args, dtype=dtype, **kwargs)
    if len(args) == 1:
        raise TypeError(
            "a sparse tensor is made of sizes or of indices and values; for other data use "
            "torch.sparse_coo_tensor() or Tensor.to_sparse()"
        )
    return torch.sparse_coo_tensor(*args, **kwargs)


class sparse_tensortype(type):
    """The class of torch.sparse.FloatTensor, torch.sparse.LongTensor, ..."""

    def __new__(mcs, name, dtype):
        members = {
            "__module__": "torch.sparse",
            "dtype": dtype,
            "layout": torch.sparse_coo,
            "is_cuda": False,
            "is_sparse": True,
        }
        return super().__new__(mcs, name, (), members)

    def __init__(cls, name, dtype) -> None:
        super().__init__(name, (), {})

    def __call__(cls, *args, **kwargs):
        return sparse_new(cls.dtype, *args, **kwargs)

    def __instancecheck__(cls, instance) -> bool:
        return (
            isinstance(instance, torch.Tensor)
            and instance.dtype is cls.dtype
            and instance.layout is torch.sparse_coo
        )


FloatTensor = sparse_tensortype("FloatTensor", torch.float32)
DoubleTensor = sparse_tensortype("DoubleTensor", torch.float64)
HalfTensor = sparse_tensortype("HalfTensor", torch.float16)
BFloat16Tensor = sparse_tensortype("BFloat16Tensor", torch.bfloat16)
ByteTensor = sparse_tensortype("ByteTensor", torch.uint8)
CharTensor = sparse_tensortype("CharTensor", torch.int8)
ShortTensor = sparse_tensortype("ShortTensor", torch.int16)
IntTensor = sparse_tensortype("IntTensor", torch.int32)
LongTensor = sparse_tensortype("LongTensor", torch.int64)
