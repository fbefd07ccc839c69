"""Compilers for the graphs of AOTAutograd that do nothing or show something, and functions that put
one together with a partitioner."""

from __future__ import annotations

import copy
import os
import pickle
import random
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import fx, nn
from torch._decomp import get_decompositions
from torch._functorch.aot_autograd import aot_function, aot_module, make_boxed_compiler
from torch._functorch.compile_utils import strip_overloads
from torch._functorch.partitioners import (
    default_partition,
    draw_graph,
    min_cut_rematerialization_partition,
)
from torch.utils import _pytree as pytree

__all__ = [
    "DebugInterpreter",
    "debug_compile",
    "debug_nop",
    "default_decompositions",
    "draw_graph_compile",
    "get_inputs",
    "graph_dumper_aot",
    "memory_efficient_fusion",
    "nnc_jit",
    "nop",
    "print_compile",
    "simple_ts_compile",
    "ts_compile",
]

aten = torch.ops.aten

default_decompositions = get_decompositions(
    [
        aten.detach,
        aten.gelu_backward,
        aten.leaky_relu_backward,
        aten.sigmoid_backward,
        aten.threshold_backward,
        aten.hardtanh_backward,
        aten.hardsigmoid_backward,
        aten.hardswish_backward,
        aten.tanh_backward,
        aten.silu_backward,
        aten.elu_backward,
        aten.masked_fill.Scalar,
        aten.masked_fill.Tensor,
        aten.elu,
        aten.leaky_relu,
        aten.hardtanh,
        aten.hardswish,
        aten.hardsigmoid,
        aten.rsub,
        aten.native_batch_norm_backward,
    ]
)


@make_boxed_compiler
def nop(fx_g: fx.GraphModule, _: Sequence[object]) -> Callable:
    """Runs the graph as it is, without the hooks of a module."""
    return fx_g.forward


@make_boxed_compiler
def print_compile(fx_g: fx.GraphModule, _: Sequence[object]) -> fx.GraphModule:
    """Prints the code of the graph and runs it as it is."""
    print(fx_g.code)
    return fx_g


@make_boxed_compiler
def simple_ts_compile(fx_g: fx.GraphModule, _: Sequence[object]) -> Callable:
    """Gives the graph, without overloads, to torch.jit.script."""
    strip_overloads(fx_g)
    return torch.jit.script(fx_g)


@make_boxed_compiler
def ts_compile(fx_g: fx.GraphModule, inps: Sequence[object]) -> Callable:
    """Would compile the graph by TorchScript's fuser, which does not exist here."""
    raise NotImplementedError(
        "ts_compile: this version has no TorchScript compiler; use nop, or torch.compile"
    )


def nnc_jit(f: Callable) -> Callable:
    """The function traced and given to torch.jit.script."""
    return aot_function(f, simple_ts_compile)


class DebugInterpreter(fx.Interpreter):
    """Runs a graph and checks every tensor against what the trace expected."""

    def run(self, *args: object, **kwargs: object) -> object:
        """Runs the graph on arguments whose sizes are what the symbols of the graph are now."""
        env = getattr(self.module, "shape_env", None)
        held = [n.meta.get("val") for n in self.module.graph.nodes if n.op == "placeholder"]
        self._symbols = {} if env is None else env.bind_symbols(held, args)
        for value, given in zip(held, args, strict=True):
            if isinstance(value, torch.Tensor) and isinstance(given, torch.Tensor):
                self._check_input(value, given)
        return super().run(*args, **kwargs)

    def _number(self, value: int | torch.SymInt) -> int:
        if not isinstance(value, torch.SymInt):
            return value
        return int(value.node.expr.xreplace(self._symbols))

    def _geometry(self, t: torch.Tensor) -> dict[str, tuple[int, ...]]:
        numbers = {"size": t.size(), "stride": t.stride()}
        return {name: tuple(map(self._number, values)) for name, values in numbers.items()}

    def _check_input(self, traced: torch.Tensor, given: torch.Tensor) -> None:
        wanted, have = self._geometry(traced), self._geometry(given)
        for name, values in wanted.items():
            for i, (want, got) in enumerate(zip(values, have[name], strict=True)):
                if want != got:
                    raise AssertionError(
                        f"an input was traced with another {name}({i}): {want} != {got}"
                    )

    def run_node(self, n: fx.Node) -> object:
        found = super().run_node(n)
        expected = n.meta.get("val")
        if expected is None or n.op in ("output", "placeholder"):
            return found
        leaves = zip(pytree.tree_leaves(expected), pytree.tree_leaves(found), strict=True)
        for i, (want, got) in enumerate(leaves):
            if not isinstance(got, torch.Tensor):
                continue
            if want.dtype != got.dtype:
                raise AssertionError(f"output {i} of {n}: dtype {want.dtype} != {got.dtype}")
            wanted, have = self._geometry(want), self._geometry(got)
            for name, values in wanted.items():
                if values != have[name]:
                    raise AssertionError(f"output {i} of {n}: {name} {values} != {have[name]}")
        return found


