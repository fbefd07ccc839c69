"""What happens when an operator meets a distributed tensor: the rule of the operator says how it
runs on parts, arguments move where they have to, the operator runs on this process's parts, and the
results are wrapped. What was decided is kept by operator, specs and other arguments, so that the
second call costs a look-up."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import _rules
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta, local_part
from torch.distributed.tensor._redistribute import redistribute_local_tensor
from torch.distributed.tensor._signature import Signature, choose
from torch.distributed.tensor.placement_types import Placement, Replicate

Tensor = torch.Tensor
OpOverload = torch._ops.OpOverload

# Plans that are kept; programs whose shapes change without end start over.
_MOST_PLANS = 8192


class _Settings(threading.local):
    """Of one thread: whether plain tensors count as replicated ones, and the operators of which
    they do in any case."""

    implicit_replication = False
    replicating_ops: frozenset[OpOverload] = frozenset()


settings = _Settings()


class Call(NamedTuple):
    """A call as rules see it: arguments by name with specs in the place of tensors, the specs in
    the order of the arguments, and the geometry of the results."""

    op: OpOverload
    arguments: dict[str, Any]
    tensors: list[DTensorSpec]
    results: list[TensorMeta]
    positions: dict[str, list[int]]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor argument."""
        return tuple(self.arguments[name].shape)

    def at(self, name: str) -> int:
        """The position of a tensor argument among the call's tensors; -1 for None."""
        found = self.positions.get(name)
        return found[0] if found else -1


class LocalCall(NamedTuple):
    """A call on this process's parts, for rules that run an operator in their own way."""

    op: OpOverload
    args: tuple
    kwargs: dict[str, Any]
    inputs: list[DTensorSpec]
    outputs: list[DTensorSpec]


class Plan(NamedTuple):
    """How a call runs: the specs that its tensors have to have (None: as they are), the specs of
    the results, arguments that name shapes, and an own way to run."""

    moves: list[DTensorSpec | None]
    moving: bool
    inputs: list[DTensorSpec]
    outputs: list[DTensorSpec]
    shapes: list[tuple[int | str, list[int]]]
    local: Callable[[LocalCall], Any] | None
    single: bool
    written: int | None


class ShardingPropagator:
    """Where plans come from; ranks that are threads make them one after the other."""

    _fake_mode_lock = threading.RLock()


_plans: dict[Any, Plan] = {}
_lookups = {"hits": 0, "misses": 0}


def clear_plans() -> None:
    """Forgets what was decided, after rules have changed."""
    _plans.clear()


