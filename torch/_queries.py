"""Questions about a tensor in the form of functions that no operator stands for: torch.numel(x) for
x.numel(). Objects with __torch_function__ may take them over."""

from torch.overrides import handle_torch_function, has_torch_function_unary

__all__ = ["get_device", "is_nonzero", "numel"]


def _query(name: str):
    """The function of `input` that calls its method `name`."""

    def function(input):
        if has_torch_function_unary(input):
            return handle_torch_function(function, (input,), input)
        if not hasattr(type(input), "__torch_function__"):
            raise TypeError(
                f"{name}(): argument 'input' (position 1) must be Tensor, not "
                f"{type(input).__name__}"
            )
        return getattr(input, name)()

    function.__name__ = function.__qualname__ = name
    function.__module__ = "torch"
    return function


numel = _query("numel")
numel.__doc__ = "The number of elements."
get_device = _query("get_device")
get_device.__doc__ = "The index of the tensor's device, -1 for the CPU."
is_nonzero = _query("is_nonzero")
is_nonzero.__doc__ = "Whether the one element of a tensor is not zero."
