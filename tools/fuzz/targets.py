"""What is fuzzed: every callable the package binds, with the argument types to try. Types come from
operator schemas where the callable is an operator, else from the Python signature's argument names;
callables with neither get arbitrary values. What is left out is listed here with the reason."""

from __future__ import annotations

import inspect
import keyword
import re
from dataclasses import dataclass, field

# Left out, each with the reason; anything else that is bound is called.
LEFT_OUT = {
    r"torch\.(UntypedStorage|StorageBase|\w+Storage)\.from_file": "maps a file it is given",
    r".*\._write_file|.*\._set_from_file|.*\._new_with_file": "writes or reads a file descriptor",
    r".*\._new_using_fd_cpu|.*\._new_using_filename_cpu|.*\._share_f\w+_cpu_": "opens files",
    r"torch\.(save|load|import_ir_module\w*)": "read and write files",
    r"torch\._C\._set_alloc_failure": "makes later calls fail; for test_out_of_memory.py",
    r".*\.(__subclasshook__|__init_subclass__|__class__|__getattribute__)": "methods of object",
    r".*\.(__dir__|mro)": "methods of object",
    r"torch\.(.*\.)?install$|torch\.__getattr__|torch\.__dir__": "module plumbing",
}
# These change the process (registrations, modes, defaults): each is called in a fork of the worker.
ISOLATED = re.compile(
    r"torch\._C\._?(library|push|pop|set|unset|dispatch_tls_set|disabled|RestorePython|Include"
    r"|Exclude|Auto|Disable|InferenceMode|call_overloads).*|torch\._C\.(Disable\w+)|torch\.(Disable\w+)"
    r"|torch\.(set_|use_det|seed|manual_seed|inference_mode|no_grad|enable_grad)\w*"
    r"|torch\.Tensor\.(__setattr__|__delattr__|__setstate__|__init__|share_memory_)"
)
RECEIVERS = {
    "UntypedStorage": "torch.UntypedStorage(8)",
    "Generator": "torch.Generator()",
    "Size": "torch.Size([2, 3])",
    "device": "torch.device('cpu')",
    "dtype": "torch.float32",
    "finfo": "torch.finfo(torch.float32)",
    "iinfo": "torch.iinfo(torch.int8)",
    "FloatStorage": "T((4,), 'float32').storage()",
}
# Argument names of Python functions that say what is meant; the rest is a tensor or anything.
NAMED_TYPES = {
    "int": "dim dim0 dim1 dims n k groups num_classes seed diagonal offset start end steps"
    " decimals upscale_factor downscale_factor kernel_size num_groups ignore_index",
    "SymInt[]": "size sizes shape shapes stride normalized_shape kernel padding pad split_size",
    "float": "p eps alpha beta margin lambd momentum lr scale threshold value label_smoothing"
    " delta slope lower upper negative_slope min_val max_val temperature rtol atol smoothing",
    "bool": "training inplace keepdim size_average reduce affine is_causal log_target full hard"
    " sorted return_inverse return_counts log_input swap equal_nan unbiased use_input_stats"
    " requires_grad pin_memory",
    "str": "reduction mode indexing equation approximate",
    "ScalarType": "dtype",
    "Device": "device",
    "Tensor": "input other target weight bias self tensor x x1 x2 running_mean running_var query"
    " key value1 anchor positive negative mask attn_mask var output distance_function",
    "Tensor[]": "tensors operands matrices arrays",
}
_TYPE_OF_NAME = {name: kind for kind, names in NAMED_TYPES.items() for name in names.split()}


@dataclass
class Parameter:
    name: str
    kind: str
    keyword: bool = False
    optional: bool = False


@dataclass
class Target:
    path: str  # what the call line starts with, or the method's name
    receiver: str | None = None  # an expression, "" for a random tensor, None for a function
    signatures: list = field(default_factory=list)
    isolated: bool = False
    style: str = "call"  # call, get, set

    @property
    def name(self) -> str:
        return self.path


def left_out(path: str) -> bool:
    return any(re.fullmatch(pattern, path) for pattern in LEFT_OUT)


def schema_parameters(schema) -> list[Parameter]:
    return [
        Parameter(a.name, str(a.type), a.kwarg_only, a.has_default_value())
        for a in schema.arguments
    ]


def schema_table(torch):
    """Operator base name -> overloads' parameters, and the full list of overloads."""
    table, overloads = {}, []
    for qualified in torch._C._dispatch_get_all_op_names():
        name, _, overload = qualified.partition(".")
        space, _, base = name.partition("::")
        if space not in ("aten", "prims", "prim"):
            continue
        parameters = schema_parameters(torch._C._get_schema(name, overload))
        table.setdefault(base, []).append(parameters)
        overloads.append((f"torch.ops.{space}.{base}.{overload or 'default'}", parameters))
    return table, overloads


def signature_parameters(function) -> list[Parameter] | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters = []
    for p in signature.parameters.values():
        if p.kind is p.VAR_KEYWORD:
            continue
        kind = _TYPE_OF_NAME.get(p.name, "any")
        parameters.append(
            Parameter(p.name, kind, p.kind is p.KEYWORD_ONLY, p.default is not p.empty)
        )
        if p.kind is p.VAR_POSITIONAL:
            parameters[-1].optional = True
            parameters.append(Parameter(p.name, kind, False, True))
    return parameters


