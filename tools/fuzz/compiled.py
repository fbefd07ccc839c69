"""Random programs, compiled and as they are: results and writes to inputs must be equal bit for
bit. The programs are those of graphs.py (views, writes, aliases, empty and 0-dim tensors) with more
dtypes, promotion, reductions, sizes that take several tiles, and operators that are called. Each is
traced and compiled as it is, with symbolic sizes (and then run with others), after
functionalisation, through AOTAutograd and by torch.compile; one with a gradient is also compared
with its own graphs run node by node. With FUZZ_TIER=text kernels are compiled as C++ text and
compared, which takes a second for each.

    python tools/fuzz/compiled.py --n 20000 --seed 1
    python tools/fuzz/compiled.py --replay 17
    FUZZ_DEVICE=cuda python tools/fuzz/compiled.py --n 1000
    FUZZ_TIER=text python tools/fuzz/compiled.py --n 1000

Program number i depends on the seed and i alone. The exit status is 1 when a program differed.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Sequence

import graph_steps
import graphs
from graphs import Program, Tensors, by_mode, campaign, same_layout

import torch
from torch import fx
from torch._functorch.aot_autograd import aot_function, make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor import codecache, config, metrics
from torch._inductor.compile_fx import compile_fx_inner
from torch.fx.experimental.proxy_tensor import make_fx

DEVICE = os.environ.get("FUZZ_DEVICE", "cpu")
DTYPES = (
    *(torch.float32,) * 4,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
    torch.complex64,
)
UNARY = (
    *graphs.UNARY,
    "tanh",
    "sigmoid",
    "floor",
    "isnan",
    "logical_not",
    "clone",
    "zeros_like",
    "ones_like",
    "sqrt",
    "erf",
)
BINARY = (*graphs.BINARY, "div", "lt", "eq", "pow", "logical_and", "minimum", "atan2", "remainder")
CASTS = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool)
NUMBERS = (0, 1, 2, -3, 0.1, 0.5, -1.25, 3.7, True, 300)


class Maker(graphs.Maker):
    """Programs with more kinds of steps."""

    def input(self, generator: torch.Generator) -> torch.Tensor:
        rng = self.random
        if rng.random() < 0.12:
            sizes = rng.choice(([700], [3, 500], [40, 33], [2600], [20, 300], [7, 1, 150], [5000]))
        else:
            sizes = [rng.choice((1, 2, 2, 3, 4)) for _ in range(rng.randint(0, 3))]
        if rng.random() < 0.08 and sizes:
            sizes = [*sizes[:-1], 0]
        dtype = rng.choice(DTYPES)
        if dtype.is_floating_point or dtype.is_complex:
            values = torch.randn(sizes, generator=generator, dtype=torch.float32).to(dtype)
        else:
            low = 0 if dtype in (torch.uint8, torch.bool) else -4
            values = torch.randint(low, 5, sizes, generator=generator).to(dtype)
        values = values.to(DEVICE)
        if len(sizes) >= 2 and rng.random() < 0.3:
            order = list(range(len(sizes)))
            rng.shuffle(order)
            return values.permute(order)
        return values

    def program(self) -> Program:
        plain = [self.compute] * 6 + [self.cast, self.number, self.number, self.chosen]
        kinds = plain * 2 + [self.reduce] * 3 + [self.view] * 5 + [self.called] * 2
        if self.random.random() < 0.7:
            kinds += [self.listed] * 25
        if self.random.random() < 0.4:
            kinds += [self.write] * 4 + [self.by_memory, self.many, self.indexed]
        for _ in range(self.random.randint(1, 12)):
            self.random.choice(kinds)()
        return Program(self.inputs, self.steps)

    def take(self, name: str, step: Callable[[Tensors], object]) -> None:
        before = len(self.state)
        super().take(name, step)
        if any(t.numel() > 60_000 for t in self.state[before:]):
            self.steps.pop()
            del self.state[before:]

    def listed(self) -> None:
        name, function, count = self.random.choice(self.random.choice(graph_steps.ALL))
        self.append(name, function, *(self.pick() for _ in range(count)))

    def many(self) -> None:
        # Tracing a program of thousands of views takes minutes.
        if all(t.numel() < 100 for t in self.state):
            super().many()

    def compute(self) -> None:
        i, j = self.pick(), self.pick()
        if self.random.random() < 0.5:
            name = self.random.choice(UNARY)
            self.append(name, getattr(torch, name), i)
        else:
            name = self.random.choice(BINARY)
            self.append(name, getattr(torch, name), i, j)

    def cast(self) -> None:
        dtype = self.random.choice(CASTS)
        if not self.state[i := self.pick()].is_complex():
            self.append(f"to({dtype})", lambda t: t.to(dtype), i)

    def number(self) -> None:
        name = self.random.choice((*BINARY[:4], "div", "gt", "pow", "clamp_min", "true_divide"))
        number = self.random.choice(NUMBERS)
        if name == "maximum":
            name = "rsub"
        self.append(f"{name}({number})", lambda t: getattr(torch, name)(t, number), self.pick())

    def chosen(self) -> None:
        i, j = self.pick(), self.pick()
        if self.random.random() < 0.5:
            self.append("where(a > b)", lambda a, b: torch.where(a.real > b.real, a, b), i, j)
        else:
            self.append("masked_fill", lambda a: a.masked_fill(a != 0, 2), i)

    def reduce(self) -> None:
        i = self.pick()
        dim, keep = self.dim(self.state[i]), self.random.random() < 0.5
        name = self.random.choice(("sum", "mean", "amax", "amin", "sum", "softmax", "var"))
        if name == "softmax":
            self.append(f"softmax({dim})", lambda t: t.softmax(dim), i)
        elif self.random.random() < 0.3 and name in ("sum", "mean"):
            self.append(name, lambda t: getattr(t, name)(), i)
        else:
            self.append(f"{name}({dim})", lambda t: getattr(t, name)(dim, keepdim=keep), i)

    def called(self) -> None:
        i, j = self.pick(), self.pick()
        kind = self.random.randrange(5)
        dim = self.dim(self.state[i])
        if kind == 0:
            self.append("matmul", torch.matmul, i, j)
        elif kind == 1:
            self.append(f"cat({dim})", lambda a, b: torch.cat([a, b], dim), i, j)
        elif kind == 2:
            self.append(f"cumsum({dim})", lambda t: t.cumsum(dim), i)
        elif kind == 3:
            self.append(f"flip({dim})", lambda t: t.flip(dim), i)
        else:
            self.append(f"sort({dim})", lambda t: t.sort(dim).values, i)


# ---- ways to run one
def compiled(module: fx.GraphModule, inputs: Tensors, strides: list[tuple]) -> Tensors:
    """A traced graph, compiled and run. Its results must have the strides of the graph's."""
    out = list(compile_fx_inner(module, inputs)(list(inputs)))
    for got, wanted in zip(out, strides, strict=True):
        # Strides of dimensions with one element, and of tensors without any, say nothing.
        pairs = zip(got.stride(), wanted, got.shape, strict=True)
        if got.numel() and any(a != b for a, b, n in pairs if n > 1):
            raise AssertionError(f"strides {got.stride()} instead of {wanted}")
    return out


