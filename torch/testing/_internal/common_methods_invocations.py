"""The operator database under the names test suites know: op_db and its subsets, made of the op
records of torch.testing._internal.opinfo."""

import torch
from torch.testing._internal.opinfo import ErrorInput, OpInfo, SampleInput, records

__all__ = [
    "DecorateInfo",
    "ErrorInput",
    "OpInfo",
    "SampleInput",
    "binary_ufuncs",
    "op_db",
    "ops_and_refs",
    "python_ref_db",
    "reduction_ops",
    "shape_funcs",
    "sparse_unary_ufuncs",
    "spectral_funcs",
    "unary_ufuncs",
]


class DecorateInfo:
    """Decorators for the tests of one record that match class, name, device type and dtypes."""

    __slots__ = ("active_if", "cls_name", "decorators", "device_type", "dtypes", "test_name")

    def __init__(
        self,
        decorators,
        cls_name=None,
        test_name=None,
        *,
        device_type=None,
        dtypes=None,
        active_if=True,
    ) -> None:
        self.decorators = (
            list(decorators) if isinstance(decorators, (list, tuple)) else [decorators]
        )
        self.cls_name, self.test_name = cls_name, test_name
        self.device_type, self.dtypes, self.active_if = device_type, dtypes, active_if
        if dtypes is not None and not all(isinstance(d, torch.dtype) for d in dtypes):
            raise AssertionError("DecorateInfo is given dtypes")

    def is_active(self, cls_name, test_name, device_type, dtype, param_kwargs):
        place = {"cls_name": cls_name, "test_name": test_name, "device_type": device_type}
        here = all(getattr(self, key) in (None, value) for key, value in place.items())
        return self.active_if and here and (self.dtypes is None or dtype in self.dtypes)


op_db = list(records())
python_ref_db = []
ops_and_refs = [*op_db, *python_ref_db]
unary_ufuncs = [r for r in op_db if r.kind == "unary" and r.ref is not None]
binary_ufuncs = [r for r in op_db if r.kind == "binary"]
reduction_ops = [r for r in op_db if r.family == "reduce"]
shape_funcs = [r for r in op_db if r.family == "shape"]
spectral_funcs = [r for r in op_db if r.family == "fft" and r.name.startswith("fft.")]
sparse_unary_ufuncs = [r for r in op_db if r.family == "sparse" and r.kind == "unary"]
