"""Functional forms of the fused optimizer steps and of gradient scaling: they return what the
in-place operators would have written. With a learning rate that is a tensor, its value is read."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed, define, on_copies

_TAIL = "bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None"
_ADAM = (
    ["grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"],
    "float beta1, float beta2, float weight_decay, float eps, bool amsgrad",
)
# Of each: the lists that change beside the parameters, the list of step counts, settings with the
# learning rate's place marked.
_STEPS = {
    "_fused_adam": (_ADAM[0], "state_steps", f"{{lr}}, {_ADAM[1]}, {_TAIL}"),
    "_fused_adamw": (_ADAM[0], "state_steps", f"{{lr}}, {_ADAM[1]}, {_TAIL}"),
    "_fused_sgd": (
        ["grads", "momentum_buffer_list"],
        "",
        "float weight_decay, float momentum, {lr}, float dampening, bool nesterov, bool maximize, "
        "bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None",
    ),
    "_fused_adagrad": (
        ["grads", "state_sums"],
        "state_steps",
        f"{{lr}}, float lr_decay, float weight_decay, float eps, {_TAIL}",
    ),
}


def _with_number(step: object) -> object:
    def run(*lists: list[Tensor], lr: Tensor, **settings: object) -> None:
        step(*lists, lr=lr.item(), **settings)

    return run


def _into(step: object) -> object:
    """The step on copies of the parameters, which the caller gives room for; the other lists change
    in place."""

    def run(
        self: list[Tensor], *lists: list[Tensor], out: list[Tensor], **settings: object
    ) -> None:
        for target, parameter in zip(out, self, strict=True):
            torch.ops.aten.clone.out(parameter, out=target)
        step(out, *lists, **settings)

    return run


def _define_steps() -> None:
    for name, (changed, counts, settings) in _STEPS.items():
        lists = ["self", *changed]
        arguments = [f"Tensor[] {label}" for label in lists]
        marked = [f"Tensor({'abcde'[i]}!)[] {label}" for i, label in enumerate(lists)]
        if counts:
            arguments.append(f"Tensor[] {counts}")
            marked.append(f"Tensor[] {counts}")
        results = ", ".join(f"Tensor[] {label}_out" for label in lists)
        inplace = getattr(torch.ops.aten, name + "_").default
        by_tensor = settings.format(lr="Tensor lr")
        define(
            f"{name}_.tensor_lr({', '.join(marked)}, *, {by_tensor}) -> ()", _with_number(inplace)
        )
        positions = range(len(lists))
        plain = settings.format(lr="float lr")
        counted = f", Tensor[] {counts}_out" if name == "_fused_adagrad" else ""
        extra = [len(lists)] if counted else []
        define(
            f"{name}({', '.join(arguments)}, *, {plain}) -> ({results}{counted})",
            on_copies(inplace, *positions, *extra),
        )
        define(
            f"{name}.tensor_lr({', '.join(arguments)}, *, {by_tensor}) -> ({results})",
            on_copies(_with_number(inplace), *positions),
        )
        given = ", ".join([arguments[0], *marked[1:]])
        if counted:
            given = given.replace(f"Tensor[] {counts}", f"Tensor(d!)[] {counts}")
        for overload, setting, step in (
            ("out", plain, inplace),
            ("tensor_lr_out", by_tensor, _with_number(inplace)),
        ):
            define(f"{name}.{overload}({given}, *, {setting}, Tensor(a!)[] out) -> ()", _into(step))


_define_steps()


@composed(
    "_amp_update_scale(Tensor self, Tensor growth_tracker, Tensor found_inf, "
    "float scale_growth_factor, float scale_backoff_factor, int growth_interval) "
    "-> (Tensor, Tensor growth_tracker_out)"
)
def _amp_update_scale(self: Tensor, growth_tracker: Tensor, *rest: object) -> object:
    return on_copies(torch.ops.aten._amp_update_scale_, 0, 1)(self, growth_tracker, *rest)


@composed(
    "_amp_foreach_non_finite_check_and_unscale(Tensor[] self, Tensor found_inf, "
    "Tensor inv_scale) -> (Tensor[] self_out, Tensor found_inf_out)"
)
def _amp_unscale(self: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> object:
    inplace = torch.ops.aten._amp_foreach_non_finite_check_and_unscale_
    return on_copies(inplace, 0, 1)(self, found_inf, inv_scale)


@composed(
    "_amp_update_scale.out(Tensor self, Tensor(b!) growth_tracker, Tensor found_inf, "
    "float scale_growth_factor, float scale_backoff_factor, int growth_interval, *, "
    "Tensor(a!) out) -> Tensor(a!)"
)
def _amp_update_scale_out(
    self: Tensor, growth_tracker: Tensor, *rest: object, out: Tensor
) -> Tensor:
    torch.ops.aten.clone.out(self, out=out)
    return torch.ops.aten._amp_update_scale_(out, growth_tracker, *rest)


@composed(
    "_amp_foreach_non_finite_check_and_unscale.out(Tensor[] self, Tensor(b!) found_inf, "
    "Tensor inv_scale, *, Tensor(a!)[] out) -> ()"
)
def _amp_unscale_out(
    self: list[Tensor], found_inf: Tensor, inv_scale: Tensor, *, out: list[Tensor]
) -> None:
    _into(torch.ops.aten._amp_foreach_non_finite_check_and_unscale_)(
        self, found_inf, inv_scale, out=out
    )


@composed(
    "_fused_dropout(Tensor self, float p, Generator? generator=None) -> (Tensor, Tensor)", out="out"
)
def _fused_dropout(
    self: Tensor, p: float, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """`p` is the share that is kept."""
    mask = torch.empty_like(self).bernoulli_(p, generator=generator)
    return self * mask / p, mask.to(torch.uint8)
