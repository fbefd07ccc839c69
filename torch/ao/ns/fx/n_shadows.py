"""Many quantized forms of each operator beside the float one. The float model runs as it is; each
of its operators is also wrapped in small modules, one for each configuration, that are prepared,
calibrated and converted by themselves and get the same inputs."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.ao.ns.fx.graph_matcher import get_matching_subgraph_pairs
from torch.ao.ns.fx.loggers import OutputComparisonLogger, OutputLogger, record_of
from torch.ao.ns.fx.ns_types import NSResultsType, NSSingleResultValuesType
from torch.ao.ns.fx.pattern_utils import op_of
from torch.ao.ns.fx.qconfig_multi_mapping import QConfigMultiMapping
from torch.ao.ns.fx.utils import compute_sqnr
from torch.ao.ns.fx.weight_utils import extract_weight_from_node, target_text
from torch.ao.quantization import QConfigMapping
from torch.ao.quantization.backend_config import BackendConfig
from torch.ao.quantization.fx import match_utils
from torch.ao.quantization.fx.qconfig_mapping_utils import _generate_node_name_to_qconfig
from torch.ao.quantization.fx.tracer import QuantizationTracer
from torch.ao.quantization.qconfig import QConfigAny
from torch.fx import Graph, GraphModule, Interpreter, Node
from torch.fx.node import map_arg

WRAPPER = "shadow_wrapper"
_MODEL = "model"
_OUTPUT = NSSingleResultValuesType.NODE_OUTPUT.value


class _Values(Interpreter):
    """Runs a graph and keeps what each node gives."""

    def __init__(self, gm: GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.values: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        self.values[n] = super().run_node(n)
        return self.values[n]


def _traced(model: nn.Module, tracer: Any) -> GraphModule:
    tracer = tracer or QuantizationTracer([], [])
    gm = GraphModule(model, tracer.trace(model))
    scopes = getattr(tracer, "node_name_to_scope", {})
    gm._node_name_to_scope = {name: tuple(scope) for name, scope in scopes.items()}
    return gm


def _operators(gm: GraphModule, backend: BackendConfig) -> Iterator[list[Node]]:
    """The nodes of each operator that the backend knows, first node first, in the graph's order.
    A chain is one operator where each of its nodes but the last has one user."""
    modules = dict(gm.named_modules(remove_duplicate=False))
    patterns = sorted(
        backend._pattern_complex_format_to_config, key=lambda p: -match_utils.length(p)
    )
    taken: set[Node] = set()
    found: list[list[Node]] = []
    for node in reversed(list(gm.graph.nodes)):
        if node in taken or node.op not in ("call_module", "call_function", "call_method"):
            continue
        for pattern in patterns:
            if not match_utils._is_match(modules, node, pattern):
                continue
            nodes = [n for n, _ in match_utils.matched_nodes(node, pattern)]
            straight = all(b in a.all_input_nodes for a, b in itertools.pairwise(nodes))
            if straight and not any(n in taken for n in nodes):
                taken.update(nodes)
                found.append(nodes[::-1])
                break
    yield from reversed(found)


def _wrapped(nodes: list[Node], gm: GraphModule) -> tuple[GraphModule, list[Node]]:
    """An operator as a module of its own, and the nodes whose values it takes. Its modules are
    copies: each configuration changes its own."""
    graph, root, outer = Graph(), nn.Module(), []
    places: dict[Node, Node] = {}
    inner = {n: i for i, n in enumerate(nodes)}

    def placed(value: Node) -> Node:
        if value in inner:
            return places[value]
        outer.append(value)
        return graph.placeholder(f"{value.name}_{len(outer) - 1}")

    made: list[tuple[Node, Any, Any]] = []
    # All placeholders come first: the arguments are mapped in one pass over the operator.
    for node in nodes:
        inputs = map_arg((node.args, node.kwargs), lambda v: v if v in inner else placed(v))
        made.append((node, *inputs))
    for node, args, kwargs in made:
        args, kwargs = map_arg((args, kwargs), lambda v: places.get(v, v))
        target = node.target
        if node.op == "call_module":
            target = f"mod_{inner[node]}"
            root.add_module(target, copy.deepcopy(gm.get_submodule(str(node.target))))
        places[node] = graph.create_node(node.op, target, args, kwargs)
    graph.output(places[nodes[-1]])
    return GraphModule(root, graph), outer


def _logger(
    cls: type[OutputLogger], gm: GraphModule, nodes: list[Node], number: str, qconfig: QConfigAny
) -> OutputLogger:
    scope = gm._node_name_to_scope.get(nodes[0].name, ("",))
    made = cls(
        nodes[0].name,
        nodes[-1].name,
        f"subgraph_{number}",
        _MODEL,
        target_text(nodes[-1], gm),
        target_text(nodes[0], gm),
        _OUTPUT,
        0,
        0,
        scope[0],
        "" if qconfig is None else str(qconfig),
    )
    made.enabled = False
    return made


def _choices(gm: GraphModule, mappings: list[QConfigMapping]) -> list[dict[str, QConfigAny]]:
    scopes = gm._node_name_to_scope
    return [_generate_node_name_to_qconfig(gm, gm, m, scopes) for m in mappings]


def _run_once(gm: GraphModule, example_inputs: Any) -> dict[Node, Any]:
    runner = _Values(gm)
    with torch.no_grad():
        runner.run(*example_inputs)
    return runner.values


def prepare_n_shadows_model(
    model: nn.Module,
    example_inputs: Any,
    qconfig_multi_mapping: QConfigMultiMapping,
    backend_config: BackendConfig,
    custom_prepare_fn: Callable | None = None,
    custom_prepare_kwargs: dict[str, Any] | None = None,
    custom_tracer: Any = None,
) -> GraphModule:
    """The model with loggers (`shadow_i_0`) behind its operators, and for each configuration a
    prepared copy of the operator (`shadow_wrapper_i_j`) with a logger that compares
    (`shadow_i_j`)."""
    gm = _traced(model, custom_tracer)
    choices = _choices(gm, qconfig_multi_mapping.qconfig_mappings_list)
    values = _run_once(gm, example_inputs)
    work = _Preparation(gm, values, backend_config, custom_prepare_fn, custom_prepare_kwargs)
    for index, nodes in enumerate(list(_operators(gm, backend_config))):
        wanted = [c.get(nodes[0].name) for c in choices]
        wanted = [c for c in wanted if c is not None]
        if wanted and isinstance(values.get(nodes[-1]), torch.Tensor):
            work.shadow(index, nodes, wanted)
    gm.graph.lint()
    gm.recompile()
    return gm


class _Preparation:
    """Adds the shadows of operators to a graph."""

    def __init__(
        self,
        gm: GraphModule,
        values: dict[Node, Any],
        backend: BackendConfig,
        prepare: Callable | None,
        kwargs: dict[str, Any] | None,
    ) -> None:
        from torch.ao.quantization.quantize_fx import prepare_fx

        self.gm, self.values, self.backend = gm, values, backend
        self.prepare, self.kwargs = prepare or prepare_fx, kwargs or {}

    def after(self, node: Node, target: str, module: nn.Module, args: tuple[Node, ...]) -> Node:
        setattr(self.gm, target, module)
        with self.gm.graph.inserting_after(node):
            return self.gm.graph.create_node("call_module", target, args, name=target)

    def shadow(self, index: int, nodes: list[Node], qconfigs: list[QConfigAny]) -> None:
        gm, end = self.gm, nodes[-1]
        plain = _logger(OutputLogger, gm, nodes, f"{index}_0", None)
        last = self.after(end, f"shadow_{index}_0", plain, (end,))
        for number, qconfig in enumerate(qconfigs, 1):
            wrapper, outer = _wrapped(nodes, gm)
            inputs = tuple(self.values[n] for n in outer)
            mapping = QConfigMapping().set_global(qconfig)
            wrapper.train(self.prepare.__name__ == "prepare_qat_fx")
            prepared = self.prepare(
                wrapper, mapping, inputs, backend_config=self.backend, **self.kwargs
            )
            last = self.after(last, f"{WRAPPER}_{index}_{number}", prepared, tuple(outer))
            made = _logger(OutputComparisonLogger, gm, nodes, f"{index}_{number}", qconfig)
            last = self.after(last, f"shadow_{index}_{number}", made, (last, end))


def _prepare_n_shadows_add_loggers_model(
    model: nn.Module,
    example_inputs: Any,
    qconfig_mapping: QConfigMapping,
    backend_config: BackendConfig,
) -> nn.Module:
    """The model with one quantized form, whose operators get the results of the quantized ones
    before them instead of the float ones."""
    from torch.ao.quantization.quantize_fx import prepare_fx

    gm = _traced(model, None)
    (choices,) = _choices(gm, [qconfig_mapping])
    values = _run_once(gm, example_inputs)
    work = _Preparation(gm, values, backend_config, None, None)
    shadow_of: dict[Node, Node] = {}
    operators = {nodes[0]: (i, nodes) for i, nodes in
                 enumerate(list(_operators(gm, backend_config)))}  # fmt: skip
    inside = {n for _, nodes in operators.values() for n in nodes}
    for node in list(gm.graph.nodes):
        if node in operators:
            index, nodes = operators[node]
        elif node not in inside and node.op.startswith("call_"):
            index, nodes = len(operators) + len(shadow_of), [node]
        else:
            continue
        end = nodes[-1]
        wrapper, outer = _wrapped(nodes, gm)
        inputs = tuple(values[n] for n in outer)
        mapping = QConfigMapping().set_global(choices.get(nodes[0].name))
        prepared = prepare_fx(wrapper.eval(), mapping, inputs, backend_config=backend_config)
        plain = _logger(OutputLogger, gm, nodes, f"{index}_0", None)
        last = work.after(end, f"shadow_{index}_0", plain, (end,))
        fed = tuple(shadow_of.get(n, n) for n in outer)
        last = work.after(last, f"{WRAPPER}_{index}_1", prepared, fed)
        shadow_of[end] = last
        if isinstance(values[end], torch.Tensor):
            qconfig = choices.get(nodes[0].name)
            made = _logger(OutputComparisonLogger, gm, nodes, f"{index}_1", qconfig)
            work.after(last, f"shadow_{index}_1", made, (last, end))
    gm.graph.lint()
    gm.recompile()
    return gm


def convert_n_shadows_model(
    model: GraphModule,
    custom_convert_fn: Callable | None = None,
    custom_convert_kwargs: dict[str, Any] | None = None,
) -> GraphModule:
    """The same with quantized shadows."""
    from torch.ao.quantization.quantize_fx import convert_fx

    convert = custom_convert_fn or convert_fx
    for node in model.graph.nodes:
        if node.op == "call_module" and str(node.target).startswith(WRAPPER):
            prepared = getattr(model, str(node.target))
            setattr(model, str(node.target), convert(prepared, **(custom_convert_kwargs or {})))
    return model


# ---- loggers and results -------------------------------------------------------------------------
def loggers_set_enabled(model: nn.Module, enabled: bool) -> None:
    """Turns all loggers on or off."""
    for module in model.modules():
        if isinstance(module, OutputLogger):
            module.enabled = enabled


def loggers_set_save_activations(model: nn.Module, save_activations: bool) -> None:
    """Whether loggers keep tensors; they compare them in either case."""
    for module in model.modules():
        if isinstance(module, OutputLogger):
            module.save_activations = save_activations


def extract_results_n_shadows_model(model: nn.Module) -> NSResultsType:
    """What the loggers have kept: by operator and configuration, 0 for the float one."""
    loggers = [m for m in model.modules() if isinstance(m, OutputLogger)]
    loggers.sort(key=lambda m: [int(part) for part in m.model_name.split("_")[1:]])
    found = {logger.model_name: [record_of(logger)] for logger in loggers}
    return {_MODEL: {_OUTPUT: found}}


def _n_shadows_compare_weights(
    model: nn.Module,
    example_inputs: Any,
    qconfig_mapping: QConfigMapping,
    backend_config: BackendConfig,
) -> NSResultsType:
    """The weights of the float model and of the one that a configuration makes of it."""
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    plain = _traced(model, None)
    prepared = prepare_fx(
        copy.deepcopy(model), qconfig_mapping, example_inputs, backend_config=backend_config
    )
    prepared(*example_inputs)
    quantized = convert_fx(prepared)
    found: dict[str, list[dict[str, Any]]] = {}
    pairs = get_matching_subgraph_pairs(plain, quantized).values()
    for index, (part, other) in enumerate(pairs):
        records = [
            extract_weight_from_node(p.base_op_node, gm)
            for p, gm in ((part, plain), (other, quantized))
        ]
        if None in records or op_of(part.base_op_node, plain) is None:
            continue
        distance = compute_sqnr(records[0]["values"][0], records[1]["values"][0])
        for number, record in enumerate(records):
            record.update(
                qconfig_str="", comparisons=[distance] * number, comparison_fn_name="sqnr"
            )
            found[f"subgraph_{index}_{number}"] = [record]
    return {_MODEL: {NSSingleResultValuesType.WEIGHT.value: found}}


def print_comparisons_n_shadows_model(results: NSResultsType) -> None:
    """Prints a line for each operator: its name, and the distance of each quantized form."""
    for kinds in results.values():
        for found in kinds.values():
            lines: dict[str, list[str]] = {}
            for name, records in found.items():
                _, index, number = name.split("_")
                record = records[0]
                line = lines.setdefault(
                    index, [record["prev_node_name"], str(record["prev_node_target_type"])]
                )
                if number != "0":
                    line += [f"{float(c):.4f}" for c in record["comparisons"]]
            for index, line in lines.items():
                print(f"subgraph {index}: " + "  ".join(line))
