"""Gradients checked against finite differences.

Everything is compared as real numbers: a complex tensor counts as its real and imaginary parts.
The gradient of a real loss L at z = a + ib is dL/da + i dL/db, so that a backward pass started
with the gradient 1 gives the row of an output's real part in the Jacobian, and one started with i
that of its imaginary part. The slow mode compares whole Jacobians, the fast mode their product
with random vectors from both sides.
"""

from __future__ import annotations

import collections.abc
import warnings

import torch
from torch.autograd._gradcheck_sparse import over_strided

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "gradcheck",
    "gradgradcheck",
]


class GradcheckError(RuntimeError):
    """A gradient is not what finite differences say."""


# ---- tensors as real numbers ------------------------------------------------------------


def _real(tensor) -> torch.Tensor:
    """A flat real copy."""
    tensor = (
        tensor.detach().resolve_conj().resolve_neg() if tensor.is_complex() else tensor.detach()
    )
    flat = torch.view_as_real(tensor.contiguous()) if tensor.is_complex() else tensor
    return flat.reshape(-1).clone()


def _from_real(numbers, like) -> torch.Tensor:
    """A tensor like `like` from its real numbers."""
    if like.is_complex():
        return torch.complex(*numbers.reshape(*like.shape, 2).unbind(-1))
    return numbers.reshape(like.shape)


def _size(tensor) -> int:
    return tensor.numel() * (2 if tensor.is_complex() else 1)


def _differentiable(value) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _as_tuple(value):
    if isinstance(value, tuple):
        return value
    return tuple(value) if isinstance(value, list) else (value,)


def _outputs_of(func, inputs) -> tuple[torch.Tensor, ...]:
    return tuple(o for o in _as_tuple(func(*inputs)) if _differentiable(o))


def _checked_inputs(inputs) -> list[int]:
    """Positions of the inputs whose gradients are checked."""
    return [i for i, t in enumerate(inputs) if isinstance(t, torch.Tensor) and t.requires_grad]


# ---- finite differences -----------------------------------------------------------------


class _Perturbed:
    """Evaluates the function with one input moved."""

    def __init__(self, func, inputs, index, eps) -> None:
        self.func, self.inputs, self.eps = func, list(inputs), eps
        # .data: the moves must not count as writes to what earlier graphs have saved.
        self.tensor = inputs[index].data
        self.start = _real(self.tensor)

    def _move(self, numbers) -> None:
        with torch.no_grad():
            self.tensor.copy_(_from_real(numbers, self.tensor))

    @staticmethod
    def _check_steady(a, b) -> None:
        for what in ("shape", "dtype"):
            if getattr(a, what) != getattr(b, what):
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are "
                    f"perturbed on all elements by eps. Got {getattr(a, what)} and "
                    f"{getattr(b, what)}"
                )

    def difference(self, direction):
        """Central difference of every output, flat and real, along the direction."""
        step = self.eps * direction
        sides = []
        try:
            for sign in (1, -1):
                self._move(self.start + sign * step)
                # With gradients as the caller has them: the function may itself take some.
                sides.append([o.detach().clone() for o in _outputs_of(self.func, self.inputs)])
        finally:
            self._move(self.start)
        for a, b in zip(*sides, strict=False):
            self._check_steady(a, b)
        sides = [[_real(o) for o in side] for side in sides]
        return [(a - b) / (2 * self.eps) for a, b in zip(*sides, strict=False)]


def _numerical(func, inputs, index, outputs, eps) -> list[torch.Tensor]:
    """For each output its Jacobian by one input: numbers of the input x numbers of the output."""
    perturbed = _Perturbed(func, inputs, index, eps)
    n = perturbed.start.numel()
    columns = [torch.zeros(n, _size(o), dtype=_real(o).dtype) for o in outputs]
    for k in range(n):
        direction = torch.zeros_like(perturbed.start)
        direction[k] = 1
        for column, difference in zip(columns, perturbed.difference(direction), strict=False):
            column[k] = difference
    return columns


# ---- backward passes --------------------------------------------------------------------


def _backward(output, inputs, grad) -> tuple[torch.Tensor | None, ...]:
    return torch.autograd.grad(output, inputs, grad, retain_graph=True, allow_unused=True)


