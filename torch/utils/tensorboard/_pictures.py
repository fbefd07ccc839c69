"""Tensors as pictures: any layout as rows of pixels, and those as a PNG file."""

from __future__ import annotations

import struct
import zlib

import torch

__all__ = ["as_pixels", "png"]


def png(pixels) -> bytes:
    """A (height, width, channels) uint8 tensor as a PNG file."""
    height, width, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}.get(channels)
    if kind is None:
        raise ValueError(f"an image has 1, 3 or 4 channels, not {channels}")
    rows = bytes(pixels.contiguous().view(-1).tolist())
    stride = width * channels
    raw = b"".join(b"\0" + rows[y * stride : (y + 1) * stride] for y in range(height))

    def part(name, data) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", head)
        + part(b"IDAT", zlib.compress(raw))
        + part(b"IEND", b"")
    )


def as_pixels(image, dataformats) -> torch.Tensor:
    """Any layout of an image as (height, width, channels) of uint8."""
    image = torch.as_tensor(image).detach().cpu()
    if image.dim() != len(dataformats):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: "
            f"{tuple(image.shape)}, input_format: {dataformats}"
        )
    names = dataformats.upper()
    if names == "HW":
        image, names = image.unsqueeze(-1), "HWC"
    image = image.permute([names.index(n) for n in "HWC"])
    if image.is_floating_point():
        image = (image * 255).clamp(0, 255)
    return image.to(torch.uint8)