# ---- the way of a call ---------------------------------------------------------------------------
def dispatch(cls: type, op: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Runs an operator on distributed tensors."""
    handler = _rules.handler_of(op)
    if handler is not None:
        return handler(op, args, kwargs)
    rule = _rules.rule_of(op)
    if rule is None:
        return _decomposed(op, args, kwargs)
    if rule.lists and len(groups := _rules.lists.groups(cls, args[0])) > 1:
        # Optimizers update parameters of several meshes, and plain ones, by one call.
        for members in groups:
            op(*_rules.lists.columns(args, members), **_rules.lists.named(kwargs, args, members))
        return None
    tensors: list[Tensor] = []
    key = [op]
    mesh = _collect(cls, args, key, tensors, rule.reads_floats, None)
    if kwargs:
        key.append(tuple(kwargs))
        mesh = _collect(cls, tuple(kwargs.values()), key, tensors, rule.reads_floats, mesh)
    plain = [i for i, tensor in enumerate(tensors) if not isinstance(tensor, cls)]
    if plain:
        tensors = list(tensors)
        for i in plain:
            tensors[i] = _as_replicated(cls, op, tensors[i], mesh)
    # Ranks may be threads: meshes of two of them are equal but for where each is.
    key.append(tuple(mesh.get_coordinate() or ()))
    whole = tuple(key)
    plan = _plans.get(whole)
    _lookups["hits" if plan is not None else "misses"] += 1
    if plan is None:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        with ShardingPropagator._fake_mode_lock:
            plan = _plans[whole] = _make_plan(cls, rule, op, args, kwargs, tensors, mesh)
    return _run(cls, plan, op, args, kwargs, tensors, mesh)


def _collect(
    cls: type,
    values: Sequence[Any],
    key: list,
    tensors: list[Tensor],
    floats: bool,
    mesh: DeviceMesh | None,
) -> DeviceMesh | None:
    """Adds the tensors among arguments to a list, and to the key what the plan depends on."""
    for value in values:
        if isinstance(value, cls):
            tensors.append(value)
            spec = value._spec
            key.append(spec)
            if mesh is None or spec.mesh.ndim > mesh.ndim:
                mesh = spec.mesh
        elif isinstance(value, Tensor):
            tensors.append(value)
            key.append((value.shape, value.stride(), value.dtype))
        elif isinstance(value, (list, tuple)):
            key.append(len(value))
            mesh = _collect(cls, value, key, tensors, floats, mesh)
        elif isinstance(value, float) and not floats:
            key.append(float)
        elif isinstance(value, torch.Generator):
            key.append(torch.Generator)
        else:
            key.append((type(value), value))
    return mesh


def _as_replicated(cls: type, op: OpOverload, tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    """A plain tensor among distributed ones: a number, or one the program says to be the same
    everywhere."""
    if tensor.numel() == 1 and tensor.ndim == 1:
        warnings.warn(
            "Found a non-scalar tensor with numel=1 and ndim!=0, we are implicitly creating a "
            "replicated DTensor for it. However, please consider changing it to a scalar tensor "
            "or explicitly create a DTensor under distributed environment.",
            stacklevel=2,
        )
    elif tensor.numel() != 1 and not (
        settings.implicit_replication or op in settings.replicating_ops
    ):
        raise RuntimeError(
            f"{op}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to "
            "DTensor before calling distributed operators!"
        )
    meta = TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)
    return cls(tensor.detach(), DTensorSpec(mesh, (Replicate(),) * mesh.ndim, meta))


def _decomposed(op: OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The operator by the operators it is made of."""
    result = op.decompose(*args, **kwargs)
    if result is NotImplemented:
        raise NotImplementedError(f"Operator {op} does not have a sharding strategy registered.")
    return result


# ---- making plans --------------------------------------------------------------------------------
def _check_mesh(op: OpOverload, tensors: Sequence[Tensor], mesh: DeviceMesh) -> list[DTensorSpec]:
    specs = []
    for tensor in tensors:
        spec = tensor._spec
        if spec.mesh is not mesh and spec.mesh != mesh:
            spec = _on_larger_mesh(op, spec, mesh)
        specs.append(spec)
    return specs


def _on_larger_mesh(op: OpOverload, spec: DTensorSpec, mesh: DeviceMesh) -> DTensorSpec:
    """A tensor of a part of the mesh as one of the whole, replicated on the other dimensions. Only
    lists of independent tensors may mix meshes, and only where the program says so."""
    names = spec.mesh.mesh_dim_names
    same_root = spec.mesh._root_mesh() == mesh._root_mesh()
    if not (settings.implicit_replication and same_root and names and mesh.mesh_dim_names):
        raise RuntimeError(
            f"{op}: DTensor does not support cross-mesh operation yet! Got meshes: {mesh} "
            f"{spec.mesh}"
        )
    placements = [
        spec.placements[names.index(name)] if name in names else Replicate()
        for name in mesh.mesh_dim_names
    ]
    return DTensorSpec(mesh, tuple(placements), spec.tensor_meta)


def _make_plan(
    cls: type,
    rule: _rules.Rule,
    op: OpOverload,
    args: tuple,
    kwargs: dict[str, Any],
    tensors: list[Tensor],
    mesh: DeviceMesh,
) -> Plan:
    specs = _check_mesh(op, tensors, mesh)
    results, single = _result_metas(op, args, kwargs)
    call = _described(op, args, kwargs, specs, results)
    signatures = rule.make(call)
    if isinstance(signatures, Signature):
        signatures = [signatures]
    fixed = _written(op, call)
    ins: list[tuple[Placement, ...] | None] = [None] * len(specs)
    outs: list[tuple[Placement, ...] | None] = [None] * len(results)
    sizes: dict[str, int] = {}
    local = None
    for signature in signatures:
        members = list(signature.inputs)
        chosen = choose(
            signature,
            mesh.shape,
            [specs[i].placements for i in members],
            [_bytes(specs[i]) for i in members],
            {n for n, i in enumerate(members) if i in fixed},
        )
        if chosen is None:
            raise RuntimeError(
                f"{op}: in-place operations that require placement changes are not supported: "
                f"the written tensor is placed as "
                f"{[specs[i].placements for i in members if i in fixed]}, the arguments as "
                f"{[specs[i].placements for i in members]}"
            )
        for i, placements in zip(members, chosen[0], strict=True):
            ins[i] = placements
        for o, placements in zip(signature.outputs, chosen[1], strict=True):
            outs[o] = placements
        sizes.update(signature.sizes)
        local = local or signature.local
    inputs = [
        spec if placed is None or placed == spec.placements else spec.with_placements(placed)
        for spec, placed in zip(specs, ins, strict=True)
    ]
    outputs = [
        DTensorSpec(mesh, placed or (Replicate(),) * mesh.ndim, meta)
        for placed, meta in zip(outs, results, strict=True)
    ]
    moves = [None if wanted is spec else wanted for wanted, spec in zip(inputs, specs, strict=True)]
    names = [argument.name for argument in op._schema.arguments]
    shapes: list[tuple[int | str, list[int]]] = []
    for name, output in sizes.items():
        where = names.index(name)
        place = where if where < len(args) else name
        shapes.append((place, list(local_part(outputs[output])[0])))
    return Plan(
        moves,
        any(move is not None for move in moves),
        inputs,
        outputs,
        shapes,
        local,
        single,
        _returned(op),
    )


def _bytes(spec: DTensorSpec) -> float:
    size = float(spec.tensor_meta.dtype.itemsize)
    for length in spec.shape:
        size *= length
    return size


def _written(op: OpOverload, call: Call) -> set[int]:
    """The positions of tensors that the operator writes to. Gradients that an optimizer unscales on
    the way may be copies: nobody reads them afterwards."""
    found: set[int] = set()
    for argument in op._schema.arguments:
        if argument.name == "grads":
            continue
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.update(call.positions.get(argument.name, ()))
    return found


def _returned(op: OpOverload) -> int | None:
    """The argument that an in-place operator returns, by its place."""
    returns = op._schema.returns
    if len(returns) != 1 or returns[0].alias_info is None or not returns[0].alias_info.is_write:
        return None
    for place, argument in enumerate(op._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            return place
    return None


def _described(
    op: OpOverload,
    args: tuple,
    kwargs: dict[str, Any],
    specs: list[DTensorSpec],
    results: list[TensorMeta],
) -> Call:
    """Arguments by name, defaults filled in, tensors as specs."""
    left = iter(range(len(specs)))
    arguments: dict[str, Any] = {}
    positions: dict[str, list[int]] = {}

    def take(name: str, value: Any) -> Any:
        if isinstance(value, Tensor):
            i = next(left)
            positions.setdefault(name, []).append(i)
            return specs[i]
        if isinstance(value, (list, tuple)):
            return [take(name, one) for one in value]
        return value

    schema = op._schema.arguments
    for argument, value in zip(schema, args, strict=False):
        arguments[argument.name] = take(argument.name, value)
    for name, value in kwargs.items():
        arguments[name] = take(name, value)
    for argument in schema:
        if argument.name not in arguments:
            arguments[argument.name] = argument.default_value
    return Call(op, arguments, specs, results, positions)


def _result_metas(
    op: OpOverload, args: tuple, kwargs: dict[str, Any]
) -> tuple[list[TensorMeta], bool]:
    """The geometry of the results for whole tensors, from the operator's shape function, and
    whether the result is one tensor (or number) and no list."""

    def image(value: Any) -> Any:
        if isinstance(value, Tensor):
            return torch.empty_strided(
                value.shape, value.stride(), dtype=value.dtype, device="meta"
            )
        if isinstance(value, (list, tuple)):
            return [image(one) for one in value]
        return None if isinstance(value, torch.Generator) else value

    named = {name: image(value) for name, value in kwargs.items()}
    if named.get("device") is not None:
        named["device"] = torch.device("meta")
    result = op(*(image(value) for value in args), **named)
    single = not isinstance(result, (list, tuple))
    flat = [result] if single else list(result)
    metas = []
    for one in flat:
        if isinstance(one, (list, tuple)):
            metas.extend(TensorMeta(t.shape, t.stride(), t.dtype) for t in one)
        elif isinstance(one, Tensor):
            metas.append(TensorMeta(one.shape, one.stride(), one.dtype))
    return metas, single


# ---- running -------------------------------------------------------------------------------------
def _run(
    cls: type,
    plan: Plan,
    op: OpOverload,
    args: tuple,
    kwargs: dict[str, Any],
    tensors: list[Tensor],
    mesh: DeviceMesh,
) -> Any:
    if mesh.get_coordinate() is None:
        return _outside(cls, plan, op, args)
    if plan.moving:
        locals_ = [
            tensor._local_tensor
            if move is None
            else redistribute_local_tensor(tensor._local_tensor, _spec_on(tensor, move), move)
            for tensor, move in zip(tensors, plan.moves, strict=True)
        ]
    else:
        locals_ = [tensor._local_tensor for tensor in tensors]
    left = iter(locals_)
    local_args = [_filled(value, left) for value in args]
    local_kwargs = {name: _filled(value, left) for name, value in kwargs.items()}
    for place, shape in plan.shapes:
        if isinstance(place, int):
            local_args[place] = list(shape)
        else:
            local_kwargs[place] = list(shape)
    if plan.local is None:
        result = op(*local_args, **local_kwargs)
    else:
        result = plan.local(
            LocalCall(op, tuple(local_args), local_kwargs, plan.inputs, plan.outputs)
        )
    if plan.written is not None:
        return args[plan.written] if plan.written < len(args) else kwargs["out"]
    return _wrapped(cls, plan, result)


def _spec_on(tensor: Tensor, wanted: DTensorSpec) -> DTensorSpec:
    spec = tensor._spec
    return spec if spec.mesh == wanted.mesh else _on_larger_mesh(None, spec, wanted.mesh)


def _filled(value: Any, left: Any) -> Any:
    """An argument with local parts in the place of tensors."""
    if isinstance(value, Tensor):
        return next(left)
    if isinstance(value, (list, tuple)):
        return [_filled(one, left) for one in value]
    return value


def _wrapped(cls: type, plan: Plan, result: Any) -> Any:
    if isinstance(result, Tensor):
        return cls(result, plan.outputs[0])
    if isinstance(result, (list, tuple)):
        left = iter(plan.outputs)
        return _wrapped_each(cls, result, left)
    return result


def _wrapped_each(cls: type, results: Sequence[Any], left: Any) -> Any:
    made = [
        cls(one, next(left))
        if isinstance(one, Tensor)
        else _wrapped_each(cls, one, left)
        if isinstance(one, (list, tuple))
        else one
        for one in results
    ]
    return made if isinstance(results, list) else tuple(made)


def _outside(cls: type, plan: Plan, op: OpOverload, args: tuple) -> Any:
    """The result in a process that is not in the mesh: tensors without elements."""
    if plan.written is not None:
        return args[plan.written]
    made = []
    for spec in plan.outputs:
        meta = spec.tensor_meta
        kind = spec.mesh.device_type
        empty = torch.zeros((), dtype=meta.dtype, device=kind) if not meta.shape else None
        if empty is None:
            empty = torch.empty((0,), dtype=meta.dtype, device=kind)
        made.append(cls(empty, spec))
    return made[0] if plan.single and made else made
