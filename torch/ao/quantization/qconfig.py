"""How a module is to be quantized: a maker of observers for its outputs and one for its weight."""

from __future__ import annotations

from collections import namedtuple

import torch
from torch.ao.quantization import fake_quantize as fake
from torch.ao.quantization import observer as obs


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Makers, not modules: every quantized module gets observers of its own."""

    __slots__ = ()

    def __new__(cls, activation: object, weight: object) -> QConfig:
        if isinstance(activation, torch.nn.Module) or isinstance(weight, torch.nn.Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use "
                "MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


default_qconfig = QConfig(obs.default_observer, obs.default_weight_observer)
default_debug_qconfig = QConfig(obs.default_debug_observer, obs.default_weight_observer)
default_per_channel_qconfig = QConfig(obs.default_observer, obs.default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(obs.default_dynamic_quant_observer, obs.default_weight_observer)
per_channel_dynamic_qconfig = QConfig(
    obs.default_dynamic_quant_observer, obs.default_per_channel_weight_observer
)
float16_dynamic_qconfig = QConfig(
    obs.PlaceholderObserver.with_args(dtype=torch.float16, is_dynamic=True),
    obs.PlaceholderObserver.with_args(dtype=torch.float16),
)
float16_static_qconfig = QConfig(
    obs.PlaceholderObserver.with_args(dtype=torch.float16),
    obs.PlaceholderObserver.with_args(dtype=torch.float16),
)
float_qparams_weight_only_qconfig = QConfig(
    obs.default_placeholder_observer, obs.default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    obs.default_placeholder_observer, obs.default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(fake.default_fake_quant, fake.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(torch.nn.Identity, fake.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(fake.default_fake_quant, torch.nn.Identity)
default_qat_qconfig_v2 = QConfig(
    fake.default_fused_act_fake_quant, fake.default_fused_wt_fake_quant
)
default_reuse_input_qconfig = QConfig(obs.default_reuse_input_observer, obs.NoopObserver)

# Whether the engine needs activations of seven bits.
_REDUCE = {"fbgemm": True, "x86": True, "qnnpack": False, "onednn": False}


def _check_backend(backend: str) -> bool:
    if backend not in _REDUCE:
        raise AssertionError(f"backend: {backend} not supported; one of {sorted(_REDUCE)} is")
    return _REDUCE[backend]


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """For static quantization after training on an engine."""
    if version != 0:
        raise AssertionError(f"Version number: {version} in get_default_qconfig is not supported")
    reduce = _check_backend(backend)
    weight = obs.default_per_channel_weight_observer
    if backend == "qnnpack":
        weight = obs.default_weight_observer
    return QConfig(obs.HistogramObserver.with_args(reduce_range=reduce), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """For training that is aware of quantization."""
    if version not in (0, 1):
        raise AssertionError(f"Version number: {version} in get_default_qat_qconfig is not known")
    reduce = _check_backend(backend)
    maker = fake.FakeQuantize if version == 0 else fake.FusedMovingAvgObsFakeQuantize
    activation = maker.with_args(
        observer=obs.MovingAverageMinMaxObserver, quant_min=0, quant_max=255, reduce_range=reduce
    )
    if backend == "qnnpack":
        fused = fake.default_fused_wt_fake_quant
        weight = fake.default_weight_fake_quant if version == 0 else fused
    elif version == 0:
        weight = fake.default_per_channel_weight_fake_quant
    else:
        weight = fake.default_fused_per_channel_wt_fake_quant
    return QConfig(activation, weight)


def qconfig_equals(q1: QConfig | None, q2: QConfig | None) -> bool:
    """Whether two configurations make the same observers."""
    return repr(q1) == repr(q2)