def _analytical(output, inputs, grad_dtypes):
    """For each input the Jacobian of one output, from one backward pass for each of its real
    numbers."""
    columns = [torch.zeros(_size(t), _size(output), dtype=_real(t).dtype) for t in inputs]
    if not output.requires_grad:
        return columns
    for k in range(_size(output)):
        unit = torch.zeros(_size(output), dtype=_real(output).dtype)
        unit[k] = 1
        grads = _backward(output, inputs, _from_real(unit, output))
        for i, (grad, tensor) in enumerate(zip(grads, inputs, strict=False)):
            if grad is None:
                continue
            if grad.shape != tensor.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            if grad_dtypes and grad.dtype != tensor.dtype:
                raise GradcheckError("Gradient has dtype mismatch")
            columns[i][:, k] = _real(
                grad if grad.is_complex() == tensor.is_complex() else grad.to(tensor.dtype)
            )
    return columns


def get_numerical_jacobian(fn, inputs, target=None, eps=1e-3, grad_out=1.0):
    """Jacobians of the first output by each input that requires grad, or by those in `target`
    (deprecated). `fn` takes the inputs as one tuple."""
    _warn_private("get_numerical_jacobian", grad_out)
    inputs = _as_tuple(inputs)
    wanted = None if target is None else _as_tuple(target)

    def function(*args):
        return fn(args)

    outputs = _outputs_of(function, inputs)
    chosen = [
        i for i in _checked_inputs(inputs) if wanted is None or any(inputs[i] is t for t in wanted)
    ]
    return [_numerical(function, inputs, i, outputs, eps)[0] for i in chosen]


def _warn_private(name, grad_out) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. It is "
        "deprecated; use torch.func.jacrev or torch.autograd.functional.jacobian",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} takes no other, got {grad_out}")


def get_analytical_jacobian(inputs, output, nondet_tol=0.0, grad_out=1.0):
    """(Jacobians by backward, same bits twice, right size, right dtype) (deprecated)."""
    _warn_private("get_analytical_jacobian", grad_out)
    inputs = tuple(t for t in _as_tuple(inputs) if t.requires_grad)
    first = _analytical(output, inputs, False)
    second = _analytical(output, inputs, False)
    same = all(
        (a - b).abs().max() <= nondet_tol for a, b in zip(first, second, strict=False) if a.numel()
    )
    return first, same, True, True


# ---- the checks -------------------------------------------------------------------------


def _check_arguments(inputs) -> None:
    found = False
    for i, t in enumerate(inputs):
        if not (isinstance(t, torch.Tensor) and t.requires_grad):
            continue
        found = True
        if t.dtype not in (torch.float64, torch.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=4,
            )
        if t.layout is torch.strided and any(
            stride == 0 and size > 1 for stride, size in zip(t.stride(), t.size(), strict=False)
        ):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )


def _mismatch(analytical, numerical, out_index, in_index, mode, note="") -> GradcheckError:
    return GradcheckError(
        f"{note}Jacobian {'computed with forward mode ' if mode == 'forward' else ''}mismatch for "
        f"output {out_index} with respect to input "
        f"{in_index},\nnumerical:{numerical}\nanalytical:{analytical}\n"
    )


def _compare(analytical, numerical, output, places, mode, options) -> None:
    """Compares two Jacobians; those of a complex output part by part."""
    parts = [(analytical, numerical, "")]
    if output.is_complex():
        parts = [
            (
                analytical[:, k::2],
                numerical[:, k::2],
                f"While considering the {part} part of complex outputs only, ",
            )
            for k, part in ((1, "imaginary"), (0, "real"))
        ]
    for a, n, note in parts:
        if not _close(a, n, options["rtol"], options["atol"]):
            raise _mismatch(a, n, *places, mode, note)


def _close(a, b, rtol, atol) -> bool:
    return a.shape == b.shape and torch.allclose(a.to(b.dtype), b, rtol, atol)


def _slow_check(func, inputs, outputs, which, options, forward) -> None:
    tensors = [inputs[i] for i in which]
    numerical = [_numerical(func, inputs, i, outputs, options["eps"]) for i in which]
    if options["backward"]:
        for o, output in enumerate(outputs):
            columns = _analytical(output, tensors, options["grad_dtypes"])
            for k, column in enumerate(columns):
                _compare(column, numerical[k][o], output, (o, which[k]), "backward", options)
            again = _analytical(output, tensors, False)
            for a, b in zip(columns, again, strict=False):
                if a.numel() and (a - b).abs().max() > options["nondet_tol"]:
                    raise GradcheckError(_NOT_REENTRANT.format(options["nondet_tol"]))
    if forward:
        for k, i in enumerate(which):
            columns = [torch.zeros_like(n) for n in numerical[k]]
            for d in range(_size(inputs[i])):
                direction = torch.zeros(_size(inputs[i]), dtype=_real(inputs[i]).dtype)
                direction[d] = 1
                for column, tangent in zip(
                    columns, _forward_tangents(func, inputs, {i: direction}), strict=False
                ):
                    if tangent is not None:
                        column[d] = _real(tangent)
            for o, column in enumerate(columns):
                _compare(column, numerical[k][o], outputs[o], (o, i), "forward", options)


