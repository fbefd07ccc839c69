"""Puts observers into a traced graph.

Every operator that the backend knows is a match: some nodes, a record of the backend, and a
configuration. A match whose configuration the backend can run becomes a plan, which says what its
inputs, weights and output need. Then one walk over the graph inserts observers where a value does
not have yet what its user needs."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.ao.quantization.backend_config import (
    BackendConfig,
    DTypeConfig,
    DTypeWithConstraints,
    ObservationType,
    get_native_backend_config,
)
from torch.ao.quantization.backend_config.backend_config import BackendPatternConfig
from torch.ao.quantization.backend_config.utils import get_module_to_qat_module
from torch.ao.quantization.fake_quantize import FakeQuantizeBase, FixedQParamsFakeQuantize
from torch.ao.quantization.fx import match_utils
from torch.ao.quantization.fx.custom_config import (
    PrepareCustomConfig,
    StandaloneModuleConfigEntry,
)
from torch.ao.quantization.fx.graph_module import ATTRS_KEY, ObservedGraphModuleAttrs
from torch.ao.quantization.fx.qconfig_mapping_utils import _generate_node_name_to_qconfig
from torch.ao.quantization.fx.utils import (
    _place_of,
    all_node_args_have_no_tensors,
    assert_and_get_unique_device,
    get_new_attr_name_with_prefix,
)
from torch.ao.quantization.observer import (
    FixedQParamsObserver,
    NoopObserver,
    PlaceholderObserver,
    _is_activation_post_process,
)
from torch.ao.quantization.qconfig import QConfig, QConfigAny, _is_reuse_input_qconfig
from torch.ao.quantization.qconfig_mapping import QConfigMapping
from torch.ao.quantization.utils import get_swapped_custom_module_class
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

__all__ = ["insert_observers_for_model", "prepare"]

Need = tuple[torch.dtype, bool]  # dtype, whether the grid is found at run time
_FLOAT: Need = (torch.float, False)
_FLOATS = (torch.float, torch.bfloat16, torch.float64)


@dataclass
class Match:
    """Nodes that the backend runs as one, and how."""

    nodes: list[Node]  # last first
    config: BackendPatternConfig
    qconfig: QConfigAny
    dtypes: DTypeConfig | None = None  # None: the configuration cannot be run

    @property
    def last(self) -> Node:
        return self.nodes[0]

    @property
    def root(self) -> Node:
        return self.nodes[-1]


# ---- what a backend takes
def _within(watcher: nn.Module, limits: DTypeWithConstraints) -> bool:
    """Whether an observer promises what a backend asks for."""
    low, high = getattr(watcher, "quant_min", None), getattr(watcher, "quant_max", None)
    if limits.quant_min_lower_bound is not None and limits.quant_max_upper_bound is not None:
        if low is None or high is None:
            warnings.warn("QConfig must specify 'quant_min' and 'quant_max'", stacklevel=4)
            return False
        if low < limits.quant_min_lower_bound or high > limits.quant_max_upper_bound:
            warnings.warn(
                f"QConfig quantization range [{low}, {high}] must fall within the backend's "
                f"[{limits.quant_min_lower_bound}, {limits.quant_max_upper_bound}]",
                stacklevel=4,
            )
            return False
    if limits.scale_min_lower_bound is not None:
        inner = getattr(watcher, "activation_post_process", watcher)
        eps = getattr(inner, "eps", None)
        if eps is None or float(eps) < limits.scale_min_lower_bound:
            warnings.warn(
                f"QConfig eps ({eps}) must be greater than or equal to the backend's min scale "
                f"value ({limits.scale_min_lower_bound})",
                stacklevel=4,
            )
            return False
    return _on_fixed_grid(watcher, limits)


def _on_fixed_grid(watcher: nn.Module, limits: DTypeWithConstraints) -> bool:
    if limits.scale_exact_match is None or limits.zero_point_exact_match is None:
        return True
    if isinstance(watcher, FixedQParamsFakeQuantize):
        watcher = watcher.activation_post_process
    if not isinstance(watcher, FixedQParamsObserver):
        warnings.warn(
            "QConfig must use FixedQParamsObserver or FixedQParamsFakeQuantize for ops with a "
            "fixed range",
            stacklevel=4,
        )
        return False
    return (
        float(watcher.scale) == limits.scale_exact_match
        and int(watcher.zero_point) == limits.zero_point_exact_match
    )


def _dtype_of(watcher: nn.Module) -> torch.dtype:
    return getattr(watcher, "dtype", torch.float)


def _chosen_dtypes(config: BackendPatternConfig, qconfig: QConfigAny) -> DTypeConfig | None:
    """The way to run a pattern that fits a configuration; None where there is none."""
    if qconfig is None:
        return None
    if _is_reuse_input_qconfig(qconfig):
        return config.dtype_configs[0] if config.dtype_configs else None
    activation, weight = qconfig.activation(), qconfig.weight()
    dynamic = bool(getattr(activation, "is_dynamic", False))
    for way in config.dtype_configs:
        if bool(way.is_dynamic) != dynamic:
            continue
        seen = _dtype_of(activation)
        if way.input_dtype is not None and way.input_dtype is not seen:
            continue
        if not dynamic and way.output_dtype is not None and way.output_dtype is not seen:
            continue
        weighted = way.weight_dtype not in (None, torch.float)
        if weighted and way.weight_dtype is not _dtype_of(weight):
            continue
        if not _within(activation, way.input_dtype_with_constraints):
            continue
        if weighted and not _within(weight, way.weight_dtype_with_constraints):
            continue
        return way
    return None


def find_matches(
    model: GraphModule, backend: BackendConfig, qconfigs: dict[str, QConfigAny], opaque: set[str]
) -> dict[Node, Match]:
    """The match of every node that has one; longer patterns first."""
    modules = dict(model.named_modules(remove_duplicate=False))
    table = backend._pattern_complex_format_to_config
    patterns = sorted(table.items(), key=lambda pair: -match_utils.length(pair[0]))
    found: dict[Node, Match] = {}
    for node in reversed(list(model.graph.nodes)):
        skip = node.op == "call_module" and str(node.target) in opaque
        if node in found or skip or node.op in ("placeholder", "output", "get_attr"):
            continue
        for pattern, config in patterns:
            if not match_utils._is_match(modules, node, pattern):
                continue
            nodes = [n for n, _ in match_utils.matched_nodes(node, pattern)]
            if any(n in found for n in nodes):
                continue
            qconfig = qconfigs.get(nodes[-1].name)
            match = Match(nodes, config, qconfig, _chosen_dtypes(config, qconfig))
            if len(nodes) > 1 and match.dtypes is None and qconfig is not None:
                continue
            for n in nodes:
                found[n] = match
            break
    return found


# ---- modules that train, and modules of the user's
def _swap_for_training(
    model: GraphModule, qconfigs: dict[str, QConfigAny], backend: BackendConfig
) -> None:
    table = get_module_to_qat_module(backend)
    for node in list(model.graph.nodes):
        if node.op != "call_module":
            continue
        module = model.get_submodule(str(node.target))
        target, choice = table.get(type(module)), qconfigs.get(node.name)
        if target is None or choice is None:
            continue
        config = next((c for c in backend.configs if c.pattern is target), None)
        if config is None or _chosen_dtypes(config, choice) is None:
            continue
        module.qconfig = choice
        _set_module(model, str(node.target), target.from_float(module))


def _set_module(model: nn.Module, path: str, made: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, made)


@dataclass
class _Walk:
    """One walk over a graph that inserts observers."""

    model: GraphModule
    matches: dict[Node, Match]
    qconfigs: dict[str, QConfigAny]
    settings: PrepareCustomConfig
    is_qat: bool
    modules: dict[str, nn.Module]
    standalone: dict[str, StandaloneModuleConfigEntry]
    has: dict[Node, Need] = field(default_factory=dict)  # what the value of a node has
    plain: dict[Node, bool] = field(default_factory=dict)
    observed: set[str] = field(default_factory=set)

    @property
    def graph(self) -> Graph:
        return self.model.graph

    # ---- values
    def is_plain(self, node: Node) -> bool:
        return all_node_args_have_no_tensors(node, self.modules, self.plain)

    def observer_of(self, node: object) -> nn.Module | None:
        if isinstance(node, Node) and node.op == "call_module":
            module = self.modules.get(str(node.target))
            return module if _is_activation_post_process(module) else None
        return None

    def insert(self, value: Node, watcher: nn.Module, target: str | None = None) -> Node:
        """A call of an observer behind a value."""
        if target is None:
            target = get_new_attr_name_with_prefix("activation_post_process_")(self.model)
            self.model.add_module(target, watcher)
            self.modules[target] = watcher
        with self.graph.inserting_after(value):
            call = self.graph.call_module(target, (value,))
        self.has[call] = (_dtype_of(watcher), bool(getattr(watcher, "is_dynamic", False)))
        return call

    def observed_input(self, value: Node, maker: Callable[[], nn.Module], user: Node) -> Node:
        """The value behind an observer: one that is there already, or a new one."""
        watcher = maker()
        need = (_dtype_of(watcher), bool(getattr(watcher, "is_dynamic", False)))
        if need[0] in _FLOATS or isinstance(watcher, NoopObserver):
            return value
        if self.has.get(value, _FLOAT) == need:
            return value
        if isinstance(watcher, FixedQParamsObserver | FixedQParamsFakeQuantize):
            return value
        # An observer may wait behind the value, or behind what the value's observer observes.
        base = value
        if self.observer_of(value) is not None and need[1]:
            base = value
        for other in base.users:
            if self.observer_of(other) is not None and self.has.get(other) == need:
                if isinstance(self.observer_of(other), type(watcher)):
                    return other
        return self.insert(base, watcher)

    # ---- the parts of a match
    def _maker(self, match: Match, node: Node, arg: object) -> Callable[[], nn.Module] | None:
        way, qconfig = match.dtypes, match.qconfig
        place = _place_of(node, arg, match.config)
        if place == "weight":
            return None if way.weight_dtype in (None, torch.float) else qconfig.weight
        if place == "bias":
            if way.bias_dtype is torch.float16:
                return PlaceholderObserver.with_args(dtype=torch.float16)
            return None
        if way.input_dtype in (None, torch.float) or _is_reuse_input_qconfig(qconfig):
            return None
        return qconfig.activation

    def inputs(self, node: Node, match: Match) -> None:
        """Observes the inputs of a node that come from outside its match."""
        first_input: list[Node] = []

        def one(value: Node) -> Node:
            if value in match.nodes or self.is_plain(value):
                return value
            maker = self._maker(match, node, value)
            if maker is None:
                return value
            made = self.observed_input(value, maker, node)
            if _place_of(node, value, match.config) is None:
                first_input.append(made)
            return made

        positions = range(len(node.args))
        shares = match.config.observation_type is ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
        new = list(node.args)
        for i in positions:
            # The shape arguments of operators that move values are no tensors.
            if shares and i > 0 and node.target is not torch.cat:
                continue
            new[i] = map_arg(node.args[i], one)
        node.args = tuple(new)
        if not shares:
            node.kwargs = map_arg(dict(node.kwargs), one)
        if node.target is torch.cat and len(first_input) > 1:
            self._share_all(node, first_input)

    def _share_all(self, node: Node, inputs: list[Node]) -> None:
        """Lets all inputs of a concatenation have the observer of the first."""
        watcher = self.observer_of(inputs[0])
        if watcher is None:
            return
        for other in inputs[1:]:
            old = self.observer_of(other)
            if old is not None and old is not watcher and type(old) is type(watcher):
                old_target = str(other.target)
                for call in self.graph.nodes:
                    if call.op == "call_module" and call.target == old_target:
                        call.target = inputs[0].target

    def _tensor_inputs(self, match: Match) -> list[Node]:
        """The tensors that enter a match, weights and biases aside."""
        root = match.root
        found: list[Node] = []

        def note(value: Node) -> Node:
            if not self.is_plain(value) and _place_of(root, value, match.config) is None:
                found.append(value)
            return value

        map_arg((root.args, root.kwargs), note)
        return found

    def output(self, match: Match) -> None:
        """Observes the result of a match."""
        way, qconfig, node = match.dtypes, match.qconfig, match.last
        kind = match.config.observation_type
        counts = match.config._num_tensor_args_to_observation_type
        inputs = self._tensor_inputs(match)
        if counts:
            kind = counts.get(len(inputs), kind)
            if not inputs:
                return
        if kind is ObservationType.INPUT_OUTPUT_NOT_OBSERVED or self.is_plain(node):
            return
        if way.is_dynamic or way.output_dtype in (None, torch.float):
            if way.is_dynamic or way.weight_dtype not in (None, torch.float):
                self.observed.add(match.root.name)
            return
        shares = kind is ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
        reuse = _is_reuse_input_qconfig(qconfig)
        if shares or reuse:
            source = inputs[0] if inputs else None
            watcher = self.observer_of(source)
            if watcher is None:
                if source is not None and self.has.get(source, _FLOAT) != _FLOAT:
                    self.has[node] = self.has[source]
                return
            call = self.insert(node, watcher, str(source.target))
        else:
            fixed = way.output_dtype_with_constraints.scale_exact_match is not None
            if fixed and any(self.has.get(v, _FLOAT) == _FLOAT for v in inputs):
                return
            call = self.insert(node, qconfig.activation())
        self.observed.update(n.name for n in match.nodes)
        node.replace_all_uses_with(call, lambda user: user is not call)

    # ---- modules that are quantized by themselves, and those of the user's
    def standalone_call(self, node: Node, entry: StandaloneModuleConfigEntry, part: object) -> None:
        inputs, outputs = part
        qconfig = self.qconfigs.get(node.name)
        args = list(node.args)
        for index in inputs:
            if index < len(args) and isinstance(args[index], Node) and qconfig is not None:
                args[index] = self.observed_input(args[index], qconfig.activation, node)
        node.args = tuple(args)
        self.observed.add(node.name)
        if outputs and qconfig is not None:
            self.has[node] = (_dtype_of(qconfig.activation()), False)

    def custom_call(self, node: Node) -> None:
        qconfig = self.qconfigs[node.name]
        args = list(node.args)
        if args and isinstance(args[0], Node):
            args[0] = self.observed_input(args[0], qconfig.activation, node)
        node.args = tuple(args)
        self.observed.add(node.name)
        if _dtype_of(qconfig.activation()) not in _FLOATS and not self._gives_tuple(node):
            call = self.insert(node, qconfig.activation())
            node.replace_all_uses_with(call, lambda user: user is not call)

    def _gives_tuple(self, node: Node) -> bool:
        import operator

        return any(user.target is operator.getitem for user in node.users)


def _opaque(
    model: GraphModule, settings: PrepareCustomConfig
) -> tuple[dict[str, StandaloneModuleConfigEntry], set[str]]:
    """Standalone modules by name, and the names of the user's own modules."""
    standalone: dict[str, StandaloneModuleConfigEntry] = {}
    custom: set[str] = set()
    classes = {k for table in settings.float_to_observed_mapping.values() for k in table}
    for node in model.graph.nodes:
        if node.op != "call_module":
            continue
        name = str(node.target)
        kind = type(model.get_submodule(name))
        if name in settings.standalone_module_names:
            standalone[name] = settings.standalone_module_names[name]
        elif kind in settings.standalone_module_classes:
            standalone[name] = settings.standalone_module_classes[kind]
        elif kind in classes:
            custom.add(name)
    return standalone, custom