@make_boxed_compiler
def debug_nop(fx_g: fx.GraphModule, _: Sequence[object]) -> Callable:
    """Runs the graph node by node with checks."""
    return DebugInterpreter(fx_g).run


def draw_graph_compile(name: str) -> Callable:
    """A compiler that draws the graph into a file of that name and runs it as it is."""

    def compile(fx_g: fx.GraphModule, _: Sequence[object]) -> fx.GraphModule:
        print(fx_g.code)
        draw_graph(fx_g, name)
        return fx_g

    return make_boxed_compiler(compile)


def memory_efficient_fusion(fn: Callable | nn.Module, **kwargs) -> Callable | nn.Module:
    """The function or module with a backward pass that computes cheap values again instead of
    saving them."""
    settings: dict[str, object] = {
        "fw_compiler": nop,
        "bw_compiler": nop,
        "partition_fn": min_cut_rematerialization_partition,
        "decompositions": default_decompositions,
        **kwargs,
    }
    return (aot_module if isinstance(fn, nn.Module) else aot_function)(fn, **settings)


def debug_compile(fx_g: fx.GraphModule, inps: Sequence[object]) -> fx.GraphModule:
    """Writes the graph into the folder "foo", says how to run it alone, and runs it once."""
    fx_g.to_folder("foo")
    shapes = [(i.shape, i.dtype) for i in inps if isinstance(i, torch.Tensor)]
    print(f"# to run the graph alone:\n# from foo import FxModule\n# inputs: {shapes}")
    fx_g(*inps)
    return fx_g


def get_inputs(input_data_path: str) -> list[object]:
    """Random tensors of the shapes that graph_dumper_aot stored."""
    with open(input_data_path, "rb") as file:
        metas = pickle.load(file)
    found: list[object] = []
    for meta in metas:
        if len(meta) == 1:
            kind = meta[0]
            found.append(kind(random.random()))
            continue
        _, shape, _, dtype, device = meta
        if dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool):
            found.append(torch.randint(0, 2, shape, dtype=dtype, device=device))
        else:
            found.append(torch.rand(shape, dtype=dtype, device=device))
    return found


def graph_dumper_aot(current_name: str, folder_name: str, dump_example_input: bool = False):
    """A function that stores every graph it is given, with the shapes of its inputs, in a folder
    of the current folder."""
    os.makedirs(folder_name, exist_ok=True)
    counts: dict[str, int] = {}

    def save(kind: str, gm: fx.GraphModule, args: Sequence[object]) -> fx.GraphModule:
        index = counts[kind] = counts.get(kind, -1) + 1
        place = f"{folder_name}/{current_name}/{current_name}_{kind}_{index}"
        os.makedirs(place, exist_ok=True)
        copy.deepcopy(gm).to_folder(place)
        metas = [
            (type(a), a.shape, a.stride(), a.dtype, a.device)
            if isinstance(a, torch.Tensor)
            else (type(a),)
            for a in args
        ]
        with open(f"{place}/{current_name}_{kind}_{index}.input", "wb") as file:
            pickle.dump(metas, file)
        return gm

    def partition(joint: fx.GraphModule, inputs: Sequence[object], **kwargs):
        save("joint", joint, pytree.tree_leaves(inputs))
        return default_partition(joint, inputs, **kwargs)

    return partial(
        aot_module,
        fw_compiler=make_boxed_compiler(partial(save, "forward")),
        bw_compiler=make_boxed_compiler(partial(save, "backward")),
        partition_fn=partition,
        decompositions=default_decompositions,
    )
