"""What layers with a rounded weight share: a fake quantizer of the weight, and the ways from and to
the plain layer."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.parametrize import (
    is_parametrized,
    transfer_parametrizations_and_params,
    type_before_parametrizations,
)


def same_settings(made: nn.Module, given: nn.Module) -> None:
    """Gives a new layer the plain attributes of another one: sizes, strides, names of modes."""
    for name, value in given.__dict__.items():
        if not name.startswith("_") or name == "_reversed_padding_repeated_twice":
            made.__dict__[name] = value


def share_parameters(made: nn.Module, given: nn.Module) -> None:
    """Registers the parameters of one layer in another, parametrizations included."""
    if is_parametrized(given):
        for name in list(given.parametrizations.keys()):
            made.register_parameter(name, nn.Parameter(getattr(given, name).detach().clone()))
            transfer_parametrizations_and_params(given, made, name)
    for name, parameter in given._parameters.items():
        made.register_parameter(name, parameter)


def run_bag(
    bag: nn.EmbeddingBag,
    table: Tensor,
    indices: Tensor,
    offsets: Tensor | None,
    weights: Tensor | None,
) -> Tensor:
    """nn.EmbeddingBag with another table in place of its own."""
    names = ("max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse")
    more = ("include_last_offset", "padding_idx")
    settings = {name: getattr(bag, name) for name in (*names, *more)}
    return nn.functional.embedding_bag(
        indices, table, offsets, per_sample_weights=weights, **settings
    )


class Rounded:
    """A layer whose forward uses the weight that its fake quantizer returns."""

    _FLOAT_MODULE: type[nn.Module]

    def watch(self, qconfig: object, device: object = None, dtype: object = None) -> None:
        """Makes the fake quantizer of a configuration."""
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        kwargs = {k: v for k, v in (("device", device), ("dtype", dtype)) if v is not None}
        made = qconfig.weight
        self.weight_fake_quant = made(factory_kwargs=kwargs) if kwargs else made()

    @classmethod
    def check_source(cls, mod: nn.Module) -> None:
        """Refuses a module of another kind, or without a configuration."""
        kind = type_before_parametrizations(mod)
        if kind is not cls._FLOAT_MODULE:
            raise AssertionError(
                f" qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, "
                f"got {kind.__name__}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.qconfig:
            raise AssertionError("Input float module must have a valid qconfig")

    @classmethod
    def bare(cls, given: nn.Module, qconfig: object) -> nn.Module:
        """A layer of this class with the settings and parameters of a plain one."""
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        same_settings(made, given)
        share_parameters(made, given)
        made.watch(qconfig)
        made.train(given.training)
        return made

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The layer that trains in place of a plain one, with its parameters."""
        cls.check_source(mod)
        given = mod[0] if isinstance(mod, nn.Sequential) else mod
        return cls.bare(given, mod.qconfig)

    def plain(self, kind: type[nn.Module]) -> nn.Module:
        """A layer of a plain class with the settings and parameters of this one."""
        made = kind.__new__(kind)
        nn.Module.__init__(made)
        same_settings(made, self)
        made.__dict__.pop("qconfig", None)
        for name in ("weight", "bias"):
            value = getattr(self, name, None)
            made.register_parameter(
                name, None if value is None else nn.Parameter(value.detach().clone())
            )
        made.train(self.training)
        return made

    def to_float(self) -> nn.Module:
        """The plain layer with the parameters that were learned."""
        return self.plain(self._FLOAT_MODULE)
