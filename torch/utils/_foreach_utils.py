"""Groups of tensors that operators on lists can take together."""

from __future__ import annotations


def _get_foreach_kernels_supported_devices():
    """Kinds of devices with kernels for lists of tensors."""
    return ["cuda", "cpu"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Kinds of devices with fused optimizers."""
    return ["cuda", "cpu"]


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """{(device, dtype): (lists, positions)} of lists of equally many tensors, by the first list."""
    groups = {}
    for place, tensor in enumerate(tensorlistlist[0]):
        lists, places = groups.setdefault(
            (tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], [])
        )
        for target, source in zip(lists, tensorlistlist, strict=True):
            if source:
                target.append(source[place])
        if with_indices:
            places.append(place)
    return groups


def _device_has_foreach_support(device) -> bool:
    return device.type in _get_foreach_kernels_supported_devices()


def _has_foreach_support(tensors, device):
    """Whether operators on lists take these tensors."""
    import torch

    plain = (type(None), torch.Tensor, torch.nn.Parameter)
    return _device_has_foreach_support(device) and all(type(t) in plain for t in tensors)