def _prepare_standalone(
    model: GraphModule,
    name: str,
    entry: StandaloneModuleConfigEntry,
    qconfig: QConfigAny,
    is_qat: bool,
    backend: BackendConfig,
) -> tuple[list[int], list[int]]:
    from torch.ao.quantization.quantize_fx import _prepare_standalone_module_fx

    mapping = entry.qconfig_mapping or QConfigMapping().set_global(qconfig)
    settings = entry.prepare_custom_config or PrepareCustomConfig()
    made = _prepare_standalone_module_fx(
        model.get_submodule(name),
        mapping,
        is_qat,
        entry.example_inputs,
        settings,
        entry.backend_config or backend,
    )
    _set_module(model, name, made)
    return settings.input_quantized_indexes, settings.output_quantized_indexes


def insert_observers_for_model(
    model: GraphModule,
    matches: dict[Node, Match],
    qconfigs: dict[str, QConfigAny],
    settings: PrepareCustomConfig,
    is_qat: bool,
    backend: BackendConfig,
) -> set[str]:
    """Inserts the observers; returns the names of the nodes that will compute on levels."""
    standalone, custom = _opaque(model, settings)
    walk = _Walk(
        model,
        matches,
        qconfigs,
        settings,
        is_qat,
        dict(model.named_modules(remove_duplicate=False)),
        standalone,
    )
    parts: dict[str, object] = {}
    index = 0
    for node in list(model.graph.nodes):
        if node.op == "placeholder":
            if index in settings.input_quantized_indexes:
                walk.has[node] = (torch.quint8, False)
            index += 1
        elif node.op == "output":
            _observe_outputs(walk, node)
        elif node.op == "call_module" and str(node.target) in standalone:
            name = str(node.target)
            if name not in parts:
                choice = qconfigs.get(node.name)
                parts[name] = _prepare_standalone(
                    model, name, standalone[name], choice, is_qat, backend
                )
            walk.standalone_call(node, standalone[name], parts[name])
        elif node.op == "call_module" and str(node.target) in custom:
            choice = qconfigs.get(node.name)
            if choice is not None:
                _swap_custom(walk, node, choice)
                walk.custom_call(node)
        elif node in matches and matches[node].dtypes is not None:
            match = matches[node]
            if match.config.observation_type is not ObservationType.INPUT_OUTPUT_NOT_OBSERVED:
                if not walk.is_plain(node):
                    walk.inputs(node, match)
                    if node is match.last:
                        walk.output(match)
    return walk.observed


