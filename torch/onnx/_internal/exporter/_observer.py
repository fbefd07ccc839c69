"""Watches calls of a model, to find out arguments and sizes to export it with."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.utils._pytree as pytree
from torch.onnx._internal.exporter._onnx_program import new_session

if TYPE_CHECKING:
    import onnxruntime

    from torch.onnx._internal.exporter._onnx_program import ONNXProgram

__all__ = ["InputObserver"]

Key = str | int


class _Call(NamedTuple):
    args: tuple[object, ...]
    kwargs: dict[str, object]
    outputs: list[object]


def _copied(value: object) -> object:
    return pytree.tree_map(
        lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf, value
    )


def _is_axes(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, int) for key in value)


class InputObserver:
    """Keeps arguments and results of calls.

    with observer(model):
        model(x1); model(x2)
    torch.onnx.export(model, observer.infer_arguments(),
                      dynamic_shapes=observer.infer_dynamic_shapes())
    """

    def __init__(self, value_if_missing: dict[str | int, object] | None = None) -> None:
        """`value_if_missing`: what stands for arguments that some calls do not have."""
        self.value_if_missing = dict(value_if_missing or {})
        self.calls: list[_Call] = []
        self._names: list[str] = []

    def num_obs(self) -> int:
        """How many calls were kept."""
        return len(self.calls)

    @contextlib.contextmanager
    def __call__(
        self, model: torch.nn.Module, store_n_calls: int = 3, method_name: str = "forward"
    ) -> Iterator[InputObserver]:
        """Inside, up to `store_n_calls` calls of a method are kept."""
        method = getattr(model, method_name)
        parameters = inspect.signature(method).parameters.values()
        self._names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]

        def watched(*args: object, **kwargs: object) -> object:
            if len(self.calls) >= store_n_calls:
                return method(*args, **kwargs)
            given, named = _copied(args), _copied(kwargs)
            out = method(*args, **kwargs)
            self.calls.append(_Call(given, named, pytree.tree_leaves(_copied(out))))
            return out

        own = method_name in vars(model)
        setattr(model, method_name, watched)
        try:
            yield self
        finally:
            if own:
                setattr(model, method_name, method)
            else:
                delattr(model, method_name)

    # ---- what the calls have in common
    def _check(self) -> None:
        if not self.calls:
            raise RuntimeError("no call was kept: call the model inside `with observer(model)`")

    def _arguments(self, call: _Call) -> dict[Key, object]:
        """Arguments of a call by parameter, without those that are None."""
        found: dict[Key, object] = {**dict(enumerate(call.args)), **call.kwargs}
        return {key: value for key, value in found.items() if value is not None}

    def _values(self, key: Key) -> list[object]:
        return [a[key] for a in map(self._arguments, self.calls) if key in a]

    def _keys(self) -> list[Key]:
        """All arguments that some call has, in the order of the method's parameters."""
        keys = {key: None for call in self.calls for key in self._arguments(call)}
        keys.update(dict.fromkeys(self.value_if_missing))
        places = {name: i for i, name in enumerate(self._names)}
        return sorted(keys, key=lambda k: k if isinstance(k, int) else places.get(k, len(places)))

    def infer_dynamic_shapes(
        self, set_batch_dimension_for: set[int | str] | bool | None = None
    ) -> tuple[object, ...] | dict[str, object]:
        """Sizes that differ between calls, as torch.export takes them. Dimension 0 of arguments
        that are named, or of all for True, varies too."""
        self._check()
        batch = set_batch_dimension_for
        found: dict[Key, object] = {}
        for key in self._keys():
            values = self._values(key)
            if key in self.value_if_missing:
                values.append(self.value_if_missing[key])
            always = batch is True or (isinstance(batch, (set, list, tuple)) and key in batch)
            found[key] = self._varying(values, always)
        if all(isinstance(key, int) for key in found):
            return tuple(found[key] for key in sorted(found))
        return {self._names[k] if isinstance(k, int) else k: v for k, v in found.items()}

    def _varying(self, values: Sequence[object], batch: bool) -> object:
        leaves = [pytree.tree_leaves(v) for v in values]
        longest = max(range(len(values)), key=lambda i: len(leaves[i]))
        described = []
        for place, leaf in enumerate(leaves[longest]):
            if not isinstance(leaf, torch.Tensor):
                described.append(None)
                continue
            sizes = [part[place].shape for part in leaves if len(part) > place]
            if any(len(s) != leaf.dim() for s in sizes):
                raise RuntimeError(f"an argument has {sorted({len(s) for s in sizes})} dimensions")
            axes = {d for d in range(leaf.dim()) if len({s[d] for s in sizes}) > 1}
            axes |= {0} if batch and leaf.dim() else set()
            described.append(dict.fromkeys(sorted(axes), torch.export.Dim.DYNAMIC))
        return pytree.tree_unflatten(described, pytree.tree_structure(values[longest]))

    def infer_arguments(
        self,
        index_or_args_or_kwargs: tuple[object, ...] | dict[str, object] | int | None = None,
        flat: bool = False,
        as_args_kwargs: bool = False,
    ) -> object:
        """Arguments to export with: those of the call with the most tensors, or of a given call,
        with empty tensors for what other calls have in addition."""
        self._check()
        chosen = self._chosen(index_or_args_or_kwargs)
        for key in self._keys():
            if key not in chosen:
                chosen[key] = self._missing(key)
        args = tuple(chosen[k] for k in sorted(k for k in chosen if isinstance(k, int)))
        kwargs = {k: chosen[k] for k in self._keys() if isinstance(k, str)}
        if flat:
            return pytree.tree_leaves((args, kwargs))
        if as_args_kwargs:
            return args, kwargs
        if args and kwargs:
            raise RuntimeError(
                "calls have positional and keyword arguments: use as_args_kwargs=True"
            )
        return args or kwargs

    def _chosen(self, wanted: object) -> dict[Key, object]:
        if isinstance(wanted, (tuple, Mapping)):
            pairs = enumerate(wanted) if isinstance(wanted, tuple) else wanted.items()
            return {key: value for key, value in pairs if value is not None}
        if isinstance(wanted, int):
            return self._arguments(self.calls[wanted])
        every = [self._arguments(call) for call in self.calls]
        return dict(max(every, key=lambda a: len(pytree.tree_leaves(a))))

    def _missing(self, key: Key) -> object:
        """What stands for an argument that a call does not have: tensors with a size of 0 where
        sizes vary."""
        if key in self.value_if_missing:
            return self.value_if_missing[key]
        values = self._values(key)
        axes = pytree.tree_leaves(self._varying(values, False), is_leaf=_is_axes)
        leaves, spec = pytree.tree_flatten(values[0])
        made = []
        for leaf, varies in zip(leaves, axes, strict=True):
            if isinstance(leaf, torch.Tensor):
                if not varies:
                    raise RuntimeError(
                        f"no empty tensor can stand for argument {key!r}: none of its sizes "
                        "varies; give one in value_if_missing"
                    )
                sizes = [0 if d == max(varies) else s for d, s in enumerate(leaf.shape)]
                leaf = leaf.new_empty(sizes)
            made.append(leaf)
        return pytree.tree_unflatten(made, spec)

    def check_discrepancies(
        self,
        onnx_program: ONNXProgram,
        atol: float = 1e-4,
        rtol: float = 0.1,
        progress_bar: bool = False,
        initializer: Callable[[str | bytes], onnxruntime.InferenceSession] = new_session,
        skip_none: bool = True,
    ) -> list[dict[str, str | int | float | bool]]:
        """Runs a model on the arguments that were kept and compares with the results. Errors are
        part of the rows that are returned."""
        self._check()
        onnx_program.initialize_inference_session(initializer)
        return [self._compared(i, onnx_program, atol, rtol) for i in range(len(self.calls))]

    def _compared(
        self, index: int, program: ONNXProgram, atol: float, rtol: float
    ) -> dict[str, str | int | float | bool]:
        expected = [value for value in self.calls[index].outputs if value is not None]
        row: dict[str, str | int | float | bool] = {"index": index, "SUCCESS": False}
        try:
            args, kwargs = self.infer_arguments(index, as_args_kwargs=True)
            found = program(*args, **kwargs)
            gaps = [_gap(e, v, atol, rtol) for e, v in zip(expected, found, strict=True)]
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
            return row
        row.update(
            abs=max((g[0] for g in gaps), default=0.0),
            rel=max((g[1] for g in gaps), default=0.0),
            n_outputs=len(found),
            SUCCESS=all(g[2] for g in gaps),
        )
        return row


def _gap(
    expected: object, found: torch.Tensor, atol: float, rtol: float
) -> tuple[float, float, bool]:
    """(largest difference, largest relative one, whether all are within bounds)"""
    wide = torch.as_tensor(expected).double()
    apart = (wide - found.double()).abs()
    if apart.numel() == 0:
        return 0.0, 0.0, True
    relative = (apart / (wide.abs() + 1e-12)).max().item()
    return apart.max().item(), relative, bool((apart <= atol + rtol * wide.abs()).all())
