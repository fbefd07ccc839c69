"""Compiles models into files: torch._inductor.aot_compile and aoti_compile_and_package."""

from __future__ import annotations

import functools
import hashlib
import io
import operator
import os
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, fx
from torch._dynamo.utils import counters
from torch._inductor import config
from torch._inductor.graph import NotLowered
from torch._inductor.package._file import Constant, file_of, laid_out
from torch._inductor.package._lower import Lowered, lower
from torch._inductor.package._trace import Traced, trace_module

if TYPE_CHECKING:
    from torch.export import ExportedProgram

__all__ = ["Files", "aot_compile", "compile_and_package", "compile_module"]

_FOLDED = "_FOLDED_CONST_"
_OUTPUT_KINDS = {torch.SymInt: "i", torch.SymFloat: "f", torch.SymBool: "b"}


class Files:
    """What a model is compiled into: contents by file name."""

    def __init__(self, program: bytes, weights: Sequence[bytes]) -> None:
        self.program = program
        self.weights = weights

    def write(self, folder: str) -> list[str]:
        """Writes the files into a folder; their paths."""
        os.makedirs(folder, exist_ok=True)
        paths = [os.path.join(folder, name) for name in ("program.bin", "weights.bin")]
        for path, parts in zip(paths, ([self.program], self.weights), strict=True):
            with open(path, "wb") as out:
                for part in parts:
                    out.write(part)
        return paths

    def key(self) -> str:
        """A name by the contents."""
        found = hashlib.sha256(self.program)
        for part in self.weights:
            found.update(part)
        return found.hexdigest()[:32]


def _output_kind(value: object) -> str:
    if isinstance(value, fx.Node):
        value = value.meta.get("val")
        return _OUTPUT_KINDS.get(type(value), "t")
    if value is None:
        return "n"
    return {bool: "b", int: "i", float: "f"}.get(type(value), "?")


def _metadata(traced: Traced) -> dict[str, str]:
    given = config.aot_inductor.metadata or {}
    wrong = [k for k, v in given.items() if not isinstance(k, str) or not isinstance(v, str)]
    if wrong:
        raise TypeError(f"metadata of a compiled model are texts; {wrong[0]!r} is not")
    outputs = "".join(_output_kind(v) for v in traced.graph.graph.output_node().args[0])
    if "?" in outputs:
        raise NotImplementedError("a result that is neither a tensor nor a number in a model")
    return {
        **given,
        "AOTI_VERSION": torch.__version__,
        "AOTI_INPUT_LEAVES": ",".join(map(str, traced.leaves)),
        "AOTI_OUTPUT_KINDS": outputs,
    }


# ---- constants ------------------------------------------------------------------------------


def _constants(traced: Traced, lowered: Lowered) -> list[Constant]:
    """The tensors of a model. Those that module and graph share have the module's names."""
    found = []
    for i, (attribute, value) in enumerate(lowered.constants):
        known = traced.state.get(attribute)
        fqn = known[0] if known is not None else attribute
        name = "".join(c if c.isalnum() else "_" for c in fqn)
        made = Constant(name if name.isidentifier() else f"c{i}_{name}", fqn, laid_out(value))
        made.folded = fqn.startswith(_FOLDED)
        made.in_file = known is None or bool(config.aot_inductor.package_constants_in_so)
        found.append(made)
    return found


def _foldable(graph: fx.Graph) -> set[fx.Node]:
    """Nodes that depend on constants alone and always give the same."""
    found: set[fx.Node] = set()
    written = {
        n.args[0] for n in graph.nodes if n.target is torch.ops.aten.copy_.default and n.args
    }
    for node in graph.nodes:
        if node.op == "get_attr" and node not in written:
            found.add(node)
        if node.op != "call_function" or not node.all_input_nodes:
            continue
        target = node.target
        plain = isinstance(target, torch._ops.OpOverload) and not target._schema.is_mutable
        seeded = plain and torch.Tag.nondeterministic_seeded in target.tags
        if (not plain and target is not operator.getitem) or seeded or node.is_impure():
            continue
        if all(n in found for n in node.all_input_nodes):
            found.add(node)
    return found


