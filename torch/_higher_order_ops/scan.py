"""A recurrence over slices as an operator: a Python loop, or one graph of the step."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._higher_order_ops.map import mode_paused
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from torch.utils import _pytree as pytree

__all__ = ["scan", "scan_op"]


class ScanOp(HigherOrderOperator):
    """scan_op(combine_fn, init, xs, additional_inputs), all flat, along dimension 0: combine_fn
    takes the carries, the slices and the additional inputs and returns new carries, then outputs.
    The result is the last carries, then the outputs stacked.
    """

    def __init__(self) -> None:
        super().__init__("scan", cacheable=True)

    def __call__(
        self, combine_fn: Callable[..., Any], init: tuple, xs: tuple, additional_inputs: tuple = ()
    ) -> tuple:
        return super().__call__(combine_fn, init, xs, additional_inputs)


scan_op = ScanOp()


def scan(
    combine_fn: Callable[..., Any], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple:
    """carry, y = combine_fn(carry, x) along dim of xs; the last carry and all y stacked along dim,
    or along 0 where they do not have that dimension."""
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    carries, carry_spec = pytree.tree_flatten(init)
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves:
        return init, []
    _check_slices(leaves, dim)
    along = [x.movedim(dim, 0) for x in leaves]
    if reverse:
        along = [x.flip(0) for x in along]
    out_spec: list = []

    def step(*values: Any) -> tuple:
        carry = pytree.tree_unflatten(values[: len(carries)], carry_spec)
        x = pytree.tree_unflatten(values[len(carries) :], spec)
        result = combine_fn(carry, x)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise RuntimeError(f"combine_fn must return (carry, output), but got {result}")
        new_carry, new_spec = pytree.tree_flatten(result[0])
        if new_spec != carry_spec:
            raise RuntimeError(
                "The tree structure of the carry of combine_fn must match that of init: "
                f"{carry_spec} and {new_spec}"
            )
        outputs, spec_of_outputs = pytree.tree_flatten(result[1])
        out_spec[:] = [spec_of_outputs]
        return (*new_carry, *outputs)

    step.__name__ = "Combine_fn"  # as errors name it
    captured: list[Tensor] = []
    if utils.being_traced():
        with mode_paused():
            example = [*carries, *(x[0] for x in along)]
        (step,), captured = utils.lifted([step], example)
    flat = scan_op(step, tuple(carries), tuple(along), tuple(captured))
    outputs = flat[len(carries) :]
    if reverse:
        outputs = [y.flip(0) for y in outputs]
    outputs = _stacked_along(outputs, dim % leaves[0].dim())
    last = pytree.tree_unflatten(flat[: len(carries)], carry_spec)
    return last, pytree.tree_unflatten(outputs, out_spec[0])


def _check_slices(leaves: list, dim: int) -> None:
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"xs leaves must be a Tensor, but got {x}")
        if not -x.dim() <= dim < x.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-x.dim()}, {x.dim() - 1}], "
                f"but got {dim})"
            )
        if x.shape[dim] < 1:
            raise RuntimeError("All xs leaves must have a scan dimension > 0")
        if x.shape[dim] != leaves[0].shape[dim]:
            raise RuntimeError(
                "All xs leaves must have as many slices, but got "
                f"{[tuple(leaf.shape) for leaf in leaves]} along dimension {dim}"
            )


def _stacked_along(stacked: list[Tensor], dim: int) -> list[Tensor]:
    return [y.movedim(0, dim) if dim < y.dim() else y for y in stacked]


def _fake_scan(
    combine_fn: Callable[..., Any], init: Any, xs: Any, dim: int = 0, reverse: bool = False
) -> tuple:
    """scan by a plain loop, to compare with."""
    leaves, spec = pytree.tree_flatten(xs)
    order = range(leaves[0].shape[dim])
    carry, outputs = init, []
    for i in reversed(order) if reverse else order:
        carry, y = combine_fn(
            carry, pytree.tree_unflatten([x.select(dim, i) for x in leaves], spec)
        )
        outputs.append(y)
    stacked = utils.stack_trees(outputs[::-1] if reverse else outputs)
    dim %= leaves[0].dim()
    return carry, pytree.tree_map(lambda y: _stacked_along([y], dim)[0], stacked)


@scan_op.py_impl(utils.COMPOSITE)
def _run(combine_fn, init, xs, additional_inputs) -> tuple:
    carry, outputs = list(init), []
    for slices in zip(*xs, strict=True):
        result = combine_fn(*carry, *slices, *additional_inputs)
        carry = list(result[: len(init)])
        outputs.append(result[len(init) :])
    return (*carry, *(torch.stack(parts) for parts in zip(*outputs, strict=True)))


@scan_op.py_impl(DispatchKey.Autograd)
def _differentiate(combine_fn, init, xs, additional_inputs) -> tuple:
    if not utils.being_traced():
        return _run(combine_fn, init, xs, additional_inputs)
    if not torch.is_grad_enabled():
        return NotImplemented
    carries, slices = len(init), len(xs)

    def keeping(*values: Any) -> tuple:
        """combine_fn, which also outputs the carries it was given: the way back needs them."""
        return (*combine_fn(*values), *(c.clone() for c in values[:carries]))

    operands = (*init, *xs, *additional_inputs)
    with mode_paused():
        first = [utils.plain(x)[0] for x in xs]
    example = [*map(utils.plain, init), *first, *map(utils.plain, additional_inputs)]
    graph = utils.traced_now(keeping, example, operands)

    def run(*values: Any) -> tuple:
        parts = values[:carries], values[carries : carries + slices], values[carries + slices :]
        return scan_op(graph, *parts)

    results = utils.results_of(graph, example)
    back = _Back(combine_fn, (carries, slices), results[: len(results) - carries], operands)
    back.trace(example, operands)
    return utils.differentiated(run, back, operands, hidden=carries)


class _Back:
    """The gradients, by a scan from the last slice to the first. It carries the gradients of the
    carries and the sums of the gradients of additional inputs; its outputs are those of slices."""

    def __init__(self, combine_fn, counts, results, operands) -> None:
        self.carries, self.slices = counts
        wanted = utils.differentiable(operands)
        self.has_grad = [utils._has_derivative(r) for r in results]
        # Carries have a gradient be it of init or of slices.
        self.flows = self.has_grad[: self.carries]
        self.rest_wanted = wanted[self.carries + self.slices :]
        self.flowing, self.summed = sum(self.flows), sum(self.rest_wanted)
        self.outputs = sum(self.has_grad[self.carries :])
        asked = [*self.flows, *wanted[self.carries :]]
        self.vjp = utils.vjp_of(combine_fn, asked, self.has_grad)
        self.results = [r for r, has in zip(results, self.has_grad, strict=True) if has]
        self.graph: torch.fx.GraphModule | None = None

    def trace(self, example: list, operands: tuple) -> None:
        """Records one step, on values like those of a step forwards."""
        behind = self.carries + self.slices
        sums = [x for x, want in zip(example[behind:], self.rest_wanted, strict=True) if want]
        to_carries, to_outputs = self.results[: self.flowing], self.results[self.flowing :]
        own = [*example[self.carries : behind], *example[: self.carries], *example[behind:]]
        with mode_paused():  # one tensor must not stand for two arguments
            parts = [x.clone() for x in (*to_carries, *sums, *to_outputs, *own)]
        self.graph = utils.traced_now(self.step, parts, operands)

    def step(self, *parts: Any) -> tuple:
        """Gradients of carries, sums, gradients of outputs, slices, carries, additional inputs."""
        rows = iter(parts)
        to_carries = [next(rows) for _ in range(self.flowing)]
        sums = [next(rows) for _ in range(self.summed)]
        to_outputs = [next(rows) for _ in range(self.outputs)]
        x = [next(rows) for _ in range(self.slices)]
        c = [next(rows) for _ in range(self.carries)]
        found = self.vjp(*c, *x, *rows, *to_carries, *to_outputs)
        ahead = len(found) - self.summed
        added = [a + b for a, b in zip(sums, found[ahead:], strict=True)]
        return (*found[: self.flowing], *added, *found[self.flowing : ahead])

    def __call__(self, values, grads, wanted, kept) -> list:
        carries, behind = self.carries, self.carries + self.slices
        given = [g for g, has in zip(grads, self.has_grad, strict=True) if has]
        start, upstream = given[: self.flowing], given[self.flowing :]
        rest = values[behind:]
        zeros = [torch.zeros_like(x) for x, w in zip(rest, self.rest_wanted, strict=True) if w]
        along = [x.flip(0) for x in (*upstream, *values[carries:behind], *kept)]
        found = scan_op(self.graph, (*start, *zeros), tuple(along), tuple(rest))
        of_init = iter(found[: self.flowing])
        to_init = [next(of_init) if has else None for has in self.flows]
        of_rest = found[self.flowing : self.flowing + self.summed]
        of_xs = [g.flip(0) for g in found[self.flowing + self.summed :]]
        taken = [g for g, w in zip(to_init, wanted[:carries], strict=True) if w]
        return [*taken, *of_xs, *of_rest]


@scan_op.py_impl(FakeTensorMode)
def _without_data(mode, combine_fn, init, xs, additional_inputs) -> tuple:
    with mode:
        length = xs[0].shape[0]
        result = combine_fn(*init, *(x[0] for x in xs), *additional_inputs)
        carry = result[: len(init)]
        utils.check_same_outputs("scan", tuple(init), tuple(carry))
        return (*carry, *(y.new_empty((length, *y.shape)) for y in result[len(init) :]))


@scan_op.py_impl(ProxyTorchDispatchMode)
def _trace(mode, combine_fn, init, xs, additional_inputs) -> tuple:
    with mode_paused():
        slices = [x[0] for x in xs]
    graph = utils.reenter_make_fx(combine_fn)(*init, *slices, *additional_inputs)
    args = (graph, tuple(init), tuple(xs), tuple(additional_inputs))
    result = scan_op(*args)
    return utils.record(mode, scan_op, {"scan_combine_graph": graph}, args, result)


scan_op.py_functionalize_impl(utils.functionalized(scan_op, (0,)))
