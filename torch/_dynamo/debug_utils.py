"""What the tools that reduce failing programs share: where files go, inputs and modules as text,
and comparing a compiled program with the original and with the same in double precision."""

from __future__ import annotations

import copy
import functools
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch._dynamo import config
from torch._dynamo.utils import clone_inputs, same
from torch.utils import _pytree as pytree
from torch.utils._content_store import hash_storage

__all__ = [
    "AccuracyError",
    "InputReader",
    "InputWriter",
    "NNModuleToString",
    "aot_graph_input_parser",
    "backend_accuracy_fails",
    "cast_to_fp64",
    "generate_config_string",
    "get_debug_dir",
    "get_minifier_repro_path",
    "minifier_dir",
    "run_fwd_maybe_bwd",
    "same_two_models",
]

log = logging.getLogger(__name__)


class AccuracyError(Exception):
    """Compiled code computed something else."""


# ---- folders and files ----------------------------------------------------------------------


@functools.lru_cache(None)
def _run_name(root: str) -> str:
    stamp = time.strftime("run_%Y_%m_%d_%H_%M_%S", time.localtime())
    return os.path.join(root, f"{stamp}_{time.time_ns() // 1000 % 1_000_000:06d}-pid_{os.getpid()}")


def get_debug_dir() -> str:
    """The folder of this run below config.debug_dir_root (TORCH_COMPILE_DEBUG_DIR moves it)."""
    root = config.debug_dir_root
    moved = os.environ.get("TORCH_COMPILE_DEBUG_DIR")
    if moved and config._config["debug_dir_root"].is_default():
        root = os.path.join(moved, "torch_compile_debug")
    return _run_name(root)


def run_folder(name: str) -> str:
    """A folder of this run, made if need be."""
    path = os.path.join(get_debug_dir(), name)
    os.makedirs(path, exist_ok=True)
    return path


def minifier_dir() -> str:
    """Where launchers are written; a temporary folder if that cannot be."""
    path = os.path.join(get_debug_dir(), "minifier")
    try:
        os.makedirs(path, exist_ok=True)
    except OSError:
        path = os.path.join(tempfile.gettempdir(), "torch_minifier")
        os.makedirs(path, exist_ok=True)
    return path


def get_minifier_repro_path() -> str:
    """The program that reduces the failing one."""
    return os.path.join(minifier_dir(), "minifier_launcher.py")


def helper_for_dump_minify(contents: str) -> None:
    """Writes the program that reduces the failing one, and says where."""
    path = get_minifier_repro_path()
    log.warning("Writing minified repro to:\n%s", path)
    with open(path, "w") as file:
        file.write(contents)


def generate_config_string(*, stable_output: bool = False) -> str:
    """Assignments that make the settings of a new process those of this one."""
    import torch._functorch.config
    import torch._inductor.config

    if stable_output:
        return "# config omitted due to stable_output=True"
    modules = (config, torch._inductor.config, torch._functorch.config)
    lines = [
        f"import {name}"
        for name in (
            "torch._dynamo.config",
            "torch._inductor.config",
            "torch._functorch.config",
            "torch.fx.experimental._config",
        )
    ]
    for module in modules:
        text = module.codegen_config() if hasattr(module, "codegen_config") else ""
        lines += [line for line in text.splitlines() if "<" not in line and "repro_" not in line]
    return "\n".join(lines)


IMPORTS = """\
import torch
from torch import tensor, device
import torch.fx as fx
from torch._dynamo.testing import rand_strided
from math import inf, nan
"""


# ---- modules as text ------------------------------------------------------------------------