_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
    "times gives different values, although analytical gradient matches numerical gradient. The "
    "tolerance for nondeterminism was {}."
)


def _forward_tangents(func, inputs, directions, zeros=True):
    """Tangents of the outputs for tangents of some inputs, by forward mode. The other inputs have
    tangents of zeros, or none."""
    from torch.autograd import forward_ad

    with forward_ad.dual_level():
        duals = list(inputs)
        for index in _checked_inputs(inputs):
            plain = inputs[index].detach()
            if index in directions:
                tangent = _from_real(directions[index], plain)
                duals[index] = forward_ad.make_dual(plain, tangent)
            else:
                nothing = torch.zeros_like(plain)
                duals[index] = forward_ad.make_dual(plain, nothing) if zeros else plain
        tangents = [forward_ad.unpack_dual(o).tangent for o in _outputs_of(func, duals)]
        return [None if t is None else t.clone() for t in tangents]


def _random(n, like, generator) -> torch.Tensor:
    numbers = torch.rand(n, generator=generator, dtype=torch.float64) + 0.1
    return (numbers / numbers.norm()).to(like.dtype)


def _fast_check(func, inputs, outputs, which, options, forward) -> None:
    generator = torch.Generator().manual_seed(0)
    tensors = [inputs[i] for i in which]
    rights = [_random(_size(t), _real(t), generator) for t in tensors]
    lefts = [_random(_size(o), _real(o), generator) for o in outputs]
    numerical = [
        _Perturbed(func, inputs, i, options["eps"]).difference(right)
        for i, right in zip(which, rights, strict=False)
    ]
    tangents = [
        _forward_tangents(func, inputs, {i: right}) if forward else None
        for i, right in zip(which, rights, strict=True)
    ]
    for o, output in enumerate(outputs):
        for k, i in enumerate(which):
            expected = torch.dot(lefts[o], numerical[k][o].to(lefts[o].dtype))
            # Each of the n*m entries may be off by atol.
            atol = options["atol"] * float(lefts[o].sum()) * float(rights[k].sum())
            if options["backward"]:
                got = _left_right(output, tensors, k, lefts[o], rights[k])
                if not torch.allclose(got.to(expected.dtype), expected, options["rtol"], atol):
                    raise _mismatch(got, expected, o, i, "backward", _FAST_NOTE)
                again = _left_right(output, tensors, k, lefts[o], rights[k])
                if (got - again).abs() > options["nondet_tol"]:
                    raise GradcheckError(_NOT_REENTRANT.format(options["nondet_tol"]))
            if forward:
                tangent = tangents[k][o]
                got = (
                    torch.zeros(())
                    if tangent is None
                    else torch.dot(lefts[o], _real(tangent).to(lefts[o].dtype))
                )
                if not torch.allclose(got.to(expected.dtype), expected, options["rtol"], atol):
                    raise _mismatch(got, expected, o, i, "forward", _FAST_NOTE)


_FAST_NOTE = "While considering the random projections of fast mode: "


def _left_right(output, tensors, k, left, right):
    if not output.requires_grad:
        return torch.zeros((), dtype=right.dtype)
    grad = _backward(output, tensors, _from_real(left, output))[k]
    if grad is None:
        return torch.zeros((), dtype=right.dtype)
    if grad.shape != tensors[k].shape:
        raise GradcheckError("Analytical gradient has incorrect size")
    return torch.dot(_real(grad.to(tensors[k].dtype)), right)


