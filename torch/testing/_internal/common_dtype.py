"""Sets of dtypes by name, for tests that run once per dtype. Functions ending in `_and` add the
given dtypes to the set."""

from __future__ import annotations

import torch


class _Set(tuple):
    """A tuple of dtypes that adds like one and stays free of doubles."""

    def __new__(cls, *dtypes) -> _Set:
        return super().__new__(cls, dict.fromkeys(dtypes))

    def __add__(self, other):
        return _Set(*self, *other)


_FLOATING = _Set(torch.float32, torch.float64)
_HALVES = _Set(torch.float16, torch.bfloat16)
_COMPLEX = _Set(torch.complex64, torch.complex128)
_INTEGRAL = _Set(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_FLOAT8 = _Set(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
_QUANTIZED = _Set(torch.quint8, torch.qint8, torch.qint32)


def empty_types():
    return _Set()


def floating_types():
    return _FLOATING


def floating_types_and_half():
    return _FLOATING + (torch.float16,)


def floating_types_and(*dtypes):
    return _FLOATING + dtypes


def floating_and_complex_types():
    return _FLOATING + _COMPLEX


def floating_and_complex_types_and(*dtypes):
    return _FLOATING + _COMPLEX + dtypes


def double_types():
    return _Set(torch.float64, torch.complex128)


def integral_types():
    return _INTEGRAL


def integral_types_and(*dtypes):
    return _INTEGRAL + dtypes


def all_types():
    return _FLOATING + _INTEGRAL


def all_types_and(*dtypes):
    return _FLOATING + _INTEGRAL + dtypes


def all_types_and_half():
    return all_types_and(torch.float16)


def complex_types():
    return _COMPLEX


def complex_types_and(*dtypes):
    return _COMPLEX + dtypes


def all_types_and_complex():
    return all_types() + _COMPLEX


def all_types_and_complex_and(*dtypes):
    return all_types() + _COMPLEX + dtypes


def all_types_complex_float8_and(*dtypes):
    return all_types() + _COMPLEX + _FLOAT8 + dtypes


def float8_types():
    return _FLOAT8


def float8_types_and(*dtypes):
    return _FLOAT8 + dtypes


def all_mps_types():
    return _Set(torch.float32) + _HALVES + _INTEGRAL


def all_mps_types_and(*dtypes):
    return all_mps_types() + dtypes


def custom_types(*dtypes):
    """Exactly the given dtypes."""
    return _Set(*dtypes)


def get_all_dtypes(
    include_half=True,
    include_bfloat16=True,
    include_bool=True,
    include_complex=True,
    include_complex32=False,
    include_qint=False,
) -> list[torch.dtype]:
    found = get_all_int_dtypes() + get_all_fp_dtypes(include_half, include_bfloat16)
    found += [torch.bool] if include_bool else []
    found += get_all_complex_dtypes(include_complex32) if include_complex else []
    return found + (get_all_qint_dtypes() if include_qint else [])


def get_all_math_dtypes(device):
    on_device = torch.device(device).type == "cuda"
    return get_all_int_dtypes() + get_all_fp_dtypes(on_device, False) + get_all_complex_dtypes()


def get_all_complex_dtypes(include_complex32=False) -> list[torch.dtype]:
    return [*([torch.complex32] if include_complex32 else []), *_COMPLEX]


def get_all_int_dtypes() -> list[torch.dtype]:
    return list(_INTEGRAL)


def get_all_fp_dtypes(include_half=True, include_bfloat16=True) -> list[torch.dtype]:
    found = list(_FLOATING)
    found += [torch.float16] if include_half else []
    return found + ([torch.bfloat16] if include_bfloat16 else [])


def get_all_qint_dtypes():
    return list(_QUANTIZED)


def highest_precision_float(device):
    return torch.float32 if torch.device(device).type == "mps" else torch.float64


def highest_precision_complex(device):
    return torch.complex64 if torch.device(device).type == "mps" else torch.complex128


float_to_corresponding_complex_type_map = {
    torch.float16: torch.complex32,
    torch.float32: torch.complex64,
    torch.float64: torch.complex128,
}
