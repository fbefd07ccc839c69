"""How a module is to be quantized: a maker of observers for its outputs and one for its weight."""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Callable

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


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """The old form of a configuration for dynamic quantization."""

    __slots__ = ()

    def __new__(
        cls, activation: object = torch.nn.Identity, weight: object = torch.nn.Identity
    ) -> QConfigDynamic:
        warnings.warn(
            "QConfigDynamic is going to be deprecated in PyTorch 1.12, please use QConfig instead",
            stacklevel=2,
        )
        if isinstance(weight, torch.nn.Module):
            raise ValueError(
                "QConfigDynamic received observer instance, please pass observer class instead. "
                "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None

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
default_dynamic_qat_qconfig = QConfig(
    fake.default_dynamic_fake_quant, fake.default_weight_fake_quant
)
default_embedding_qat_qconfig = QConfig(
    obs.NoopObserver.with_args(dtype=torch.float32), fake.default_embedding_fake_quant
)
default_embedding_qat_qconfig_4bit = QConfig(
    obs.NoopObserver.with_args(dtype=torch.float32), fake.default_embedding_fake_quant_4bit
)
default_quint8_weight_qconfig = QConfig(obs.HistogramObserver, obs.MinMaxObserver)

# Signed activations, and weights without the lowest level: products fit 16 bits in pairs.
_SIGNED = {"dtype": torch.qint8, "reduce_range": False, "eps": 2**-12}
_SIGNED_QAT = fake.FusedMovingAvgObsFakeQuantize.with_args(
    observer=obs.MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, **_SIGNED
)
default_symmetric_qnnpack_qconfig = QConfig(
    obs.HistogramObserver.with_args(**_SIGNED), obs.weight_observer_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    obs.HistogramObserver.with_args(**_SIGNED),
    obs.per_channel_weight_observer_range_neg_127_to_127,
)
default_symmetric_qnnpack_qat_qconfig = QConfig(
    _SIGNED_QAT, fake.fused_wt_fake_quant_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _SIGNED_QAT, fake.fused_per_channel_wt_fake_quant_range_neg_127_to_127
)

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


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, object]:
    """The default mapping for an engine, as a dictionary."""
    from torch.ao.quantization.qconfig_mapping import get_default_qconfig_mapping

    _deprecated("get_default_qconfig_dict", "get_default_qconfig_mapping")
    return get_default_qconfig_mapping(backend, version).to_dict()


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict[str, object]:
    """The default mapping for training, as a dictionary."""
    from torch.ao.quantization.qconfig_mapping import get_default_qat_qconfig_mapping

    _deprecated("get_default_qat_qconfig_dict", "get_default_qat_qconfig_mapping")
    return get_default_qat_qconfig_mapping(backend, version).to_dict()


def _deprecated(old: str, new: str) -> None:
    warnings.warn(
        f"torch.ao.quantization.{old} is deprecated and will be removed in a future version. "
        f"Please use torch.ao.quantization.{new} instead.",
        FutureWarning,
        stacklevel=3,
    )


def _assert_valid_qconfig(qconfig: QConfig | None, mod: torch.nn.Module) -> None:
    """Refuses weights per channel where the operator has none."""
    if qconfig is None:
        return
    transposed = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)
    if isinstance(mod, transposed) and qconfig.weight is not None:
        kinds = (obs.PerChannelMinMaxObserver, obs.MovingAveragePerChannelMinMaxObserver)
        if isinstance(qconfig.weight(), kinds):
            raise AssertionError(
                "Per channel weight observer is not supported yet for ConvTranspose{n}d."
            )


def _add_module_to_qconfig_obs_ctr(
    qconfig: QConfig | None, module: torch.nn.Module | None
) -> QConfig | None:
    """The configuration whose observers are made on the device of a module."""
    if module is None or qconfig is None or not isinstance(qconfig, tuple):
        return qconfig

    def device_of() -> dict[str, object] | None:
        devices = {t.device for t in [*module.parameters(), *module.buffers()]}
        return {"device": next(iter(devices))} if len(devices) == 1 else None

    def placed(maker: Callable[..., object]) -> Callable[..., object]:
        if not hasattr(maker, "with_callable_args"):
            return maker
        kinds = (obs.UniformQuantizationObserverBase, fake.FakeQuantize)
        made = getattr(getattr(maker, "p", None), "func", maker)
        fixed = fake.FixedQParamsFakeQuantize
        if not (isinstance(made, type) and issubclass(made, kinds)) or issubclass(made, fixed):
            return maker
        return maker.with_callable_args(factory_kwargs=device_of)

    return QConfig(placed(qconfig.activation), placed(qconfig.weight))


def _obs_or_fq_ctr_equals(first: object, second: object) -> bool:
    """Whether two makers make the same."""
    if not (isinstance(first, obs._Maker) and isinstance(second, obs._Maker)):
        return first == second
    if first.p.func is not second.p.func or first.p.args != second.p.args:
        return False
    left, right = dict(first.p.keywords), dict(second.p.keywords)
    # An observer inside a fake quantizer is a maker too.
    if isinstance(left.get("observer"), obs._Maker):
        if not _obs_or_fq_ctr_equals(left.pop("observer"), right.pop("observer", None)):
            return False
    return left == right


def qconfig_equals(q1: QConfig | None, q2: QConfig | None) -> bool:
    """Whether two configurations make the same observers."""
    if q1 is None or q2 is None:
        return q1 is q2
    try:
        return _obs_or_fq_ctr_equals(q1.activation, q2.activation) and _obs_or_fq_ctr_equals(
            q1.weight, q2.weight
        )
    except AttributeError:
        return q1 == q2


def _activation_is_memoryless(qconfig: QConfig) -> bool:
    """Whether the observer of outputs forgets each tensor at the next one."""

    def forgets(watcher: object) -> bool:
        return getattr(watcher, "averaging_constant", None) == 1

    made = qconfig.activation()
    if isinstance(made, fake.FakeQuantizeBase) and hasattr(made, "activation_post_process"):
        return forgets(made.activation_post_process)
    return forgets(made)


def _is_reuse_input_qconfig(qconfig: QConfig | None) -> bool:
    return (
        qconfig is not None
        and isinstance(qconfig.activation(), obs.ReuseInputObserver)
        and isinstance(qconfig.weight(), obs.NoopObserver)
    )
