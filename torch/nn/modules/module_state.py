"""Saving and loading of modules: state_dict, load_state_dict, and a report of mismatches that
groups keys and proposes renames."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.modules._state_report import grouped, proposals
from torch.nn.parameter import Parameter, is_lazy

_EXTRA_STATE = _EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _empty_state() -> OrderedDict:
    """A state_dict without entries; its attribute holds the versions of modules by path."""
    state = OrderedDict()
    state._metadata = OrderedDict()
    return state


class StateMixin:
    """The state_dict side of Module."""

    def _saved_tensors(self) -> list[tuple[str, torch.Tensor]]:
        """The parameters and persistent buffers of this module itself, by name."""
        hidden, held = self._non_persistent_buffers_set, self._parameters.items()
        if self._buffers:
            held = [*held, *self._buffers.items()]
        return [(name, t) for name, t in held if t is not None and name not in hidden]

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        for name, value in self._saved_tensors():
            # A tensor without a shape has nothing to detach from.
            plain = not keep_vars and not is_lazy(value)
            destination[prefix + name] = value.detach() if plain else value
        if type(self).get_extra_state is not _base().get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Everything the module would need to continue elsewhere: parameters and persistent
        buffers by path. Tensors are detached, not copied, unless keep_vars."""
        if args:  # the older call, by position
            named = {"destination": destination, "prefix": prefix, "keep_vars": keep_vars}
            named.update(zip(named, args, strict=False))
            return StateMixin.state_dict(self, **named)
        if destination is None:
            destination = _empty_state()
        about = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = about
        for prepare in self._state_dict_pre_hooks.values():
            prepare(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                path = f"{prefix}{name}."
                child.state_dict(destination=destination, prefix=path, keep_vars=keep_vars)
        for finish in self._state_dict_hooks.values():
            replaced = finish(self, destination, prefix, about)
            if replaced is not None and not getattr(finish, "_from_public_api", False):
                destination = replaced
        return destination

    def _load_one(self, key, name, target, value, assign, error_msgs) -> None:
        if not torch.overrides.is_tensor_like(value):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(value)}"
            )
            return
        lazy = is_lazy(target)
        # Files of old versions hold 0-dim values as one-element vectors.
        if not lazy and target.dim() == 0 and value.dim() == 1 and value.numel() == 1:
            value = value[0]
        if not lazy and value.shape != target.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from "
                f"checkpoint, the shape in current model is {target.shape}."
            )
            return
        if not lazy and target.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding "
                "key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with torch.no_grad():
                if not assign:
                    target.copy_(value)
                    return
                if isinstance(target, Parameter):
                    if not isinstance(value, Parameter):
                        value = Parameter(value, requires_grad=target.requires_grad)
                    else:
                        value.requires_grad_(target.requires_grad)
                setattr(self, name, value)
        except Exception as error:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{target.size()} and whose dimensions in the checkpoint are {value.size()}, an "
                f"exception occurred : {error.args}."
            )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        local = dict(self._saved_tensors())
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, target in local.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(key, name, target, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            self._find_unexpected(state_dict, prefix, local, unexpected_keys)

    def _load_extra_state(self, state_dict, prefix, strict, missing_keys, unexpected_keys) -> None:
        key = prefix + _EXTRA_STATE
        if type(self).set_extra_state is not _base().set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _find_unexpected(self, state_dict, prefix, local, unexpected_keys) -> None:
        for key in state_dict:
            if not key.startswith(prefix) or key == prefix + _EXTRA_STATE:
                continue
            head, *rest = key[len(prefix) :].split(".", 1)
            if (rest and head not in self._modules) or (not rest and head not in local):
                unexpected_keys.append(key)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies (or, with assign, takes over) the tensors of a state_dict. With strict, missing
        and unexpected keys raise; the message groups them and proposes renames."""
        if not hasattr(state_dict, "keys") or not hasattr(state_dict, "__getitem__"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, state, prefix) -> None:
            local_metadata = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(
                state, prefix, local_metadata, True, missing, unexpected, errors
            )
            if any(child is not None for child in module._modules.values()):
                below = _by_child(state, prefix)
                for name, child in module._modules.items():
                    if child is not None:
                        load(child, below.get(name, OrderedDict()), prefix + name + ".")
            incompatible = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                        "expected to return new values"
                    )

        load(self, state_dict, "")
        if strict:
            hint = proposals(missing, unexpected) if missing and unexpected else ""
            if hint:
                errors.insert(0, hint + " ")
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {grouped(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {grouped(missing)}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}"
            )
        return _IncompatibleKeys(missing, unexpected)


def _by_child(state, prefix: str) -> dict[str, OrderedDict]:
    """The entries below `prefix` by the child they belong to: each child looks at its own only."""
    parts: dict[str, OrderedDict] = {}
    for key, value in state.items():
        if key.startswith(prefix):
            child, dot, _ = key[len(prefix) :].partition(".")
            if dot:
                parts.setdefault(child, OrderedDict())[key] = value
    return parts


@functools.cache
def _base():
    from torch.nn.modules.module import Module

    return Module