def traced(function: Callable, inputs: Tensors, mode: str = "real") -> fx.GraphModule:
    """make_fx, with operators that are one kernel left whole, as torch.compile traces them."""
    before = torch._C._aot.record_whole_operators(True)
    try:
        return make_fx(function, tracing_mode=mode)(*inputs)
    finally:
        torch._C._aot.record_whole_operators(before)


def by_trace(program: Program, inputs: Tensors, way: Callable[..., Tensors]) -> Tensors:
    others = [same_layout(t, t) for t in inputs]
    module = traced(lambda *args: way(program, list(args)), others)
    strides = [t.stride() for t in module(*(same_layout(t, t) for t in inputs))]
    return compiled(module, inputs, strides)


def by_symbols(program: Program, inputs: Tensors) -> Tensors:
    others = [same_layout(t, t) for t in inputs]
    module = traced(lambda *args: program.run(list(args)), others, "symbolic")
    examples = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
    return list(compile_fx_inner(module, examples)(list(inputs)))


def resized(t: torch.Tensor, more: int) -> torch.Tensor:
    """Other values in a tensor whose sizes from 2 on are larger, dense in the order of `t`."""
    sizes = [n + more * (1 + n % 3) if n > 1 else n for n in t.shape]
    order = sorted(range(t.dim()), key=lambda d: (-t.stride(d), d))
    values = torch.randint(-4, 5, [sizes[d] for d in order], dtype=torch.int32)
    if not t.dtype.is_signed:
        values = values.abs()
    place = [order.index(d) for d in range(t.dim())]
    return (values / 2 if t.is_floating_point() else values).to(t.dtype).to(DEVICE).permute(place)


def other_sizes(program: Program) -> list[str]:
    """A graph with symbols, compiled once and run with sizes that it was not traced with: those
    that its guards allow must give what the graph gives."""
    inputs = program.fresh_inputs()
    others = [same_layout(t, t) for t in inputs]
    module = traced(lambda *args: program.run(list(args)), others, "symbolic")
    examples = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
    env = next((e.fake_mode.shape_env for e in examples if isinstance(e, torch.Tensor)), None)
    run = compile_fx_inner(module, examples)
    run(list(inputs))
    found = []
    for more in (1, 2, 5):
        args = [resized(t, more) for t in program.inputs]
        if env is None or not env.evaluate_guards_for_args(examples, args):
            continue
        ours = [same_layout(t, t) for t in args]
        try:
            wanted = [bits(t) for t in (*module(*args), *args)]
        except RuntimeError:
            continue
        got = [bits(t) for t in (*run(list(ours)), *ours)]
        where = [i for i, (a, b) in enumerate(zip(got, wanted, strict=True)) if a != b]
        if where:
            found.append(f"sizes + {more}: results {where} of {len(wanted)} differ")
    return found