def _swap_custom(walk: _Walk, node: Node, qconfig: QConfig) -> None:
    module = walk.model.get_submodule(str(node.target))
    table = walk.settings.float_to_observed_mapping
    if not any(type(module) in classes for classes in table.values()):
        return  # an earlier call of the module replaced it
    kind = get_swapped_custom_module_class(module, table, qconfig)
    module.qconfig = qconfig
    made = kind.from_float(module)
    made.qconfig = qconfig
    _set_module(walk.model, str(node.target), made)
    walk.modules[str(node.target)] = made


def _observe_outputs(walk: _Walk, node: Node) -> None:
    """Outputs that stay quantized need an observer where they have none."""
    wanted = walk.settings.output_quantized_indexes
    if not wanted:
        return
    given = node.args[0]
    values = list(given) if isinstance(given, tuple | list) else [given]
    for index in wanted:
        value = values[index] if index < len(values) else None
        if isinstance(value, Node) and walk.has.get(value, _FLOAT) == _FLOAT:
            choice = walk.qconfigs.get(value.name)
            if choice is not None and walk.observer_of(value) is None:
                values[index] = walk.insert(value, choice.activation())
    node.args = (type(given)(values) if isinstance(given, tuple | list) else values[0],)


def _insert_obs_or_fq(
    node: Node,
    obs_or_fq: nn.Module,
    model: nn.Module,
    named_modules: dict[str, nn.Module],
    graph: Graph,
    model_device: torch.device | None = None,
) -> Node:
    """Adds an observer to a model and a node behind `node` that calls it. The users of `node` stay
    as they are."""
    device = model_device or assert_and_get_unique_device(model)
    if device is not None:
        obs_or_fq.to(device)
    name = get_new_attr_name_with_prefix("activation_post_process_")(model)
    setattr(model, name, obs_or_fq)
    named_modules[name] = obs_or_fq
    with graph.inserting_after(node):
        return graph.create_node("call_module", name, (node,), {})


