"""`GradScaler`: keeps float16 gradients out of the underflow range by scaling the loss, and skips
optimizer steps whose gradients overflowed while it looks for the largest scale that does not.
"""

from __future__ import annotations

import collections
import contextlib
import inspect
import warnings
from enum import Enum
from typing import Any

import torch

__all__ = ["GradScaler", "OptState"]

_HINT = (
    "  This may indicate your script did not use scaler.scale(loss or outputs) earlier in the "
    "iteration."
)


class OptState(Enum):
    """Where an optimizer stands between two calls of update()."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _number(value, device, dtype=torch.float32) -> torch.Tensor:
    return torch.full((), value, dtype=dtype, device=device)


class GradScaler:
    """Scales losses, unscales gradients, skips steps with infinities and adapts the scale."""

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not torch.cuda.is_available():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker = None
        self._per_optimizer_states = collections.defaultdict(_refresh_per_optimizer_state)

    # ---- state

    def _state_of(self, optimizer) -> dict[str, OptState | dict[torch.device, torch.Tensor]]:
        return self._per_optimizer_states[id(optimizer)]

    def _check_scale_growth_tracker(self, funcname) -> tuple[torch.Tensor, torch.Tensor]:
        if self._scale is None:
            raise AssertionError(f"Attempted {funcname} but _scale is None." + _HINT)
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {funcname} but _growth_tracker is None." + _HINT)
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = _number(self._init_scale, dev)
        self._growth_tracker = _number(self._init_growth_tracker, dev, torch.int32)

    def _get_scale_async(self):
        return self._scale

    def get_scale(self) -> float:
        """The scale as a float; 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval) -> None:
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        if self._growth_tracker is None:
            return self._init_growth_tracker
        return self._growth_tracker.item()

    def is_enabled(self) -> bool:
        return self._enabled

    # ---- one step

    def scale(self, outputs) -> Any:
        """outputs (a tensor or nested lists and tuples of them) times the scale."""
        if not self._enabled:
            return outputs
        by_device = {}

        def scaled(value):
            if isinstance(value, torch.Tensor):
                if self._scale is None:
                    self._lazy_init_scale_growth_tracker(value.device)
                if value.device not in by_device:
                    by_device[value.device] = self._scale.to(value.device, non_blocking=True)
                return value * by_device[value.device].to(value.dtype)
            if isinstance(value, (list, tuple)):
                entries = [scaled(entry) for entry in value]
                if hasattr(value, "_fields"):
                    return type(value)(*entries)
                return type(value)(entries)
            if hasattr(value, "__iter__") and not isinstance(value, str):
                return map(scaled, value)
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")

        return scaled(outputs)

    def _unscale_grads_(
        self, optimizer, inv_scale, found_inf, allow_fp16
    ) -> dict[torch.device, torch.Tensor]:
        groups = {}
        with torch.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    if not allow_fp16 and param.grad.dtype == torch.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    grad = param.grad
                    if grad.is_sparse:
                        if grad.dtype is torch.float16:
                            grad = param.grad = grad.coalesce()
                        grad = grad._values()
                    groups.setdefault((grad.device, grad.dtype), []).append(grad)
            found = {}
            for (device, _), grads in groups.items():
                if device not in found:
                    found[device] = (
                        found_inf.to(device, copy=True),
                        inv_scale.to(device, non_blocking=True),
                    )
                torch._amp_foreach_non_finite_check_and_unscale_(grads, *found[device])
        return {device: infinite for device, (infinite, _) in found.items()}

    def unscale_(self, optimizer) -> None:
        """Divides the optimizer's gradients by the scale; to clip them before step()."""
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._state_of(optimizer)
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # The reciprocal in double: the scale may be any float.
        self._multiply(optimizer, self._scale.double().reciprocal().float(), allow_fp16=False)
        state["stage"] = OptState.UNSCALED

    def _multiply(self, optimizer, factor, allow_fp16) -> dict[torch.device, torch.Tensor]:
        """Scales an optimizer's gradients; notes and returns where they are not finite."""
        found_inf = _number(0.0, factor.device)
        found = self._unscale_grads_(optimizer, factor, found_inf, allow_fp16)
        self._state_of(optimizer)["found_inf_per_device"] = found
        return found

    def _maybe_opt_step(self, optimizer, optimizer_state, *args, **kwargs):
        if sum(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer, *args, **kwargs) -> float | None:
        """Unscales if that has not been done, then steps unless a gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_of_scaling_optimizer(optimizer, *args, **kwargs)
        with self._stepping(optimizer) as state:
            return self._maybe_opt_step(optimizer, state, *args, **kwargs)

    def _step_of_scaling_optimizer(self, optimizer, *args, **kwargs) -> Any:
        """The step of an optimizer that unscales gradients itself and skips its step where they are
        not finite: it finds both as attributes, or, in the old form, gets the scaler."""
        scale, _ = self._check_scale_growth_tracker("step")
        state = self._state_of(optimizer)
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed "
                "optimizer. An optimizer finds `grad_scale: Tensor` and `found_inf: Tensor` as its "
                "attributes.",
                FutureWarning,
                stacklevel=3,
            )
            found = optimizer.step(*args, grad_scaler=self, **kwargs)
        else:
            if state["stage"] is OptState.READY:
                self._multiply(optimizer, _number(1.0, scale.device), allow_fp16=True)
            flags = [f.to(scale.device) for f in state["found_inf_per_device"].values()]
            optimizer.grad_scale = None if state["stage"] is OptState.UNSCALED else scale
            optimizer.found_inf = sum(flags, _number(0.0, scale.device))
            try:
                found = optimizer.step(*args, **kwargs)
            finally:
                del optimizer.grad_scale, optimizer.found_inf
        state["stage"] = OptState.STEPPED
        return found

    @contextlib.contextmanager
    def _stepping(self, optimizer):
        """In it an optimizer may step: its gradients are unscaled. Where nothing was raised, it may
        not again before update()."""
        self._check_scale_growth_tracker("step")
        state = self._state_of(optimizer)
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        yield state
        state["stage"] = OptState.STEPPED

    def update(self, new_scale=None) -> None:
        """Lowers the scale after a skipped step, raises it after enough good ones, or sets it."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            self._set_scale(new_scale)
        else:
            rule = (self._growth_factor, self._backoff_factor, self._growth_interval)
            torch._amp_update_scale_(scale, tracker, self._infinities(scale.device), *rule)
        self._per_optimizer_states = collections.defaultdict(_refresh_per_optimizer_state)

    def _infinities(self, device) -> torch.Tensor:
        """How many devices, over all optimizers, had gradients that are not finite."""
        states = self._per_optimizer_states.values()
        found = [flag for state in states for flag in state["found_inf_per_device"].values()]
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        first, *others = (flag.to(device=device, non_blocking=True) for flag in found)
        return sum(others, first)

    def _set_scale(self, new_scale) -> None:
        if isinstance(new_scale, (int, float)):
            self._scale.fill_(float(new_scale))
            return
        reason = (
            "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
            "torch.FloatTensor with requires_grad=False."
        )
        if (
            new_scale.device.type != self._device
            or new_scale.numel() != 1
            or new_scale.requires_grad
        ):
            raise AssertionError(reason)
        self._scale.copy_(new_scale)

    # ---- saving

    # The keys of a saved state, and the attributes that hold the values at its beginning.
    _SAVED = {
        "scale": "_init_scale",
        "growth_factor": "_growth_factor",
        "backoff_factor": "_backoff_factor",
        "growth_interval": "_growth_interval",
        "_growth_tracker": "_init_growth_tracker",
    }

    def state_dict(self) -> dict[str, float]:
        if not self._enabled:
            return {}
        now = {"scale": self.get_scale(), "_growth_tracker": self._get_growth_tracker()}
        return {key: now.get(key, getattr(self, name)) for key, name in self._SAVED.items()}

    def load_state_dict(self, state_dict) -> None:
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        for key, name in self._SAVED.items():
            setattr(self, name, state_dict[key])
        for key, tensor in (("scale", self._scale), ("_growth_tracker", self._growth_tracker)):
            if tensor is not None:
                tensor.fill_(state_dict[key])

    def __getstate__(self) -> dict[str, object]:
        if not self._enabled:
            return dict(self.__dict__)
        if self._per_optimizer_states:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, "
                "or at the end after scaler.update()."
            )
        # The tensors are made again where the copy is first used.
        start = {
            "_init_scale": self.get_scale(),
            "_init_growth_tracker": self._get_growth_tracker(),
        }
        return {**self.__dict__, **start, "_scale": None, "_growth_tracker": None}

    def _check_inf_per_device(self, optimizer):
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        return self._multiply(optimizer, _number(1.0, scale.device), allow_fp16=True)

    def _found_inf_per_device(self, optimizer):
        return self._state_of(optimizer)["found_inf_per_device"]
