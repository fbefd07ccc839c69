"""Operators with effects in a trace: with_effects(token, op, *args) returns a new token, then the
results. Tokens are passed from one to the next, so that what only prints, or counts, keeps its
order in a graph that otherwise knows only values."""

import enum
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

__all__ = [
    "SIDE_EFFECTS",
    "has_aliasing",
    "has_effects",
    "new_token_tensor",
    "with_effects",
    "_EffectType",
    "_deregister_effectful_op",
    "_register_effectful_op",
]


class _EffectType(enum.Enum):
    """What an effect is ordered with: all others of its kind."""

    ORDERED = "Ordered"


SIDE_EFFECTS: dict[OpOverload | HigherOrderOperator, _EffectType] = {}


def _register_effectful_op(op: OpOverload | HigherOrderOperator, effect: _EffectType) -> None:
    """Calls of op keep their order in a trace."""
    if not isinstance(op, (OpOverload, HigherOrderOperator)):
        raise TypeError(f"expected an operator, got {type(op)}")
    if has_aliasing(op):
        raise RuntimeError(f"Trying to register an effectful op {op!s} that has aliased results")
    if SIDE_EFFECTS.get(op, effect) is not effect:
        raise RuntimeError(f"{op!s} is registered with the effect {SIDE_EFFECTS[op]} already")
    SIDE_EFFECTS[op] = effect


def _deregister_effectful_op(op: OpOverload | HigherOrderOperator) -> None:
    """Undoes _register_effectful_op."""
    if op not in SIDE_EFFECTS:
        raise RuntimeError(f"Op {op!s} is not registered as effectful")
    del SIDE_EFFECTS[op]


def has_aliasing(op: OpOverload | HigherOrderOperator) -> bool:
    """Whether a result of op may share memory with an argument."""
    if not isinstance(op, OpOverload):
        return False
    schema = op._schema
    return any(a.alias_info is not None for a in (*schema.arguments, *schema.returns))


def has_effects(op: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> bool:
    """Whether op is registered as one whose calls keep their order."""
    known = isinstance(op, (OpOverload, HigherOrderOperator)) and not has_aliasing(op)
    return known and op in SIDE_EFFECTS


def new_token_tensor() -> Tensor:
    """The token before any effect."""
    return torch.tensor([])


class WithEffects(HigherOrderOperator):
    """with_effects(token, op, *args, **kwargs)"""

    def __init__(self) -> None:
        super().__init__("with_effects", cacheable=True)

    def __call__(
        self, token: Tensor, op: OpOverload | HigherOrderOperator, *args: Any, **kwargs: Any
    ) -> tuple:
        if not isinstance(op, (OpOverload, HigherOrderOperator)):
            raise TypeError(f"expected an operator, got {type(op)}")
        if has_aliasing(op):
            raise RuntimeError(f"with_effects: the results of {op!s} share memory with arguments")
        return super().__call__(token, op, *args, **kwargs)


with_effects = WithEffects()


@with_effects.py_impl(utils.COMPOSITE)
def _run(token, op, *args, **kwargs) -> tuple:
    found = op(*args, **kwargs)
    after = new_token_tensor()
    return (after, *found) if isinstance(found, tuple) else (after, found)


with_effects.py_impl(DispatchKey.Autograd)(utils.autograd_not_implemented(with_effects))


@with_effects.py_impl(FakeTensorMode)
def _without_data(mode, token, op, *args, **kwargs) -> tuple:
    with mode:
        return _run(token, op, *args, **kwargs)


@with_effects.py_impl(ProxyTorchDispatchMode)
def _trace(mode, token, op, *args, **kwargs) -> tuple:
    found = with_effects(token, op, *args, **kwargs)
    return utils.record(mode, with_effects, {}, (token, op, *args), found, kwargs)


def handle_effects(
    allow_token_discovery: bool,
    tokens: dict[_EffectType, Tensor],
    op: OpOverload | HigherOrderOperator,
    args: tuple,
    kwargs: dict[str, Any],
) -> Any:
    """A call of an operator with effects while a trace is made: takes the token of its kind and
    puts the new one in its place.
    """
    kind = SIDE_EFFECTS[op]
    if kind not in tokens:
        if not allow_token_discovery:
            raise RuntimeError(f"no token was given to the trace for effects of kind {kind}")
        tokens[kind] = new_token_tensor()
    after, *found = with_effects(tokens[kind], op, *args, **kwargs)
    tokens[kind] = after
    returns = op._schema.returns if isinstance(op, OpOverload) else found
    if not returns:
        return None
    return found[0] if len(found) == 1 else tuple(found)
