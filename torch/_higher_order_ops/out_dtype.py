"""out_dtype(op, dtype, *args): an operator computed, and its result given, in a wider dtype.
Products of small integers need this: their sums do not fit the dtype of the operands."""

from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator, OpOverload
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from torch.utils import _pytree as pytree

__all__ = ["ALLOWABLE_OPS", "out_dtype"]

_aten = torch.ops.aten
# Operators that can be computed so, with how their own dtype follows from the operands'; None: they
# take operands of one dtype.
ALLOWABLE_OPS = {
    _aten.linear.default: None,
    _aten.mm.default: None,
    _aten.conv2d.default: None,
    _aten.convolution.default: None,
    _aten.mul.Tensor: ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT,
    _aten.mul.Scalar: ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT,
    _aten.div.Tensor: ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT,
    _aten.div.Scalar: ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT,
}


class OutDtypeOperator(HigherOrderOperator):
    """out_dtype(op, output_dtype, *args)"""

    def __init__(self) -> None:
        super().__init__("out_dtype", cacheable=True)

    def __call__(self, op: OpOverload, output_dtype: torch.dtype, *args: Any) -> Tensor:
        if not isinstance(op, OpOverload):
            raise ValueError("out_dtype's first argument must be an OpOverload")
        if op._schema.is_mutable:
            raise ValueError("out_dtype's first argument needs to be a functional operator")
        if len(op._schema.returns) != 1 or str(op._schema.returns[0].type) != "Tensor":
            raise ValueError(
                "out_dtype's can only apply to ops that return a single tensor"
                f"Instead got {[r.type for r in op._schema.returns]}"
            )
        if op not in ALLOWABLE_OPS:
            raise ValueError(
                f"out_dtype only allows the following operators: {list(ALLOWABLE_OPS)}."
            )
        return super().__call__(op, output_dtype, *args)


out_dtype = OutDtypeOperator()


@out_dtype.py_impl(utils.COMPOSITE)
def _run(op, output_dtype, *args) -> Tensor:
    operands = [x for x in pytree.tree_leaves(args) if isinstance(x, Tensor)]
    kind = ALLOWABLE_OPS[op]
    if kind is None:
        compute = output_dtype
    else:
        numbers = [x for x in args if isinstance(x, (Tensor, int, float, bool))]
        compute, _ = elementwise_dtypes(*numbers, type_promotion_kind=kind)
        compute = torch.promote_types(compute, output_dtype)
    wide = pytree.tree_map_only(Tensor, lambda t: t if t.dtype == compute else t.to(compute), args)
    result = op(*wide)
    if not operands:
        raise ValueError(f"out_dtype needs a tensor among the arguments of {op}")
    return result if result.dtype == output_dtype else result.to(output_dtype)


out_dtype.py_impl(DispatchKey.Autograd)(utils.autograd_not_implemented(out_dtype))


@out_dtype.py_impl(FakeTensorMode)
def _without_data(mode, op, output_dtype, *args) -> Tensor:
    with mode:
        return _run(op, output_dtype, *args)


@out_dtype.py_impl(ProxyTorchDispatchMode)
def _trace(mode, op, output_dtype, *args) -> Tensor:
    result = out_dtype(op, output_dtype, *args)
    return utils.record(mode, out_dtype, {}, (op, output_dtype, *args), result)


@out_dtype.py_functionalize_impl
def _functional(ctx, op, output_dtype, *args) -> Tensor:
    inner = ctx.unwrap_tensors(args)
    with ctx.redispatch_to_next():
        return ctx.wrap_tensors(out_dtype(op, output_dtype, *inner))
