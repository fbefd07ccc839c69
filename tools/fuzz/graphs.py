"""Random programs of views, writes and arithmetic, each run in several ways: as they are,
functionalised (with views and with copies), inside FunctionalTensorMode, and traced to a graph, on
numbers or on symbols for sizes, that is run on new inputs. All results, and all writes to inputs,
must be equal bit for bit.

    python tools/fuzz/graphs.py --n 50000 --seed 1
    python tools/fuzz/graphs.py --replay 17

Program number i depends on the seed and i alone. The exit status is 1 when a program differed.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import time
from collections.abc import Callable

import torch
import torch.utils._pytree as pytree
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

Tensors = list[torch.Tensor]
Step = Callable[[Tensors], object]


@dataclasses.dataclass
class Program:
    """Steps over a list of tensors that starts with the inputs; each may append to it."""

    inputs: Tensors
    steps: list[tuple[str, Step]]

    def fresh_inputs(self) -> Tensors:
        """The inputs with memory of their own and the same layout."""
        return [same_layout(t, t) for t in self.inputs]

    def run(self, inputs: Tensors) -> Tensors:
        """What the program leaves behind besides its inputs."""
        state = list(inputs)
        for _, step in self.steps:
            step(state)
        return state[len(inputs) :] or [state[0] + 0]

    def text(self) -> str:
        shapes = [f"{tuple(t.shape)} strides {t.stride()}" for t in self.inputs]
        return "\n".join([*shapes, *(name for name, _ in self.steps)])


def same_layout(layout: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    out = torch.empty_strided(
        layout.shape, layout.stride(), dtype=layout.dtype, device=layout.device
    )
    return out.copy_(values)


def exact_sum(t: torch.Tensor, dim: int) -> torch.Tensor:
    """The sum in more bits than the result has, or one by one: the order of additions follows
    memory, which a copy of a strided view has another of."""
    if t.dtype is not torch.float64:
        return t.double().sum(dim, keepdim=True).to(t.dtype)
    total = t.narrow(dim, 0, 0).sum(dim, keepdim=True)
    for i in range(t.shape[dim]):
        total = total + t.narrow(dim, i, 1)
    return total


# ---- programs
UNARY = ("sin", "neg", "abs", "relu", "exp", "square")
BINARY = ("add", "mul", "sub", "maximum")
UNARY_IN_PLACE = ("neg_", "abs_", "sin_", "relu_", "square_")
BINARY_IN_PLACE = ("add_", "mul_", "sub_", "copy_")


class Maker:
    """Draws a program. Each step is tried on real tensors when it is drawn: one that raises there
    is not taken."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        generator = torch.Generator().manual_seed(seed)
        self.inputs = [self.input(generator) for _ in range(self.random.randint(1, 3))]
        self.state = [same_layout(t, t) for t in self.inputs]
        self.steps: list[tuple[str, Step]] = []
        self.read_only: set[int] = set()  # several of their elements are one

    def input(self, generator: torch.Generator) -> torch.Tensor:
        sizes = [self.random.choice((1, 2, 2, 3, 4)) for _ in range(self.random.randint(0, 3))]
        if self.random.random() < 0.08 and sizes:
            sizes[self.random.randrange(len(sizes))] = 0
        dtype = self.random.choice((torch.float32, torch.float32, torch.float64))
        values = torch.randn(sizes, generator=generator, dtype=dtype)
        if len(sizes) >= 2 and self.random.random() < 0.3:
            order = list(range(len(sizes)))
            self.random.shuffle(order)
            return values.permute(order)
        return values

    def program(self) -> Program:
        kinds = (
            [self.view] * 5
            + [self.write] * 4
            + [self.compute] * 3
            + [self.view_in_place, self.by_memory, self.many, self.out, self.indexed]
        )
        for _ in range(self.random.randint(2, 12)):
            self.random.choice(kinds)()
        return Program(self.inputs, self.steps)

    def pick(self) -> int:
        # Later tensors are views of views more often.
        n = len(self.state)
        return max(self.random.randrange(n), self.random.randrange(n))

    def take(self, name: str, step: Step) -> None:
        before = len(self.state)
        try:
            step(self.state)
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
            del self.state[before:]
            return
        self.steps.append((name, step))

    def append(self, name: str, fn: Callable[..., torch.Tensor], *places: int) -> None:
        self.take(
            f"t{len(self.state)} = {name} of {places}",
            lambda s: s.append(fn(*(s[p] for p in places))),
        )

    def dim(self, t: torch.Tensor) -> int:
        return self.random.randrange(-t.dim(), t.dim()) if t.dim() else 0

    # -- kinds of steps
    def view(self) -> None:
        i = self.pick()
        t, rng = self.state[i], self.random
        dim = self.dim(t)
        size = t.shape[dim] if t.dim() else 1
        first, step = rng.randrange(size + 1), rng.randint(1, 2)
        index = rng.randrange(max(size, 1))
        other = self.dim(t)
        shape = [-1] if rng.random() < 0.5 else [1, *t.shape]
        choices = {
            f"view{shape}": lambda t: t.view(shape),
            f"reshape{shape}": lambda t: t.reshape(shape),
            f"transpose({dim},{other})": lambda t: t.transpose(dim, other),
            f"select({dim},{index})": lambda t: t.select(dim, index),
            f"slice({dim},{first},None,{step})": lambda t: torch.ops.aten.slice.Tensor(
                t, dim, first, None, step
            ),
            f"narrow({dim},0,{first})": lambda t: t.narrow(dim, 0, first),
            f"unsqueeze({dim})": lambda t: t.unsqueeze(dim),
            "squeeze": lambda t: t.squeeze(),
            f"squeeze({dim})": lambda t: t.squeeze(dim),
            f"diagonal({dim},{other})": lambda t: t.diagonal(0, dim, other),
            "flipped dims": lambda t: t.permute(*reversed(range(t.dim()))),
            "expand": lambda t: t.expand(2, *t.shape),
            "detach": lambda t: t.detach(),
            f"unfold({dim},1,{step})": lambda t: t.unfold(dim, 1, step),
        }
        name = rng.choice(list(choices))
        if name == "expand" or i in self.read_only:
            self.read_only.add(len(self.state))
        self.append(name, choices[name], i)

    def compute(self) -> None:
        i, j = self.pick(), self.pick()
        if self.random.random() < 0.5:
            name = self.random.choice(UNARY)
            self.append(name, getattr(torch, name), i)
        elif self.random.random() < 0.3:
            dim = self.dim(self.state[i])
            self.append(f"sum({dim})", lambda t: exact_sum(t, dim), i)
        else:
            name = self.random.choice(BINARY)
            self.append(name, getattr(torch, name), i, j)

    def is_apart(self, i: int, j: int) -> bool:
        """Whether a write to one cannot change what is read of the other on the way."""
        a, b = self.state[i], self.state[j]
        same = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
        return not same or a.numel() == 0 or i == j

    def write(self) -> None:
        i, j = self.pick(), self.pick()
        rng = self.random
        kind = rng.random()
        if i in self.read_only:
            return
        if kind < 0.3:
            name = rng.choice(UNARY_IN_PLACE)
            self.take(f"t{i}.{name}()", lambda s: getattr(s[i], name)())
        elif kind < 0.5:
            name, number = rng.choice(("add_", "mul_", "fill_")), rng.randint(-2, 3)
            self.take(f"t{i}.{name}({number})", lambda s: getattr(s[i], name)(number))
        elif self.is_apart(i, j):
            name = rng.choice(BINARY_IN_PLACE)
            self.take(f"t{i}.{name}(t{j})", lambda s: getattr(s[i], name)(s[j]))

    def view_in_place(self) -> None:
        i = self.pick()
        if i < len(self.inputs):
            return  # the shape of an input stays
        t = self.state[i]
        dim, other = self.dim(t), self.dim(t)
        name, args = self.random.choice(
            (("transpose_", (dim, other)), ("unsqueeze_", (dim,)), ("squeeze_", (dim,)))
        )
        self.take(f"t{i}.{name}{args}", lambda s: getattr(s[i], name)(*args))

    def by_memory(self) -> None:
        i = self.pick()
        t = self.state[i]
        owner = t._base if t._is_view() else t
        if not owner.is_contiguous() and not any(
            owner is s for s in self.state[: len(self.inputs)]
        ):
            return  # how a result lies in memory is no part of a program's meaning
        elements = t.untyped_storage().nbytes() // t.element_size()
        if elements < 2:
            return
        length = self.random.randint(1, (elements + 1) // 2)
        step = self.random.randint(1, 2)
        offset = self.random.randrange(max(elements - (length - 1) * step, 1))
        self.append(
            f"as_strided(({length},),({step},),{offset})",
            lambda t: t.as_strided((length,), (step,), offset),
            i,
        )

    def many(self) -> None:
        i = self.pick()
        t = self.state[i]
        dim, size = self.dim(t), self.random.randint(1, 2)
        if i in self.read_only:
            return
        if self.random.random() < 0.5:
            self.take(
                f"t{len(self.state)}.. = t{i}.split({size},{dim})",
                lambda s: s.extend(s[i].split(size, dim)),
            )
        else:
            self.take(
                f"t{len(self.state)}.. = t{i}.unbind({dim})", lambda s: s.extend(s[i].unbind(dim))
            )

    def out(self) -> None:
        i, j = self.pick(), self.pick()
        if j < len(self.inputs) or j in self.read_only or not self.is_apart(j, i):
            return
        if self.state[i].shape == self.state[j].shape:
            self.take(f"torch.sin(t{i}, out=t{j})", lambda s: torch.sin(s[i], out=s[j]))

    def indexed(self) -> None:
        i = self.pick()
        t = self.state[i]
        if t.dim() == 0 or t.shape[0] == 0 or i in self.read_only:
            return
        index = [self.random.randrange(t.shape[0])]
        kind = self.random.randrange(3)
        if kind == 0:
            self.append(f"[{index}]", lambda t: t[torch.tensor(index)], i)
        elif kind == 1:
            value = self.random.randint(-3, 3)
            self.take(f"t{i}[{index[0]}] = {value}", lambda s: s[i].__setitem__(index[0], value))
        else:
            self.take(f"t{i}.masked_fill_(t{i} > 0, 2)", lambda s: s[i].masked_fill_(s[i] > 0, 2))


# ---- ways to run one
def by_key(program: Program, inputs: Tensors, reapply_views: bool) -> Tensors:
    """Functionalised by the dispatch key."""
    inside = [torch._to_functional_tensor(t) for t in inputs]
    torch._enable_functionalization(reapply_views=reapply_views)
    try:
        out = program.run(inside)
    finally:
        torch._disable_functionalization()
    for plain, wrapped in zip(inputs, inside, strict=True):
        torch._sync(wrapped)
        value = torch._from_functional_tensor(wrapped)
        if value is not plain:
            plain.copy_(value)
    for t in out:
        torch._sync(t)
    return [torch._from_functional_tensor(t) for t in out]


def by_mode(program: Program, inputs: Tensors) -> Tensors:
    """Functionalised by the mode."""
    with FunctionalTensorMode():
        inside = [FunctionalTensor.to_functional(t) for t in inputs]
        out = program.run(inside)
    for plain, wrapped in zip(inputs, inside, strict=True):
        value = wrapped.from_functional()
        if value is not plain:
            plain.copy_(value)
    return pytree.tree_map_only(FunctionalTensor, FunctionalTensor.from_functional, out)


def by_level(program: Program, inputs: Tensors, remove: str) -> Tensors:
    """Functionalised by torch.func."""
    return torch.func.functionalize(lambda *args: program.run(list(args)), remove=remove)(*inputs)


def by_graph(
    program: Program, inputs: Tensors, way: Callable[..., Tensors], mode: str = "real"
) -> Tensors:
    """Traced on other values, then run as a graph. With symbols for sizes the guards of the trace
    must hold for the inputs."""
    others = [same_layout(t, torch.ones_like(t)) for t in inputs]
    module = make_fx(lambda *args: way(program, list(args)), tracing_mode=mode)(*others)
    if mode == "symbolic":
        held = [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]
        if not module.shape_env.evaluate_guards_for_args(held, inputs):
            raise AssertionError("the guards of the trace do not hold for its own sizes")
    return list(module(*inputs))


WAYS: dict[str, Callable[[Program, Tensors], Tensors]] = {
    "graph": lambda p, i: by_graph(p, i, lambda q, j: q.run(j)),
    "graph on symbols": lambda p, i: by_graph(p, i, lambda q, j: q.run(j), "symbolic"),
    "functional with views": lambda p, i: by_key(p, i, True),
    "functional with copies": lambda p, i: by_key(p, i, False),
    "functional mode": by_mode,
    "graph of functional mode": lambda p, i: by_graph(p, i, by_mode),
    "graph with copies": lambda p, i: by_graph(p, i, lambda q, j: by_key(q, j, False)),
    "torch.func": lambda p, i: by_level(p, i, "mutations"),
    "torch.func without views": lambda p, i: by_level(p, i, "mutations_and_views"),
}


def bits(t: torch.Tensor) -> tuple:
    return tuple(t.shape), t.dtype, t.contiguous().numpy().tobytes()


def differences(program: Program) -> list[str]:
    """The ways by which a program gives something else than by itself."""
    inputs = program.fresh_inputs()
    expected = [bits(t) for t in program.run(inputs)] + [bits(t) for t in inputs]
    found = []
    for name, way in WAYS.items():
        inputs = program.fresh_inputs()
        try:
            got = [bits(t) for t in way(program, inputs)] + [bits(t) for t in inputs]
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}")
            continue
        if got != expected:
            where = [i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b]
            found.append(f"{name}: results {where} of {len(expected)} differ")
    return found


def number(seed: int, i: int) -> Program:
    """Program i of a seed."""
    return Maker(seed * 1_000_003 + i).program()


def campaign(
    number: Callable[[int, int], Program],
    differences: Callable[[Program], list[str]],
    summary: Callable[[], str] = str,
) -> int:
    """Runs the programs that the command line asks for and prints those that differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=int)
    options = parser.parse_args()
    chosen = range(options.n) if options.replay is None else [options.replay]
    wrong, start = 0, time.monotonic()
    for i in chosen:
        program = number(options.seed, i)
        found = differences(program)
        if options.replay is not None:
            print(program.text())
        if found:
            wrong += 1
            print(f"program {i}: " + "; ".join(found), flush=True)
    seconds = time.monotonic() - start
    print(f"{len(chosen)} programs, {wrong} differ, {summary()}{seconds:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(campaign(number, differences))