class NNModuleToString:
    """A captured graph as the text of a class. Submodules appear by their representation, so they
    must be ones of torch.nn; other modules make it refuse."""

    safe_reprs = tuple(
        getattr(torch.nn, name)
        for name in (
            "Linear Conv1d Conv2d Conv3d BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm Dropout "
            "Softmax ReLU GELU Identity MaxPool2d Embedding Tanh ConvTranspose1d GLU LSTM Flatten "
            "AdaptiveAvgPool2d Sigmoid SiLU Hardtanh LeakyReLU"
        ).split()
    )

    @staticmethod
    def can_convert_to_string(gm: fx.GraphModule) -> bool:
        """Whether all submodules can be made again from their representation."""
        unsafe = {
            module for _, module in gm.named_children()
            if type(module) not in NNModuleToString.safe_reprs
        }  # fmt: skip
        if unsafe:
            log.warning(
                "We have not tested reprs of some modules - %s. Please double check the test.",
                unsafe,
            )
        return True

    @staticmethod
    def convert(gm: fx.GraphModule) -> str:
        """class Repro(torch.nn.Module): ..."""
        from torch.nn.modules.module import _addindent

        lines = ["super().__init__()"]
        for name, module in gm.named_children():
            where = next(module.parameters(), None)
            on_cuda = where is not None and where.is_cuda
            lines.append(f"self.{name} = {module!r}{'.cuda()' if on_cuda else ''}")
        for name, value in gm._buffers.items():
            if value is not None:
                lines.append(f"self.register_buffer({name!r}, {_tensor_text(value)})")
        for name, value in gm._parameters.items():
            if value is not None:
                lines.append(f"self.{name} = torch.nn.Parameter({_tensor_text(value)})")
        for name, value in vars(gm).items():
            if isinstance(value, torch.Tensor):
                lines.append(f"self.{name} = {_tensor_text(value)}")
        body = "\n        ".join(lines)
        head = (
            "from torch.nn import *\nclass Repro(torch.nn.Module):\n"
            f"    def __init__(self) -> None:\n        {body}\n\n"
        )
        return head + "    " + _addindent(gm.code.strip(), 4) + "\n"


def _tensor_text(value: torch.Tensor) -> str:
    device = "" if value.device.type == "cpu" else f', device="{value.device.type}"'
    has_data = getattr(value, "fake_mode", None) is None and value.device.type == "cpu"
    if value.numel() <= 100 and has_data:
        text = f"torch.tensor({value.detach().tolist()!r}, dtype={value.dtype})"
        return text if value.numel() else f"torch.empty({list(value.shape)}, dtype={value.dtype})"
    if value.is_floating_point():
        return f"torch.randn({list(value.shape)}, dtype={value.dtype}{device})"
    return f"torch.randint(1, size={list(value.shape)}, dtype={value.dtype}{device})"


# ---- inputs as text -------------------------------------------------------------------------


