"""Functions that turn the bytes of a file into a value by the ending of its name. A decoder is
called with (ending, bytes) and returns None where the ending is not its own."""

from __future__ import annotations

import io
import json
import os.path
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.data.datapipes.utils.common import StreamWrapper

__all__ = [
    "Decoder",
    "ImageHandler",
    "MatHandler",
    "audiohandler",
    "basichandlers",
    "extension_extract_fn",
    "handle_extension",
    "imagehandler",
    "mathandler",
    "videohandler",
]

Handler = Callable[[str, Any], Any]

_TEXT = ("txt", "text", "transcript")
_INTEGER = ("cls", "cls2", "class", "count", "index", "inx", "id")
_IMAGE = ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm")
_VIDEO = ("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv")
_AUDIO = ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma")
# What an image becomes: (how, bits, mode), in the words of ImageHandler.
_IMAGE_KINDS = {
    f"{how}{mode}{bits}": (how, mode, bits)
    for how in ("", "torch", "pil")
    for mode in ("l", "rgb", "rgba")
    for bits in (("8", "") if how != "pil" else ("",))
}
_IMAGE_KINDS["pil"] = ("pil", "rgb", "")


def _need(package: str, what: str) -> Any:
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ModuleNotFoundError(
            f"Package `{package}` is required to be installed for {what}."
        ) from error


def basichandlers(extension: str, data: bytes) -> Any:
    """Texts, integers, JSON, pickles and tensors."""
    if extension in _TEXT:
        return data.decode("utf-8")
    if extension in _INTEGER:
        try:
            return int(data)
        except ValueError:
            return None
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    if extension == "pt":
        return torch.load(io.BytesIO(data))
    return None


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Handler:
    """A decoder that calls `f` for any of the endings, separated by spaces."""
    wanted = [word.split(".") for word in extensions.lower().split()]

    def decoder(extension: str, data: Any) -> Any:
        parts = extension.lower().split(".")
        return f(data) if any(parts[-len(word) :] == word for word in wanted) else None

    return decoder


class ImageHandler:
    """Decodes images: "l", "rgb", "rgba" as arrays of floats, with 8 bytes of integers, with
    "torch" before tensors of (channels, height, width), with "pil" images of PIL."""

    def __init__(self, imagespec: str) -> None:
        if imagespec.lower() not in _IMAGE_KINDS:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension.lower() not in _IMAGE:
            return None
        numpy = _need("numpy", "image handlers")
        image_module = _need("PIL.Image", "image handlers")
        how, mode, bits = _IMAGE_KINDS[self.imagespec]
        with io.BytesIO(data) as stream:
            image = image_module.open(stream).convert(mode.upper())
            image.load()
        if how == "pil":
            return image
        array = numpy.asarray(image)
        if bits != "8":
            array = array.astype("f") / 255.0
        if how != "torch":
            return array
        array = array[:, :, None] if array.ndim == 2 else array
        return torch.tensor(numpy.ascontiguousarray(array.transpose(2, 0, 1)))


def imagehandler(imagespec: str) -> ImageHandler:
    """A decoder of images."""
    return ImageHandler(imagespec)


def videohandler(extension: str, data: bytes) -> Any:
    """Decodes videos with torchvision."""
    if extension not in _VIDEO:
        return None
    import tempfile

    video = _need("torchvision.io", "video handlers")
    with tempfile.NamedTemporaryFile(suffix="." + extension) as file:
        file.write(data)
        file.flush()
        return video.read_video(file.name)


def audiohandler(extension: str, data: bytes) -> Any:
    """Decodes sound with torchaudio."""
    if extension not in _AUDIO:
        return None
    return _need("torchaudio", "audio handlers").load(io.BytesIO(data))


class MatHandler:
    """Decodes files of MATLAB with SciPy."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        self._load = _need("scipy.io", "mat handlers").loadmat
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension != "mat":
            return None
        return self._load(io.BytesIO(data), **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """A decoder of MATLAB's files."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The ending of a name, without the dot."""
    return os.path.splitext(pathname)[1].lstrip(".")


class Decoder:
    """Decodes values by their names with the first handler that knows them. Streams are given to
    each handler as they are, and closed."""

    def __init__(
        self, *handler: Handler, key_fn: Callable[[str], str] = extension_extract_fn
    ) -> None:
        self.handlers = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler: Handler) -> None:
        """Handlers that are tried after those there are."""
        self.handlers.extend(handler)

    @staticmethod
    def _is_stream_handle(data: Any) -> bool:
        inner = data.file_obj if isinstance(data, StreamWrapper) else data
        return isinstance(inner, (io.BufferedReader, io.RawIOBase, io.BytesIO))

    def decode1(self, key: str, data: Any) -> Any:
        """The value of one entry; unchanged where no handler knows it."""
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Sequence[tuple[str, Any]] | dict[str, Any]) -> dict[str, Any]:
        """The values of (name, data) pairs by name."""
        result = {}
        for name, value in data.items() if isinstance(data, dict) else data:
            if self._is_stream_handle(value):
                stream, value = value, value.read()
                stream.close()
            result[name] = self.decode1(self.key_fn(name), value) if name[:1] != "_" else value
        return result

    def __call__(self, data: Sequence[tuple[str, Any]] | dict[str, Any]) -> dict[str, Any]:
        return self.decode(data)
