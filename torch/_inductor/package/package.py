"""Packages of compiled models (`.pt2`), and models loaded from them."""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

__all__ = ["AOTICompiledModel", "load_package", "package_aoti"]

File = str | os.PathLike | io.IOBase
_FOLDER = "data/aotinductor"
_ALIGNMENT = 64
_PADDING = b"FB"  # the extra field that moves data to a multiple of the alignment


# ---- writing --------------------------------------------------------------------------------


class _Archive:
    """A zip file whose records begin on multiples of 64 bytes, so that weights are used where they
    lie. Equal contents give equal files."""

    def __init__(self, file: str | io.IOBase, top: str) -> None:
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self.top = top

    def add(self, name: str, parts: Sequence[bytes]) -> None:
        """A record."""
        info = zipfile.ZipInfo(f"{self.top}/{name}")
        large = sum(map(len, parts)) >= (1 << 31) - 1
        begin = self.zip.fp.tell() + 30 + len(info.filename.encode()) + (20 if large else 0) + 4
        padding = -begin % _ALIGNMENT
        info.extra = _PADDING + padding.to_bytes(2, "little") + b"Z" * padding
        with self.zip.open(info, "w", force_zip64=large) as out:
            for part in parts:
                out.write(part)


def _models(files: object) -> dict[str, list[str]]:
    """{name: paths} of what package_aoti is given."""
    if isinstance(files, Mapping):
        return {
            name: [value] if isinstance(value, str) else list(value)
            for name, value in files.items()
        }
    if isinstance(files, str):
        return {"model": [files]}
    if isinstance(files, Sequence):
        return {"model": list(files)}
    raise TypeError(f"package_aoti takes paths or a dictionary of them, got {type(files)}")


def package_aoti(archive_file: File, aoti_files: str | list[str] | dict[str, list[str]]) -> File:
    """Writes files that torch._inductor.aot_compile made (with `aot_inductor.package`) into an
    archive, one folder for each model."""
    if isinstance(archive_file, (str, os.PathLike)):
        archive_file = os.fspath(archive_file)
        if not archive_file.endswith(".pt2"):
            raise RuntimeError(f"Expect archive file to be a file ending in .pt2, got "
                               f"{archive_file}")  # fmt: skip
    contents: dict[str, dict[str, str]] = {}
    for name, paths in _models(aoti_files).items():
        if not name or "/" in name or name.startswith("."):
            raise ValueError(f"{name!r} is no name of a model")
        contents[name] = {os.path.basename(p): p for p in paths}
        if "program.bin" not in contents[name]:
            raise RuntimeError(f"the files of the model {name!r} hold no compiled program")
    top = "archive"
    if isinstance(archive_file, str):
        top = os.path.splitext(os.path.basename(archive_file))[0] or top
    archive = _Archive(archive_file, top)
    with archive.zip:
        archive.add("archive_format", [b"pt2"])
        archive.add("archive_version", [b"0"])
        archive.add("byteorder", [b"little"])
        for name, files in contents.items():
            for file, path in files.items():
                with open(path, "rb") as held:
                    archive.add(f"{_FOLDER}/{name}/{file}", [held.read()])
    if not isinstance(archive_file, str) and archive_file.seekable():
        archive_file.seek(0)
    return archive_file


# ---- running --------------------------------------------------------------------------------


class AOTICompiledModel:
    """A compiled model as a function of the arguments that it was exported with."""

    def __init__(self, loader: torch._C._aoti.AOTIModelPackageLoader) -> None:
        self.loader = loader
        metadata = loader.get_metadata()
        in_spec, out_spec = loader.get_call_spec()
        self._in_spec = pytree.treespec_loads(in_spec)
        self._out_spec = pytree.treespec_loads(out_spec)
        leaves = metadata.get("AOTI_INPUT_LEAVES", "")
        self._leaves = [int(i) for i in leaves.split(",")] if leaves else []
        self._numbers = [i for i, k in enumerate(loader.input_kinds()) if k != "tensor"]
        kinds = metadata.get("AOTI_OUTPUT_KINDS", "")
        self._outputs = [(i, k) for i, k in enumerate(kinds) if k in "ifb"]

    def __call__(self, *args: object, **kwargs: object) -> object:
        from torch.export._tree_utils import reorder_kwargs

        if kwargs or self._in_spec.children_specs[1].num_children:
            kwargs = reorder_kwargs(kwargs, self._in_spec)
        flat, given = pytree.tree_flatten((args, kwargs))
        if given != self._in_spec and len(flat) != self._in_spec.num_leaves:
            raise ValueError(
                f"the compiled model takes arguments like\n{self._in_spec}\nand got\n{given}"
            )
        inputs = [flat[i] for i in self._leaves]
        for i in self._numbers:
            inputs[i] = torch.as_tensor(inputs[i])
        found = self.loader.run(inputs)
        for i, kind in self._outputs:
            value = found[i].item()
            found[i] = bool(value) if kind == "b" else value
        return pytree.tree_unflatten(found, self._out_spec)

    def get_metadata(self) -> dict[str, str]:
        """What `aot_inductor.metadata` said when the model was compiled, and what it was made
        by."""
        return self.loader.get_metadata()

    def load_constants(
        self,
        constants_map: dict[str, Tensor],
        *,
        check_full_update: bool,
        user_managed: bool = False,
    ) -> None:
        """Replaces parameters and buffers by their names in the module. With `user_managed` the
        model uses the tensors as they are, and later writes to them are seen."""
        self.loader.load_constants(constants_map, False, check_full_update, user_managed)

    def get_constant_fqns(self) -> list[str]:
        """The names of parameters, buffers and other tensors of the model."""
        return self.loader.get_constant_fqns()

    def __deepcopy__(self, memo: dict | None) -> AOTICompiledModel:
        return self  # it has nothing that could be changed


def load_package(
    path: File,
    model_name: str = "model",
    run_single_threaded: bool = False,
    num_runners: int = 1,
    device_index: int = -1,
) -> AOTICompiledModel:
    """A model of a package. Reading it runs nothing; a file that is damaged raises RuntimeError."""
    if isinstance(path, (str, os.PathLike)):
        loader = torch._C._aoti.AOTIModelPackageLoader(
            os.fspath(path), model_name, run_single_threaded, num_runners, device_index
        )
        return AOTICompiledModel(loader)
    with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
        path.seek(0)
        file.write(path.read())
        file.flush()
        return load_package(file.name, model_name, run_single_threaded, num_runners, device_index)