class InputReader:
    """Makes the inputs that the load_args function of a written program describes. Without a
    folder of saved values they are random."""

    def __init__(self, save_dir: str | None = None, *, pbar: object = None) -> None:
        self.save_dir = save_dir
        self.args: list[object] = []
        if save_dir is not None and not os.path.isdir(save_dir):
            log.warning("no folder %s: inputs are random numbers", save_dir)
            self.save_dir = None

    def storage(
        self,
        storage_hash: str | None,
        nbytes: int,
        *,
        device: object = None,
        dtype_hint: torch.dtype | None = None,
    ) -> torch.UntypedStorage:
        """Memory with the saved bytes, or with random numbers of a dtype."""
        device = torch.device(device or "cpu")
        dtype = dtype_hint or torch.float32
        if self.save_dir is not None and storage_hash is not None:
            path = os.path.join(self.save_dir, "storages", storage_hash)
            if os.path.exists(path):
                loaded = torch.load(path, weights_only=True)
                return loaded.to(device).untyped_storage()
        from torch._dynamo.testing import rand_strided

        count = -(-nbytes // dtype.itemsize)
        return rand_strided((count,), (1,), dtype, device).untyped_storage()

    def tensor(
        self,
        storage: torch.UntypedStorage,
        shape: Sequence[int],
        stride: Sequence[int] | None = None,
        *,
        storage_offset: int = 0,
        dtype: torch.dtype = torch.float32,
        requires_grad: bool = False,
        is_leaf: bool = True,
        **metadata: object,
    ) -> torch.Tensor:
        """The next input: a tensor over that memory."""
        strides = _dense_strides(shape) if stride is None else stride
        made = torch.empty(0, dtype=dtype, device=storage.device)
        made.set_(storage, storage_offset, tuple(shape), tuple(strides))
        made.requires_grad_(requires_grad)
        if not is_leaf:
            with torch.enable_grad():
                made = made.clone(memory_format=torch.preserve_format)
        self.args.append(made)
        return made

    def symint(self, val: object) -> object:
        """The next input: a number."""
        self.args.append(val)
        return val

    const = symint

    def unsupported(self, name: str) -> None:
        """The next input could not be written."""
        self.args.append(None)


def _dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class InputWriter:
    """Writes the load_args function of a program: one line per input."""

    def __init__(self, save_dir: str | None, *, stable_hash: bool = False) -> None:
        self.save_dir = save_dir
        self._lines: list[str] = []
        self._storages: dict[int, str] = {}

    def lines(self) -> list[str]:
        """The function."""
        body = [f"    {line}" for line in self._lines] or ["    pass"]
        return ["def load_args(reader):", *body, "load_args._version = 0"]

    def storage(
        self,
        untyped_storage: torch.UntypedStorage,
        *,
        device_hint: object = None,
        dtype_hint: torch.dtype | None = None,
    ) -> str:
        """The name of some memory; its bytes are saved where there is a folder."""
        known = self._storages.get(untyped_storage._cdata)
        if known is not None:
            return known
        name = self._storages[untyped_storage._cdata] = f"buf{len(self._storages)}"
        options = ""
        device = torch.device(device_hint or untyped_storage.device)
        if device.type not in ("cpu", "meta"):
            options += f", device={device!r}"
        if dtype_hint not in (None, torch.float32):
            options += f", dtype_hint={dtype_hint!r}"
        nbytes = _hint(untyped_storage.nbytes())
        saved = self._save(untyped_storage)
        self._lines.append(f"{name} = reader.storage({saved!r}, {nbytes}{options})")
        return name

    def _save(self, storage: torch.UntypedStorage) -> str | None:
        if self.save_dir is None or storage.device.type == "meta":
            return None
        folder = os.path.join(self.save_dir, "storages")
        os.makedirs(folder, exist_ok=True)
        digest = hash_storage(storage)
        whole = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
        torch.save(whole.cpu().clone(), os.path.join(folder, digest))
        return digest

    def tensor(self, name: str, t: torch.Tensor) -> None:
        """The line of a tensor."""
        shape = tuple(map(_hint, t.shape))
        strides = tuple(map(_hint, t.stride()))
        is_fake = getattr(t, "fake_mode", None) is not None
        if is_fake:
            where = self._fake_storage(t)
        else:
            where = self.storage(t.untyped_storage(), device_hint=t.device, dtype_hint=t.dtype)
        parts = [where, str(shape)]
        if strides != _dense_strides(shape):
            parts.append(str(strides))
        offset = _hint(t.storage_offset())
        if offset:
            parts.append(f"storage_offset={offset}")
        if t.dtype != torch.float32:
            parts.append(f"dtype={t.dtype}")
        if t.requires_grad:
            parts.append("requires_grad=True")
        if not t.is_leaf:
            parts.append("is_leaf=False")
        self._lines.append(f"reader.tensor({', '.join(parts)})  # {name}")

    def _fake_storage(self, t: torch.Tensor) -> str:
        name = f"buf{len(self._storages)}"
        self._storages[-len(self._storages) - 1] = name
        reach = (
            _hint(t.storage_offset())
            + 1
            + sum((_hint(n) - 1) * _hint(s) for n, s in zip(t.shape, t.stride(), strict=True))
        )
        options = "" if t.device.type == "cpu" else f", device={t.device!r}"
        if t.dtype != torch.float32:
            options += f", dtype_hint={t.dtype!r}"
        nbytes = max(reach, 0) * t.element_size()
        self._lines.append(f"{name} = reader.storage(None, {nbytes}{options})")
        return name

    def symint(self, name: str, val: object) -> None:
        """The line of a number."""
        self._lines.append(f"reader.symint({_hint(val)!r})  # {name}")

    def const(self, name: str) -> None:
        """The line of something that is no tensor."""
        self._lines.append(f"reader.const({name!r})  # {name}, filtered out during serialization")

    def unsupported(self, name: str, arg: object) -> None:
        """The line of something that cannot be written."""
        self._lines.append(f"# {name} was unsupported type for dumping: {type(arg)}")
        self._lines.append(f"reader.unsupported({name!r})")

    def any(self, name: str, value: object) -> None:
        """The line of an input."""
        if isinstance(value, torch.Tensor):
            self.tensor(name, value)
        elif isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat)) or value is None:
            self.symint(name, value)
        else:
            self.unsupported(name, value)