def _save_state(
    observed: GraphModule,
    node_name_to_qconfig: dict[str, QConfigAny],
    node_name_to_scope: dict[str, tuple[str, type]],
    prepare_custom_config: PrepareCustomConfig,
    equalization_node_name_to_qconfig: dict[str, Any],
    qconfig_mapping: QConfigMapping,
    is_qat: bool,
    observed_node_names: set[str],
) -> None:
    """Keeps with a graph what converting it needs."""
    observed.meta[ATTRS_KEY] = ObservedGraphModuleAttrs(
        node_name_to_qconfig,
        node_name_to_scope,
        prepare_custom_config,
        equalization_node_name_to_qconfig,
        qconfig_mapping,
        is_qat,
        observed_node_names,
    )


def _as(value: object, kind: type, empty: object) -> object:
    if isinstance(value, dict):
        return kind.from_dict(value)
    return empty if value is None else value


def prepare(
    model: GraphModule,
    qconfig_mapping: QConfigMapping | dict[str, Any],
    is_qat: bool,
    node_name_to_scope: dict[str, tuple[str, type]],
    example_inputs: tuple[Any, ...],
    prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None,
    _equalization_config: QConfigMapping | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
    is_standalone_module: bool = False,
) -> GraphModule:
    """The graph with observers, to be calibrated or trained."""
    mapping = copy.deepcopy(_as(qconfig_mapping, QConfigMapping, QConfigMapping()))
    settings = _as(prepare_custom_config, PrepareCustomConfig, PrepareCustomConfig())
    backend = _as(backend_config, BackendConfig, None) or get_native_backend_config()
    qconfigs = _generate_node_name_to_qconfig(model, model, mapping, node_name_to_scope)
    if is_qat:
        _swap_for_training(model, qconfigs, backend)
    standalone, custom = _opaque(model, settings)
    matches = find_matches(model, backend, qconfigs, {*standalone, *custom})
    for node in model.graph.nodes:
        if node.op == "call_module" and qconfigs.get(node.name) is not None:
            model.get_submodule(str(node.target)).qconfig = qconfigs[node.name]
    observed = insert_observers_for_model(model, matches, qconfigs, settings, is_qat, backend)
    _save_state(model, qconfigs, node_name_to_scope, settings, {}, mapping, is_qat, observed)
    if is_standalone_module:
        attrs = model.meta[ATTRS_KEY]
        attrs.is_observed_standalone_module = True
        attrs.standalone_module_input_quantized_idxs = settings.input_quantized_indexes
        attrs.standalone_module_output_quantized_idxs = settings.output_quantized_indexes
    model.graph.lint()
    model.recompile()
    for module in model.modules():
        if isinstance(module, FakeQuantizeBase) and not is_qat:
            module.eval()
    return model