def function_targets(torch, table):
    modules = [
        ("torch", torch, ""),
        ("torch._C", torch._C, ""),
        ("torch.functional", torch.functional, ""),
    ]
    modules.append(("torch._C._VariableFunctions", torch._C._VariableFunctions, ""))
    modules.append(("torch.nn.functional", torch.nn.functional, ""))
    modules.append(("torch.autograd", torch.autograd, ""))
    for name in ("linalg", "special", "fft"):
        modules.append((f"torch.{name}", getattr(torch, name), name + "_"))
    for name in ("_nn", "_linalg", "_special", "_fft", "_sparse", "_nested"):
        if hasattr(torch._C, name):
            modules.append((f"torch._C.{name}", getattr(torch._C, name), ""))
    for prefix, module, stem in modules:
        for name in sorted(dir(module)):
            value = getattr(module, name, None)
            path = f"{prefix}.{name}"
            foreign = inspect.ismodule(value) or _is_foreign(value)
            if not callable(value) or left_out(path) or foreign:
                continue
            overloads = table.get(stem + name) or table.get(name)
            if not overloads:
                parameters = signature_parameters(value)
                overloads = [parameters] if parameters is not None else []
            yield Target(path, None, overloads, bool(ISOLATED.fullmatch(path)))


def _is_foreign(value) -> bool:
    module = getattr(value, "__module__", None) or ""
    return isinstance(module, str) and module.split(".")[0] in ("typing", "builtins_", "functools")


def method_targets(torch, table):
    classes = {"Tensor": ""} | RECEIVERS
    for class_name, receiver in classes.items():
        owner = getattr(torch, class_name, None)
        if owner is None:
            continue
        for name in sorted(dir(owner)):
            path = f"torch.{class_name}.{name}"
            if left_out(path):
                continue
            isolated = bool(ISOLATED.fullmatch(path))
            if not callable(getattr(owner, name, None)):
                yield Target(name, receiver, [], isolated, "get")
                yield Target(name, receiver, [], True, "set")
                continue
            overloads = [p[1:] for p in table.get(name, []) if p and p[0].kind.startswith("Tensor")]
            if name in ("__getitem__", "__setitem__", "__delitem__"):
                index, value = Parameter("index", "index"), Parameter("value", "any")
                tensor = Parameter("value", "Tensor")
                overloads = (
                    [[index, value], [index, tensor]] if name == "__setitem__" else [[index]]
                )
            elif re.fullmatch(r"__\w+__", name) and name.strip("_").lstrip("ri") in table:
                overloads = [[Parameter("other", "Tensor")], [Parameter("other", "Scalar")]]
            elif not overloads:
                parameters = signature_parameters(getattr(owner, name))
                overloads = [parameters[1:]] if parameters else []
            yield Target(name, receiver, overloads, isolated)


def all_targets(only: str | None = None) -> list[Target]:
    """Every target, in an order that depends on the package alone."""
    import torch
    import torch.nn.functional

    table, overloads = schema_table(torch)
    targets = [
        Target(path, None, [parameters]) for path, parameters in overloads if not left_out(path)
    ]
    targets += function_targets(torch, table)
    targets += method_targets(torch, table)
    if only:
        pattern = re.compile(only)
        targets = [t for t in targets if pattern.search(full_name(t))]
    return targets


def full_name(target: Target) -> str:
    if target.receiver is None:
        return target.path
    return f"({target.receiver or 'tensor'}).{target.path}"


def call_text(target: Target, values) -> str:
    """One call of `target` as an expression."""
    rng = values.rng
    receiver = target.receiver
    if receiver is not None:
        receiver = receiver or values.tensor()
    if target.style == "get":
        return f"getattr({receiver}, {target.path!r})"
    if target.style == "set":
        return f"setattr({receiver}, {target.path!r}, {values.anything()})"
    arguments = _arguments(target, values)
    if receiver is None:
        return f"{target.path}({arguments})"
    if rng.random() < 0.02:  # the unbound method with a receiver of any kind
        owner = "torch.Tensor" if not target.receiver else f"type({target.receiver})"
        return f"{owner}.{target.path}({values.anything()}, {arguments})"
    return f"{receiver}.{target.path}({arguments})"


def _arguments(target: Target, values) -> str:
    rng = values.rng
    chance = rng.random()
    if not target.signatures or chance < 0.05:
        return ", ".join(values.anything() for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))))
    parameters = rng.choice(target.signatures)
    wrong = rng.randrange(len(parameters)) if parameters and chance < 0.3 else -1
    parts, by_name = [], False
    for position, p in enumerate(parameters):
        if p.optional and rng.random() < 0.5:
            by_name = True
            continue
        value = values.anything() if position == wrong else values.of_type(p.kind, p.name)
        by_name = by_name or p.keyword
        named = f"**{{{p.name!r}: {value}}}" if keyword.iskeyword(p.name) else f"{p.name}={value}"
        parts.append(named if by_name else value)
    if chance > 0.98:
        parts.append("dtype=" + values.any_dtype())
    if 0.95 < chance < 0.97 and parts:
        parts.pop()
    return ", ".join(parts)