def _hint(value: object) -> object:
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value.node.hint
    return value


# ---- comparison -----------------------------------------------------------------------------


def cast_dtype_args_to_fp64(model: torch.nn.Module) -> torch.nn.Module:
    """Operators that are told a narrower floating dtype are told float64."""
    if not isinstance(model, fx.GraphModule):
        return model
    narrow = (torch.float32, torch.float16, torch.bfloat16)
    for node in model.graph.nodes:
        if node.op != "call_function":
            continue
        node.args = tuple(
            torch.float64 if isinstance(a, torch.dtype) and a in narrow else a for a in node.args
        )
        if node.kwargs.get("dtype") in narrow:
            node.kwargs = {**node.kwargs, "dtype": torch.float64}
    model.graph.lint()
    model.recompile()
    return model


def cast_to(
    dtype: torch.dtype, model: torch.nn.Module, inputs: Sequence[object]
) -> tuple[torch.nn.Module, Sequence[object]]:
    """A model and inputs whose floating tensors have another dtype."""
    if dtype == torch.float64:
        model = cast_dtype_args_to_fp64(model)

    def cast(x: object) -> object:
        floating = isinstance(x, torch.Tensor) and x.is_floating_point()
        return x.to(dtype) if floating else x

    return model.to(dtype), pytree.tree_map(cast, inputs)


def cast_to_fp64(
    model: torch.nn.Module, inputs: Sequence[object]
) -> tuple[torch.nn.Module, Sequence[object]]:
    """A model and inputs in double precision."""
    return cast_to(torch.float64, model, inputs)


def run_fwd_maybe_bwd(
    gm: Callable, args: Sequence[object], only_fwd: bool = False, disable_clone: bool = False
) -> object:
    """Runs a graph, and its derivative where the results have one."""
    from torch._dynamo.testing import (
        collect_results,
        reduce_to_scalar_loss,
        requires_bwd_pass,
    )

    copied = args if disable_clone else clone_inputs(args)
    if hasattr(gm, "zero_grad"):
        gm.zero_grad(True)
    out = gm(list(copied)) if getattr(gm, "_boxed_call", False) else gm(*copied)
    if only_fwd or not requires_bwd_pass(out):
        return out
    loss = reduce_to_scalar_loss(out)
    loss.backward()
    return collect_results(gm, out, None, copied)