def by_aot(program: Program, inputs: Tensors) -> Tensors:
    run = aot_function(
        lambda *args: program.run(list(args)),
        compile_fx_inner,
        keep_inference_input_mutations=True,
    )
    before = torch._C._aot.record_whole_operators(True)
    try:
        return list(run(*inputs))
    finally:
        torch._C._aot.record_whole_operators(before)


def by_dynamo(program: Program, inputs: Tensors) -> Tensors:
    torch._dynamo.reset()
    return list(torch.compile(lambda *args: program.run(list(args)))(*inputs))


def by_text(program: Program, inputs: Tensors) -> Tensors:
    """The second tier: kernels as C++ text, compiled before they are compared."""
    others = [same_layout(t, t) for t in inputs]
    run = compile_fx_inner(traced(lambda *args: by_mode(program, list(args)), others), others)
    for _ in range(20):  # on trial beside the loops at first
        run([same_layout(t, t) for t in inputs])
        codecache.wait_for_kernels()
    if torch._C._inductor.rejected_kernels():
        raise AssertionError("the bits of a compiled kernel differ from those of its loops")
    return list(run(list(inputs)))


WAYS: dict[str, Callable[[Program, Tensors], Tensors]] = {
    "compiled": lambda p, i: by_trace(p, i, lambda q, j: q.run(j)),
    "compiled functional": lambda p, i: by_trace(p, i, by_mode),
    "compiled with symbols": by_symbols,
    "compiled by AOTAutograd": by_aot,
    "torch.compile": by_dynamo,
}
if os.environ.get("FUZZ_TIER") == "text":
    config.cpp.hot_kernel_elements = 1
    WAYS = {"compiled text": by_text}


def bits(t: torch.Tensor) -> tuple:
    raw = t.detach().contiguous().cpu()
    if raw.is_complex():  # NumPy has none of two halves
        raw = torch.view_as_real(raw)
    if raw.is_floating_point():
        # Which of two NaNs goes on, and with it the sign, is up to the processor.
        raw = raw.masked_fill(raw.isnan(), float("nan"))
    if raw.dtype is torch.bfloat16:
        raw = raw.view(torch.int16)
    return tuple(t.shape), t.dtype, raw.numpy().tobytes()


def gradients(
    program: Program, inputs: Tensors, compiler: Callable[[fx.GraphModule, Sequence], Callable]
) -> list[tuple]:
    """Results and gradients through AOTAutograd with a compiler for the graphs."""
    leaves = [t.requires_grad_(t.is_floating_point()) for t in inputs]
    run = aot_function(
        lambda *args: program.run([a * 1 for a in args]),
        compiler,
        partition_fn=min_cut_rematerialization_partition,
    )
    out = run(*leaves)
    with_grad = [t for t in out if t.requires_grad]
    total = sum(t.abs().sum().double() for t in with_grad)
    wanted = [t for t in leaves if t.requires_grad]
    grads = torch.autograd.grad(total, wanted, allow_unused=True) if with_grad else ()
    return [bits(t) for t in (*out, *(g for g in grads if g is not None))]


def differences(program: Program) -> list[str]:
    """The ways by which a program gives something else than by itself."""
    inputs = program.fresh_inputs()
    expected = [bits(t) for t in program.run(inputs)] + [bits(t) for t in inputs]
    found = []

    def compare(name: str, run: Callable[[], list[tuple]], wanted: list[tuple]) -> None:
        try:
            got = run()
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}")
            return
        where = [i for i, (a, b) in enumerate(zip(got, wanted, strict=True)) if a != b]
        if where:
            found.append(f"{name}: results {where} of {len(wanted)} differ")

    for name, way in WAYS.items():
        args = program.fresh_inputs()
        compare(
            name,
            lambda way=way, args=args: [
                *map(bits, way(program, args)),
                *map(bits, args),
            ],
            expected,
        )
    try:
        found += other_sizes(program)
    except Exception as error:
        found.append(f"other sizes: {type(error).__name__}: {str(error).splitlines()[0]}")
    if any(t.is_floating_point() for t in program.inputs):
        try:
            wanted = gradients(
                program, program.fresh_inputs(), lambda module, _: make_boxed_func(module.forward)
            )
        except Exception:
            return found  # it has no gradient
        compare(
            "gradients",
            lambda: gradients(program, program.fresh_inputs(), compile_fx_inner),
            wanted,
        )
    return found


def number(seed: int, i: int) -> Program:
    """Program i of a seed."""
    random.seed(i)
    return Maker(seed * 1_000_003 + i).program()


def counts() -> str:
    """What was compiled, for the last line."""
    return (
        f"{metrics.generated_kernel_count} kernels, {metrics.num_calls} calls, "
        f"{len(metrics.not_lowered)} graphs not compiled, "
    )


if __name__ == "__main__":
    sys.exit(campaign(number, differences, counts))
