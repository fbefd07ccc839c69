# ruff: noqa: F401
"""NumPy's interface on torch tensors: `import torch._numpy as np`.

Arrays follow NumPy's rules for dtypes (numbers of Python are weak), axes, broadcasting and errors;
they compute by torch, so that programs written for NumPy can be traced, differentiated and run on a
GPU. `array.tensor` is the tensor.
"""

from __future__ import annotations

from math import e, inf, nan, pi

from torch._numpy import _dtypes, _funcs, _ndarray, _ufuncs, _util, fft, linalg, random
from torch._numpy._dtypes import DType, dtype, issubdtype, sctypes, set_default_dtype, typecodes
from torch._numpy._funcs import *  # noqa: F403
from torch._numpy._ndarray import (
    array,
    asarray,
    ascontiguousarray,
    can_cast,
    from_dlpack,
    ndarray,
    result_type,
)
from torch._numpy._ufuncs import *  # noqa: F403
from torch._numpy._util import AxisError, UFuncTypeError

False_, True_ = False, True
newaxis = None

globals().update(_dtypes.names())
_ndarray.declare_methods(vars(_funcs))
