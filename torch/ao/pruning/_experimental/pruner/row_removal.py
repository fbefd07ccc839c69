"""Removal of masked rows from a traced model. A row of a layer is a channel of its output; from
there its absence is followed through the operations that keep channels apart (activations, pooling,
flattening, normalisation by channel) to the layers that sum over channels, whose columns go. What a
removed channel would have carried, its bias after the activations, is a constant and joins the bias
of those layers. Where that cannot be done the rows stay."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

Action = Callable[[], None]

_POINTWISE_MODULES = (
    nn.ReLU, nn.ReLU6, nn.RReLU, nn.LeakyReLU, nn.Sigmoid, nn.SiLU, nn.Mish, nn.Tanh, nn.ELU,
    nn.SELU, nn.CELU, nn.GELU, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.LogSigmoid,
    nn.Softplus, nn.Softsign, nn.Softshrink, nn.Hardshrink, nn.Tanhshrink, nn.Threshold,
    nn.Identity,
)  # fmt: skip
_POINTWISE_FUNCTIONS = {
    F.relu, F.relu_, F.relu6, F.leaky_relu, F.leaky_relu_, F.sigmoid, F.silu, F.mish, F.tanh,
    F.elu, F.elu_, F.selu, F.celu, F.gelu, F.hardtanh, F.hardtanh_, F.hardswish, F.hardsigmoid,
    F.logsigmoid, F.softplus, F.softsign, F.softshrink, F.hardshrink, F.tanhshrink, F.threshold,
    torch.relu, torch.sigmoid, torch.tanh,
}  # fmt: skip
_POINTWISE_METHODS = {"relu", "relu_", "sigmoid", "sigmoid_", "tanh", "tanh_"}
_DROPOUTS = (nn.Dropout, nn.Dropout2d, nn.AlphaDropout)
_POOLS = (nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d)
_POOL_FUNCTIONS = {
    F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d, F.adaptive_max_pool2d, torch.max_pool2d,
}  # fmt: skip


@dataclasses.dataclass
class Absence:
    """Channels that are gone: those where `kept` is False would have carried `values`."""

    kept: Tensor
    values: Tensor
    images: bool  # channels are dimension 1 of images, not the last dimension
    flat: bool = False  # they were, before the images were flattened

    def carries_nothing(self) -> bool:
        return not bool(self.values.any())

    def after(self, function: Callable[[Tensor], Tensor]) -> Absence:
        return dataclasses.replace(self, values=function(self.values))


def _is_zero(value: object) -> bool:
    return all(v == 0 for v in value) if isinstance(value, (tuple, list)) else value == 0


def _set(module: nn.Module, name: str, value: Tensor) -> None:
    old = getattr(module, name)
    setattr(module, name, nn.Parameter(value.detach().clone(), requires_grad=old.requires_grad))


class RowRemoval:
    """`masks` has, for each layer, which rows of which of its tensors stay."""

    def __init__(self, model: fx.GraphModule, masks: dict[nn.Module, dict[str, Tensor]]) -> None:
        self.model = model
        self.masks = masks
        self.modules = dict(model.named_modules())

    def run(self) -> None:
        for node in self.model.graph.nodes:
            module = self.modules.get(node.target) if node.op == "call_module" else None
            if module not in self.masks or self._uses(node.target) > 1:
                continue
            with torch.no_grad():
                if isinstance(module, nn.LSTM):
                    self._remove_units(node, module)
                elif isinstance(module, (nn.Linear, nn.Conv2d)):
                    self._remove_rows(node, module)

    def _uses(self, target: str) -> int:
        same = self.modules[target]
        calls = [n for n in self.model.graph.nodes if n.op == "call_module"]
        return sum(self.modules[n.target] is same for n in calls)

    # ---- layers that lose rows
    def _remove_rows(self, node: fx.Node, module: nn.Module) -> None:
        kept = self.masks[module]["weight"]
        if bool(kept.all()) or (isinstance(module, nn.Conv2d) and module.groups != 1):
            return
        bias = module.bias
        values = module.weight.new_zeros(len(kept)) if bias is None else bias
        absence = Absence(kept, values[~kept], isinstance(module, nn.Conv2d))
        actions = self._follow(node, absence)
        if actions is None:
            return
        _set(module, "weight", module.weight[kept])
        if bias is not None:
            _set(module, "bias", bias[kept])
        count = int(kept.sum())
        if isinstance(module, nn.Linear):
            module.out_features = count
        else:
            module.out_channels = count
        for action in actions:
            action()

    def _remove_units(self, node: fx.Node, lstm: nn.LSTM) -> None:
        """Rows of the gates, and the columns by which they are read in the next step and layer. A
        unit is gone where its first gate is."""
        if lstm.bidirectional or lstm.proj_size:
            return
        masks = self.masks[lstm]
        last = masks.get(f"weight_hh_l{lstm.num_layers - 1}")
        if last is None or any(f"weight_hh_l{i}" not in masks for i in range(lstm.num_layers)):
            return
        kept = last.chunk(4)[0]
        absence = Absence(kept, torch.zeros(int((~kept).sum())).to(lstm.weight_hh_l0), False)
        actions = self._follow(node, absence)
        if actions is None:
            return
        below: Tensor | None = None  # units of the layer below
        for layer in range(lstm.num_layers):
            units = masks[f"weight_hh_l{layer}"].chunk(4)[0]
            for kind, columns in (("ih", below), ("hh", units)):
                weight = getattr(lstm, f"weight_{kind}_l{layer}")
                rows = masks.get(f"weight_{kind}_l{layer}", masks[f"weight_hh_l{layer}"])
                weight = weight[rows] if columns is None else weight[rows][:, columns]
                _set(lstm, f"weight_{kind}_l{layer}", weight)
                if lstm.bias:
                    name = f"bias_{kind}_l{layer}"
                    _set(lstm, name, getattr(lstm, name)[rows])
            below = units
        lstm.hidden_size = int(kept.sum())
        for action in actions:
            action()

    # ---- operations that follow
    def _follow(self, node: fx.Node, absence: Absence) -> list[Action] | None:
        """What has to change behind a node; None where it cannot."""
        actions: list[Action] = []
        for user in node.users:
            if user.op != "output" and not user.users:
                continue  # nobody reads it
            more = self._pass(node, user, absence)
            if more is None:
                return None
            actions += more
        return actions

    def _pass(self, source: fx.Node, user: fx.Node, absence: Absence) -> list[Action] | None:
        if user.op == "output":
            return []
        if user.op == "call_module":
            return self._pass_module(user, self.modules[user.target], absence)
        if user.op == "call_function" and user.target is operator.getitem:
            # Of an LSTM's results: the states of all steps. Its last states are not followed.
            whole = user.args[1] == 0 and self._is_recurrent(source)
            return self._follow(user, absence) if whole else None
        first = user.args[0] if user.args else None
        if first is not source or source in user.args[1:] or source in user.kwargs.values():
            return None
        if user.op == "call_function" and user.target in _POINTWISE_FUNCTIONS:
            apply = self._call(user.target, user)
            return self._follow(user, absence.after(apply))
        if user.op == "call_method" and user.target in _POINTWISE_METHODS:
            apply = self._call(getattr(torch.Tensor, user.target), user)
            return self._follow(user, absence.after(apply))
        if user.op == "call_function" and user.target in _POOL_FUNCTIONS:
            rest = dict(user.kwargs)
            padding = rest.get("padding", user.args[3] if len(user.args) > 3 else 0)
            ok = absence.images and (_is_zero(padding) or absence.carries_nothing())
            return self._follow(user, absence) if ok else None
        is_flatten = user.target in (torch.flatten, "flatten")
        if is_flatten and tuple(user.args[1:]) == (1,) and not user.kwargs:
            return self._flatten(user, absence)
        if is_flatten and len(user.args) == 1 and user.kwargs == {"start_dim": 1}:
            return self._flatten(user, absence)
        return None

    def _is_recurrent(self, node: fx.Node) -> bool:
        return node.op == "call_module" and isinstance(self.modules[node.target], nn.LSTM)

    @staticmethod
    def _call(function: Callable[..., Tensor], node: fx.Node) -> Callable[[Tensor], Tensor]:
        return lambda values: function(values.clone(), *node.args[1:], **node.kwargs)

    def _flatten(self, node: fx.Node, absence: Absence) -> list[Action] | None:
        if not absence.images:
            return None
        return self._follow(node, dataclasses.replace(absence, images=False, flat=True))

    def _pass_module(
        self, node: fx.Node, module: nn.Module, absence: Absence
    ) -> list[Action] | None:
        if isinstance(module, nn.Linear):
            return self._columns_of_linear(node, module, absence)
        if isinstance(module, nn.Conv2d):
            ok = absence.images and module.groups == 1
            ok = ok and (_is_zero(module.padding) or absence.carries_nothing())
            return [lambda: self._remove_columns(module, absence)] if ok else None
        if isinstance(module, _POINTWISE_MODULES):
            return self._follow(node, absence.after(lambda values: module(values.clone())))
        if isinstance(module, _DROPOUTS):
            return self._follow(node, absence)
        if isinstance(module, _POOLS):
            plain = _is_zero(getattr(module, "padding", 0)) or isinstance(module, nn.MaxPool2d)
            ok = absence.images and (plain or absence.carries_nothing())
            return self._follow(node, absence) if ok else None
        if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
            return self._flatten(node, absence)
        if isinstance(module, nn.BatchNorm2d) and absence.images:
            return self._batch_norm(node, module, absence)
        if isinstance(module, nn.LayerNorm) and not (absence.images or absence.flat):
            return self._layer_norm(node, module, absence)
        return None

    def _columns_of_linear(
        self, node: fx.Node, module: nn.Linear, absence: Absence
    ) -> list[Action] | None:
        if absence.images:
            return None
        channels = absence.kept.numel()
        times, rest = divmod(module.in_features, channels)
        if rest or (times != 1 and not absence.flat):
            return None
        wide = dataclasses.replace(
            absence,
            kept=absence.kept.repeat_interleave(times),
            values=absence.values.repeat_interleave(times),
        )
        return [lambda: self._remove_columns(module, wide)]

    @staticmethod
    def _remove_columns(module: nn.Module, absence: Absence) -> None:
        weight = module.weight
        if not absence.carries_nothing():
            gone = weight[:, ~absence.kept]
            added = gone.flatten(2).sum(2) if gone.dim() > 2 else gone
            added = added @ absence.values
            if module.bias is None:
                module.bias = nn.Parameter(added)
            else:
                _set(module, "bias", module.bias + added)
        _set(module, "weight", weight[:, absence.kept])
        count = int(absence.kept.sum())
        if isinstance(module, nn.Linear):
            module.in_features = count
        else:
            module.in_channels = count

    def _batch_norm(
        self, node: fx.Node, module: nn.BatchNorm2d, absence: Absence
    ) -> list[Action] | None:
        if not module.track_running_stats or module.training:
            return None
        gone, kept = ~absence.kept, absence.kept

        def normalised(values: Tensor) -> Tensor:
            scaled = (values - module.running_mean[gone]) * torch.rsqrt(
                module.running_var[gone] + module.eps
            )
            return scaled * module.weight[gone] + module.bias[gone] if module.affine else scaled

        def remove() -> None:
            for name in ("weight", "bias") if module.affine else ():
                _set(module, name, getattr(module, name)[kept])
            module.running_mean = module.running_mean[kept]
            module.running_var = module.running_var[kept]
            module.num_features = int(kept.sum())

        more = self._follow(node, absence.after(normalised))
        return None if more is None else [remove, *more]

    def _layer_norm(
        self, node: fx.Node, module: nn.LayerNorm, absence: Absence
    ) -> list[Action] | None:
        """The mean and the variance are then those of the channels that stay."""
        if module.normalized_shape != (absence.kept.numel(),):
            return None

        def remove() -> None:
            for name in ("weight", "bias"):
                if getattr(module, name) is not None:
                    _set(module, name, getattr(module, name)[absence.kept])
            module.normalized_shape = (int(absence.kept.sum()),)

        more = self._follow(node, absence.after(torch.zeros_like))
        return None if more is None else [remove, *more]