def _check_no_outputs(func, inputs, which, eps) -> None:
    """No output can be differentiated: none may move either."""
    for i in which:
        outputs = tuple(o for o in _as_tuple(func(*inputs)) if isinstance(o, torch.Tensor))
        floats = tuple(o for o in outputs if _differentiable(o))
        for numbers in _numerical(func, inputs, i, floats, eps):
            if numbers.any():
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _check_zero_gradient(outputs, tensors) -> None:
    """Backward must multiply by what it is given: zeros give zeros, of the inputs' kind."""
    for output in outputs:
        if not output.requires_grad:
            continue
        for grad, tensor in zip(
            _backward(output, tensors, torch.zeros_like(output)), tensors, strict=False
        ):
            if grad is None:
                continue
            if grad.layout is not tensor.layout:
                raise GradcheckError(f"grad is incorrect layout: {grad.layout} for {tensor.layout}")
            if not torch.equal(grad, torch.zeros_like(grad)):
                raise GradcheckError("backward not multiplied by grad_output")
            if grad.dtype != tensor.dtype or grad.device != tensor.device:
                raise GradcheckError("grad is incorrect type")
            if grad.size() != tensor.size():
                raise GradcheckError("grad is incorrect size")


class _Undefined(torch.autograd.Function):
    """Passes its inputs on; gradients end here as undefined ones."""

    @staticmethod
    def forward(ctx, *tensors) -> tuple[torch.Tensor, ...]:
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *grads) -> tuple[None, ...]:
        return (None,) * len(grads)


def _check_undefined(func, inputs, outputs, tensors) -> None:
    """Undefined gradients of outputs count as zeros."""
    outputs = tuple(o for o in outputs if o.requires_grad)
    if not outputs:
        return
    passed = _Undefined.apply(*outputs)
    zeros = [torch.zeros_like(o) for o in outputs]
    try:
        grads = torch.autograd.grad(passed, tensors, zeros, allow_unused=True, retain_graph=True)
    except RuntimeError as error:
        warnings.warn(
            "Backwards compatibility: New undefined gradient support checking feature is enabled "
            "by default, but it may break existing callers of this function. If this is true for "
            'you, pass "check_undefined_grad=False"',
            stacklevel=2,
        )
        raise GradcheckError(
            "Expected backward function to handle undefined output grads. Zeros, or undefined "
            "gradients, are what it should give"
        ) from error
    for grad in grads:
        if grad is not None and grad.any():
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                "undefined or zero. Please look at 'Notes about undefined output gradients' in "
                "tools/autograd/derivatives.yaml"
            )


def _same_tangent(a, b):
    """Whether two tangents are equal; None is zeros."""
    if a is None or b is None:
        given = b if a is None else a
        return given is None or not given.any()
    return torch.allclose(a, b)


def _check_undefined_forward(func, inputs, which) -> None:
    """An input without a tangent counts as one whose tangent is zeros."""
    for i in which:
        others = {k: torch.rand_like(_real(inputs[k]).reshape(-1)) for k in which if k != i}
        zeros = _forward_tangents(func, inputs, others)
        if not others:
            same = all(t is None or not t.any() for t in zeros)
        else:
            absent = _forward_tangents(func, inputs, others, zeros=False)
            same = all(_same_tangent(a, b) for a, b in zip(absent, zeros, strict=True))
        if not same:
            raise GradcheckError(
                "Expected all output tangents to be undefined or zero where the tangents of the "
                f"inputs are: input {i} without a tangent and with one of zeros differ"
            )


def _check_batched(outputs, tensors) -> None:
    """Gradients of a batch of output gradients are those of each one."""
    for output in outputs:
        if not output.requires_grad:
            continue
        batch = torch.stack([torch.rand_like(output) for _ in range(2)])
        together = torch.autograd.grad(
            output, tensors, batch, is_grads_batched=True, retain_graph=True, allow_unused=True
        )
        for i, grad in enumerate(batch):
            for got, expected in zip(together, _backward(output, tensors, grad), strict=False):
                if expected is not None and not torch.allclose(got[i], expected):
                    raise GradcheckError(
                        "For batched gradients: the batched gradient differs from the single one"
                    )


def _check_batched_forward(func, inputs, which) -> None:
    """Tangents of a batch of directions are those of each one."""
    from torch._vmap_internals import _vmap

    for i in which:
        directions = torch.stack([torch.rand_like(_real(inputs[i]).reshape(-1)) for _ in range(2)])
        single = [_forward_tangents(func, inputs, {i: d}) for d in directions]
        kept = [k for k, t in enumerate(single[0]) if t is not None]

        def tangents(direction, i=i, kept=kept):
            found = _forward_tangents(func, inputs, {i: direction})
            return tuple(found[k] for k in kept)

        together = _vmap(tangents)(directions) if kept else ()
        for got, k in zip(together, kept, strict=True):
            if not torch.allclose(got, torch.stack([s[k] for s in single])):
                raise GradcheckError(
                    "While computing batched gradients, got: the batched tangent differs from the "
                    "single one"
                )


