"""Questions about a tensor in the form of functions: torch.is_complex(x) for x.is_complex()."""


def _asked(input, name):
    """The tensor; what is none is refused as operators refuse it."""
    if not hasattr(type(input), "__torch_function__"):
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )
    return input


def is_complex(input):
    """Whether the dtype is complex."""
    return _asked(input, "is_complex").is_complex()


def is_floating_point(input):
    """Whether the dtype is a floating point type."""
    return _asked(input, "is_floating_point").is_floating_point()


def is_signed(input):
    """Whether the dtype has negative values."""
    return _asked(input, "is_signed").is_signed()


def is_conj(input):
    """Whether the tensor is a conjugate view that has not been resolved."""
    return _asked(input, "is_conj").is_conj()


def is_neg(input):
    """Whether the tensor is a negative view that has not been resolved."""
    return _asked(input, "is_neg").is_neg()


def is_inference(input):
    """Whether the tensor was made in inference mode."""
    return _asked(input, "is_inference").is_inference()


def numel(input):
    """The number of elements."""
    return _asked(input, "numel").numel()


def get_device(input):
    """The index of the tensor's device, -1 for the CPU."""
    return input.get_device()


def is_nonzero(input):
    """Whether the one element of a tensor is not zero."""
    if _asked(input, "is_nonzero").numel() != 1:
        what = "no values" if input.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(input)