def _fold_at_run_time(gm: fx.GraphModule, model: Lowered) -> fx.GraphModule | None:
    """Moves what depends on constants alone to a graph of its own, which runs when constants are
    loaded. Its results are constants of the model, in their order."""
    known = _foldable(gm.graph)
    results = [
        n
        for n in gm.graph.nodes
        if n in known
        and n.op == "call_function"
        and isinstance(n.meta.get("val"), Tensor)
        and any(u not in known for u in n.users)
    ]
    if not results:
        return None
    root, graph = torch.nn.Module(), fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in gm.graph.nodes:
        if node not in known:
            continue
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if node.op == "get_attr":
            setattr(root, node.target, getattr(gm, node.target))
    graph.output(tuple(copies[n] for n in results))
    graph.eliminate_dead_code()
    made = fx.GraphModule(root, graph)
    for i, node in enumerate(results):
        value = node.meta["val"]
        name = f"{_FOLDED}{i}"
        like = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        setattr(gm, name, like)
        model.constant(name, like)
        with gm.graph.inserting_before(node):
            constant = gm.graph.get_attr(name)
        constant.meta.update(node.meta)
        node.replace_all_uses_with(constant)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return made


# ---- a model --------------------------------------------------------------------------------


def _optimized(traced: Traced) -> None:
    """The passes that torch.compile runs for inference."""
    from torch._inductor import faults
    from torch._inductor.freezing import constant_fold
    from torch._inductor.fx_passes.joint_graph import joint_graph_passes
    from torch._inductor.fx_passes.post_grad import post_grad_passes
    from torch._inductor.lowering import expand_lowerings

    gm = traced.graph
    if config.use_joint_graph_passes:
        joint_graph_passes(gm)
    if config.freezing:
        counters["inductor"]["frozen_values"] += constant_fold(gm)
    post_grad_passes(gm, True)
    expand_lowerings(gm)
    faults.inject(gm)
    gm.graph.eliminate_dead_code()


def compile_module(
    module: fx.GraphModule,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    ranges: dict | None = None,
) -> Files:
    """Compiles a graph module with state under the settings of now."""
    with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad():
        traced = trace_module(module, args, kwargs)
        _optimized(traced)
        model = Lowered()
        folding = config.aot_inductor.use_runtime_constant_folding and not config.freezing
        folded = _fold_at_run_time(traced.graph, model) if folding else None
        try:
            lower(traced.graph, model)
            fold = -1 if folded is None else lower(folded, model)
        except NotLowered as reason:
            raise NotImplementedError(f"no model can be compiled: {reason}") from reason
        constants = _constants(traced, model)
        program, weights = file_of(traced, model, constants, fold, _metadata(traced), ranges)
    counters["inductor"]["aot_compiled"] += 1
    return Files(program, weights)


# ---- entry points ---------------------------------------------------------------------------


def _folder() -> str:
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return os.path.join(cache_dir(), "aotinductor")


def aot_compile(
    gm: fx.GraphModule,
    args: tuple[object, ...],
    kwargs: dict[str, object] | None = None,
    *,
    options: dict[str, object] | None = None,
) -> str | list[str]:
    """See torch._inductor.aot_compile."""
    from torch._inductor.package.package import package_aoti

    with config.patch(options or {}):
        files = compile_module(gm, tuple(args), dict(kwargs or {}))
        wanted = config.aot_inductor.output_path
        folder = os.path.join(_folder(), files.key())
        if config.aot_inductor.package:
            known = wanted and not wanted.endswith((".so", ".pt2"))
            return files.write(wanted if known else folder)
        path = wanted if wanted.endswith((".so", ".pt2")) else ""
        path = path or os.path.join(wanted or folder, "model.pt2")
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        paths = files.write(folder)
        with open(path, "wb") as out:
            package_aoti(out, paths)
        return path


def compile_and_package(
    ep: ExportedProgram,
    package_path: str | os.PathLike | io.IOBase | None,
    inductor_configs: dict[str, object] | None,
) -> str | os.PathLike | io.IOBase:
    """See torch._inductor.aoti_compile_and_package."""
    with config.patch(inductor_configs or {}):
        watch = config.aot_inductor.dump_aoti_minifier
    if not watch:
        return _compile_and_package(ep, package_path, inductor_configs)
    from torch._dynamo.repro import aoti

    compile_it = functools.partial(_compile_and_package, ep, package_path, inductor_configs)
    with config.patch(inductor_configs or {}):
        return aoti.watched(compile_it, ep, inductor_configs)


def _compile_and_package(
    ep: ExportedProgram,
    package_path: str | os.PathLike | io.IOBase | None,
    inductor_configs: dict[str, object] | None,
) -> str | os.PathLike | io.IOBase:
    from torch._inductor.package.package import package_aoti

    args, kwargs = ep.example_inputs
    with config.patch(inductor_configs or {}):
        module = ep.module(check_guards=False)
        files = compile_module(module, tuple(args), dict(kwargs), ep.range_constraints)
    with tempfile.TemporaryDirectory(prefix="aotinductor-") as folder:
        paths = files.write(folder)
        if package_path is None:
            place = os.path.join(_folder(), files.key())
            os.makedirs(place, exist_ok=True)
            package_path = os.path.join(place, "model.pt2")
        return package_aoti(package_path, paths)
