"""Which submodules become units of their own. A policy looks at modules from the leaves up; one
that it picks is wrapped, and what is not picked belongs to the unit around it."""

from __future__ import annotations

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import nn

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]

Choice = dict[nn.Module, dict[str, Any]]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Picks every module."""
    return True


class _Policy(ABC):
    """Picks modules below a root."""

    @abstractmethod
    def _run_policy(
        self, root_module: nn.Module, ignored_modules: set[nn.Module], root_kwargs: dict[str, Any]
    ) -> Choice:
        """The modules that are picked, each with the arguments of its wrapper."""


class ModuleWrapPolicy(_Policy):
    """Picks modules of some classes."""

    def __init__(self, module_classes: Iterable[type[nn.Module]]) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def _run_policy(
        self, root_module: nn.Module, ignored_modules: set[nn.Module], root_kwargs: dict[str, Any]
    ) -> Choice:
        classes = tuple(self._module_classes)
        return {
            module: root_kwargs
            for module in root_module.modules()
            if module not in ignored_modules and isinstance(module, classes)
        }

    def __call__(self, module: nn.Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        """As a function of the older kind."""
        return lambda_auto_wrap_policy(
            module, recurse, -1, lambda one: isinstance(one, tuple(self._module_classes))
        )

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy(_Policy):
    """Picks modules for which a function returns True, or the arguments of the wrapper."""

    def __init__(self, lambda_fn: Callable[[nn.Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def _run_policy(
        self, root_module: nn.Module, ignored_modules: set[nn.Module], root_kwargs: dict[str, Any]
    ) -> Choice:
        chosen: Choice = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            told = self._lambda_fn(module)
            if not isinstance(told, (bool, dict)):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or a kwarg "
                    f"dict, but it returned {told}"
                )
            if told:
                chosen[module] = {**root_kwargs, **(told if isinstance(told, dict) else {})}
        return chosen


def lambda_auto_wrap_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable
) -> bool:
    """Picks modules for which the function is true."""
    return True if recurse else lambda_fn(module)


def transformer_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    nonwrapped_numel: int,
    transformer_layer_cls: set[type[nn.Module]],
) -> bool:
    """Picks modules of the classes of a transformer's layers."""
    return True if recurse else isinstance(module, tuple(transformer_layer_cls))


def _or_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable]
) -> bool:
    """Picks what one of several policies picks."""
    return any(
        policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel)
        for policy in policies
    )


def size_based_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[nn.Module]] | None = None,
    exclude_wrap_modules: set[type[nn.Module]] | None = None,
) -> bool:
    """Picks modules with that many elements that no module inside has taken."""
    own = size_based_auto_wrap_policy
    leaves = own.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    excluded = own.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
    is_large = nonwrapped_numel >= min_num_params
    if recurse:
        return is_large and not isinstance(module, tuple(leaves))
    return is_large and not isinstance(module, tuple(excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {nn.ModuleList, nn.ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}


# ---- by hand
_in_force: list[tuple[type[nn.Module], dict[str, Any]]] = []


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: type[nn.Module], **wrapper_kwargs: Any) -> Iterator[None]:
    """Inside, `wrap` wraps in that class with those arguments."""
    _in_force.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _in_force.pop()


def wrap(module: nn.Module, **wrap_overrides: Any) -> nn.Module:
    """The module, wrapped inside of `enable_wrap` and as it is outside."""
    if not _in_force:
        return module
    wrapper_cls, kwargs = _in_force[-1]
    return _wrap(module, wrapper_cls, **{**kwargs, **wrap_overrides})


def _wrap(module: nn.Module, wrapper_cls: type[nn.Module], **kwargs: Any) -> nn.Module:
    own = getattr(module, "_wrap_overrides", {})
    return wrapper_cls(module, **{**kwargs, **own})


def _replace(root: nn.Module, old: nn.Module, new: nn.Module) -> None:
    """Puts another module everywhere below a root."""
    for parent in root.modules():
        for name, child in parent._modules.items():
            if child is old and parent is not new:
                parent._modules[name] = new


def _post_order_apply(root_module: nn.Module, fn: Callable[[nn.Module], nn.Module | None]) -> None:
    """Calls fn on all modules, children first, and puts what it returns in their place."""
    seen: set[nn.Module] = set()

    def visit(module: nn.Module, parent: nn.Module | None, name: str) -> None:
        for child_name, child in list(module._modules.items()):
            if child is not None and child not in seen:
                seen.add(child)
                visit(child, module, child_name)
        made = fn(module)
        if made is not None:
            if not isinstance(made, nn.Module):
                raise AssertionError(f"fn should return None or an nn.Module but got {made}")
            if parent is not None:
                _replace(root_module, module, made)

    seen.add(root_module)
    visit(root_module, None, "")


def _run_choice(root: nn.Module, chosen: Choice, wrapper_cls: type[nn.Module]) -> None:
    """Wraps the chosen modules below a root, children first."""

    def one(module: nn.Module) -> nn.Module | None:
        if module is root or module not in chosen:
            return None
        return _wrap(module, wrapper_cls, **chosen[module])

    _post_order_apply(root, one)


def _recursive_wrap(
    module: nn.Module,
    auto_wrap_policy: Callable,
    wrapper_cls: type[nn.Module],
    ignored_modules: set[nn.Module],
    ignored_params: set[nn.Parameter],
    only_wrap_children: bool = False,
    **kwargs: Any,
) -> tuple[nn.Module, int]:
    """Wraps what a policy of the older kind picks. Returns the module and how many elements are in
    wrapped modules below it."""
    numel = sum(p.numel() for p in module.parameters() if p not in ignored_params)
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=numel):
        return module, 0
    taken = 0
    for name, child in list(module.named_children()):
        if child in ignored_modules or isinstance(child, wrapper_cls):
            continue
        made, count = _recursive_wrap(
            child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs
        )
        setattr(module, name, made)
        taken += count
    rest = numel - taken
    picked = not only_wrap_children and auto_wrap_policy(
        module=module, recurse=False, nonwrapped_numel=rest
    )
    if picked:
        return _wrap(module, wrapper_cls, **kwargs), numel
    return module, taken


def _auto_wrap(
    root: nn.Module,
    policy: Callable | _Policy,
    ignored_modules: set[nn.Module],
    ignored_params: set[nn.Parameter],
    root_kwargs: dict[str, Any],
    wrapper_cls: type[nn.Module],
) -> None:
    """Wraps what the policy picks below a root that is being wrapped itself."""
    for module in root.modules():
        if isinstance(module, wrapper_cls):
            raise ValueError(
                f"FSDP auto wrapping requires modules to not already have FSDP applied but found "
                f"{type(module).__name__} in {type(root).__name__}"
            )
    if isinstance(policy, _Policy):
        chosen = policy._run_policy(root, ignored_modules, root_kwargs)
        _run_choice(root, chosen, wrapper_cls)
        return
    _recursive_wrap(
        root, functools.partial(policy), wrapper_cls, ignored_modules, ignored_params,
        only_wrap_children=True, **root_kwargs,
    )  # fmt: skip