def _of_recorded_outputs(func, inputs):
    """The function without the outputs that take no part in the graph, where others do: statistics
    that a function returns besides are not differentiable."""
    recorded = [o.requires_grad for o in _outputs_of(func, inputs)]
    if all(recorded) or not any(recorded):
        return func

    def only(*args):
        pairs = zip(_outputs_of(func, args), recorded, strict=True)
        return tuple(output for output, wanted in pairs if wanted)

    return only


def _gradcheck(func, inputs, options, fast_mode) -> None:
    _check_arguments(inputs)
    which = _checked_inputs(inputs)
    func = _of_recorded_outputs(func, inputs)
    outputs = _outputs_of(func, inputs)
    forward = options["forward"]
    if not any(o.requires_grad for o in outputs) and not forward:
        _check_no_outputs(func, inputs, which, options["eps"])
        return
    for i, output in enumerate(outputs):
        if output.layout is not torch.strided:
            raise ValueError(f"Sparse output is not supported at gradcheck yet (output {i})")
    check = _fast_check if fast_mode else _slow_check
    check(func, inputs, outputs, which, options, forward)
    tensors = [inputs[i] for i in which]
    if forward and options["undefined"]:
        _check_undefined_forward(func, inputs, which)
    if options["batched_forward"]:
        _check_batched_forward(func, inputs, which)
    if options["backward"]:
        _check_zero_gradient(outputs, tensors)
        if options["undefined"]:
            _check_undefined(func, inputs, outputs, tensors)
        if options["batched"]:
            _check_batched(outputs, tensors)


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
) -> bool:
    """Whether the gradients of func at the inputs that require grad agree with central differences
    of step eps.

    Raises GradcheckError where they do not, or returns False with raise_exception=False. Inputs
    should be double precision. `fast_mode` compares one random projection of each Jacobian only.
    """
    if not check_forward_ad and not check_backward_ad:
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    inputs = tuple(inputs) if isinstance(inputs, collections.abc.Sequence) else (inputs,)
    options = {
        "eps": eps,
        "atol": atol,
        "rtol": rtol,
        "nondet_tol": nondet_tol,
        "undefined": check_undefined_grad,
        "grad_dtypes": check_grad_dtypes,
        "batched": check_batched_grad,
        "batched_forward": check_batched_forward_grad,
        "forward": check_forward_ad,
        "backward": check_backward_ad,
    }
    func, inputs = over_strided(func, inputs, masked=masked is not False)
    try:
        _gradcheck(func, inputs, options, fast_mode)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """The same check for gradients of gradients: func's backward, as a function of the inputs and
    of the gradients of the outputs (random ones unless given), is itself checked."""
    if not check_fwd_over_rev and not check_rev_over_rev:
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    inputs = tuple(inputs) if isinstance(inputs, collections.abc.Sequence) else (inputs,)
    if grad_outputs is None:
        outputs = _outputs_of(func, inputs)
        grad_outputs = tuple(_random_gradient(o, gen_non_contig_grad_outputs) for o in outputs)
    else:
        grad_outputs = _as_tuple(grad_outputs)
    count = len(grad_outputs)
    differentiable = set(_checked_inputs(inputs))

    def backward(*args):
        # Forward mode gives the inputs without requires_grad.
        args = [
            a if i not in differentiable or a.requires_grad else a.requires_grad_()
            for i, a in enumerate(args)
        ]
        args, grads = args[:-count], args[-count:]
        outputs = _outputs_of(func, args)
        wanted = tuple(args[i] for i in sorted(differentiable))
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=False) if o.requires_grad]
        with torch.enable_grad():
            found = torch.autograd.grad(
                [o for o, _ in pairs],
                wanted,
                [g for _, g in pairs],
                create_graph=True,
                allow_unused=True,
            )
        return tuple(g for g in found if g is not None)

    def recorded(*args):
        # Finite differences run without recording, but a gradient needs it.
        with torch.enable_grad():
            return backward(*args)

    return gradcheck(
        recorded,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        masked=masked,
    )


def _random_gradient(output, spread):
    dtype = output.dtype
    grad = torch.testing.make_tensor(
        output.shape, dtype=dtype, device=output.device, low=-1, high=1
    )
    if spread and grad.dim() > 0:
        wide = torch.empty(*grad.shape[:-1], grad.shape[-1] * 2, dtype=dtype, device=output.device)
        view = wide[..., ::2]
        view.copy_(grad)
        return view.requires_grad_()
    return grad.requires_grad_()