def same_two_models(
    gm: Callable,
    opt_gm: Callable,
    example_inputs: Sequence[object],
    only_fwd: bool = False,
    *,
    require_fp64: bool = False,
    ignore_non_fp: bool = False,
) -> bool:
    """Whether two forms of a graph compute the same: within config.repro_tolerance, or as near to
    the result in double precision as the first one is."""
    reference = run_fwd_maybe_bwd(gm, example_inputs, only_fwd)
    exact = None
    if config.same_two_models_use_fp64:
        try:
            model, inputs = cast_to_fp64(copy.deepcopy(gm), clone_inputs(example_inputs))
            exact = run_fwd_maybe_bwd(model, inputs, only_fwd)
        except Exception as error:
            if require_fp64:
                raise RuntimeError(
                    "Could not generate fp64 outputs; if this is intended, use --strict-accuracy"
                ) from error
            log.warning("Could not generate fp64 outputs: %s", error)
    try:
        found = run_fwd_maybe_bwd(opt_gm, example_inputs, only_fwd)
    except Exception:
        log.exception(
            "While minifying the program in accuracy minification mode, ran into a runtime "
            "exception which is likely an unrelated issue. Skipping this graph."
        )
        return True
    return same(
        reference,
        found,
        exact,
        tol=config.repro_tolerance,
        equal_nan=True,
        ignore_non_fp=ignore_non_fp,
        log_error=log.warning,
    )


def backend_accuracy_fails(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    compiler_fn: Callable,
    only_fwd: bool = False,
    *,
    require_fp64: bool = False,
    ignore_non_fp: bool = False,
) -> bool:
    """Whether what a backend makes of a graph computes something else than the graph."""
    try:
        compiled = compiler_fn(copy.deepcopy(gm), clone_inputs(example_inputs))
        return not same_two_models(
            gm,
            compiled,
            example_inputs,
            only_fwd,
            require_fp64=require_fp64,
            ignore_non_fp=ignore_non_fp,
        )
    except RuntimeError as error:
        if "Could not generate fp64" in str(error):
            raise
        log.warning("While minifying: %s; this graph is another failure", error)
        return False
    except Exception:
        log.exception("While minifying: this graph is another failure")
        return False


# ---- graphs with annotations ----------------------------------------------------------------

_ABBREVIATIONS = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
    "c64": torch.complex64, "c128": torch.complex128, "i8": torch.int8, "i16": torch.int16,
    "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "b8": torch.bool,
}  # fmt: skip


def aot_graph_input_parser(
    func: Callable,
    device: str = "cuda",
    sym_shapes: dict[str, int] | None = None,
    default_sym_shape: int | None = None,
) -> dict[str, object]:
    """Arguments for a function printed by the compiler, from its annotations: "f32[8, s0]" is a
    random tensor, "Sym(s0)" a number. Constants that its text reads from `self` come with it."""
    import inspect

    known = dict(sym_shapes or {})

    def number(text: str) -> int:
        text = text.strip()
        if text.lstrip("-").isdigit():
            return int(text)
        if text not in known:
            if default_sym_shape is None:
                raise AssertionError(f"{text} is not in sym_shapes and default_sym_shape is None")
            known[text] = default_sym_shape
        return known[text]

    def value(text: str) -> object:
        sym = re.fullmatch(r"Sym\((\w+)\)", text.strip())
        if sym:
            return number(sym.group(1))
        found = re.fullmatch(r"(\w+)\[([^\]]*)\].*", text.strip())
        if found is None:
            raise ValueError(f"an annotation that is no tensor and no size: {text!r}")
        dtype = _ABBREVIATIONS[found.group(1)]
        shape = [number(n) for n in found.group(2).split(",") if n.strip()]
        if dtype.is_floating_point or dtype.is_complex:
            return torch.randn(shape, dtype=dtype, device=device)
        if dtype is torch.bool:
            return torch.randint(0, 2, shape, device=device).bool()
        return torch.randint(0, 2, shape, dtype=dtype, device=device)

    holder = type("Constants", (), {})()
    source = inspect.getsource(func)
    for name, text in re.findall(r'(_tensor_constant\d+): "?([^"=]+?)"? = self\.', source):
        setattr(holder, name, value(text))
    arguments: dict[str, object] = {}
    for name, parameter in inspect.signature(func).parameters.items():
        if name == "self":
            arguments[name] = holder
        elif isinstance(parameter.annotation, str):
            arguments[name] = value(parameter.annotation.strip("\"'"))
    return arguments
