"""Printing of tensors.

A tensor is first cut down to the elements that will be shown (nested Python lists, so that one
format serves every dtype and no tensor arithmetic is needed), then one pass over those elements
fixes the number format and the common width, and a second pass lays out the rows. Only the
shown elements decide the format, as users expect it.
"""

from __future__ import annotations

import contextlib
import math

import torch


class __PrinterOptions:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None


PRINT_OPTS = __PrinterOptions()

_PROFILES = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """Sets how tensors are printed.

    precision: digits after the point (default 4). threshold: number of elements above which
    only the ends are shown (default 1000). edgeitems: how many elements are shown at each end
    (default 3). linewidth: characters per line (default 80). profile: "default", "short" or
    "full" sets the four above. sci_mode: True or False forces scientific notation on or off;
    None lets the values decide.
    """
    if profile is not None:
        values = _PROFILES.get(profile)
        if values is not None:
            opts = PRINT_OPTS
            opts.precision, opts.threshold, opts.edgeitems, opts.linewidth = values
    if precision is not None:
        PRINT_OPTS.precision = precision
    if threshold is not None:
        PRINT_OPTS.threshold = threshold
    if edgeitems is not None:
        PRINT_OPTS.edgeitems = edgeitems
    if linewidth is not None:
        PRINT_OPTS.linewidth = linewidth
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, int | None]:
    """The current print options, in the form that set_printoptions takes them."""
    names = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    return {name: getattr(PRINT_OPTS, name) for name in names}


class printoptions:
    """Context manager: print options for the body of a with statement."""

    def __init__(self, **kwargs) -> None:
        self.options = kwargs

    def __enter__(self) -> None:
        self.saved = get_printoptions()
        set_printoptions(**self.options)

    def __exit__(self, *exc_info) -> bool:
        set_printoptions(**self.saved)
        return False


# ---- number formats
# -------------------------------------------------------------------------------------------


def _flat(items):
    """The leaves of nested lists, without the marks that stand for left out parts."""
    if not isinstance(items, list):
        yield items
        return
    for item in items:
        if item is not Ellipsis:
            yield from _flat(item)


class _PlainFormat:
    """Integers and booleans: as Python writes them, padded to the widest."""

    def __init__(self, values) -> None:
        self.width = max((len(str(v)) for v in values), default=1)

    def format(self, value) -> str:
        return str(value).rjust(self.width)


class _FloatFormat:
    """Floating point: whole numbers, fixed point or scientific, decided by the finite values that
    are not zero.

    Infinities, NaN and zeros take no part in the decision nor in the width."""

    def __init__(self, values) -> None:
        self.width = 1
        precision = PRINT_OPTS.precision
        finite = [v for v in values if v != 0 and math.isfinite(v)]
        self.whole = all(v == math.ceil(v) for v in finite)
        self.scientific = False
        if not finite:
            return
        sizes = [abs(v) for v in finite]
        largest, smallest = max(sizes), min(sizes)
        self.scientific = largest / smallest > 1000.0 or largest > 1.0e8
        if not self.whole:
            self.scientific = self.scientific or smallest < 1.0e-4
        if PRINT_OPTS.sci_mode is not None:
            self.scientific = PRINT_OPTS.sci_mode
        if self.scientific:
            self.width = max(len(f"{v:.{precision}e}") for v in finite)
        elif self.whole:
            self.width = max(len(f"{v:.0f}") for v in finite) + 1
        else:
            self.width = max(len(f"{v:.{precision}f}") for v in finite)

    def format(self, value) -> str:
        if self.scientific:
            text = f"{value:.{PRINT_OPTS.precision}e}"
        elif self.whole:
            text = f"{value:.0f}"
            if math.isfinite(value):
                text += "."
        else:
            text = f"{value:.{PRINT_OPTS.precision}f}"
        return text.rjust(self.width)


class _ComplexFormat:
    """Real and imaginary parts have a format each; the sign of the imaginary part stands between
    them.
    """

    def __init__(self, values) -> None:
        values = list(values)
        self.real = _FloatFormat([v.real for v in values])
        self.imag = _FloatFormat([v.imag for v in values])
        self.width = self.real.width + self.imag.width + 1

    def format(self, value) -> str:
        real = self.real.format(value.real)
        imag = self.imag.format(value.imag).lstrip()
        between = "" if imag[0] == "-" else "+"
        return f"{real}{between}{imag}j"


def _formatter(items, dtype) -> _PlainFormat | _FloatFormat | _ComplexFormat:
    values = _flat(items)
    if dtype.is_complex:
        return _ComplexFormat(values)
    if dtype.is_floating_point:
        return _FloatFormat(list(values))
    return _PlainFormat(values)


# ---- layout --------------------------------------------------------------------------------------
# -------------


def _shown_items(tensor, summarize):
    """The elements to show as nested lists; an Ellipsis stands where elements are left out."""
    if not summarize or tensor.dim() == 0:
        return tensor.tolist()
    edge = PRINT_OPTS.edgeitems
    if edge == 0:
        return [Ellipsis]
    if tensor.size(0) > 2 * edge:
        # A count of zero edge items leaves only the mark; [-0:] would be everything.
        head, tail = tensor[:edge], tensor[tensor.size(0) - edge :]
        if tensor.dim() == 1:
            return [*head.tolist(), Ellipsis, *tail.tolist()]
        rows = [_shown_items(row, True) for row in head]
        return [*rows, Ellipsis, *(_shown_items(row, True) for row in tail)]
    if tensor.dim() == 1:
        return tensor.tolist()
    return [_shown_items(row, True) for row in tensor]


def _vector_lines(items, indent, form) -> str:
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (form.width + 2))
    if items == [Ellipsis]:
        return "[...]"
    cells = [" ..." if item is Ellipsis else form.format(item) for item in items]
    rows = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"


def _layout(items, depth, indent, form) -> str:
    if depth == 0:
        return form.format(items)
    if depth == 1:
        return _vector_lines(items, indent, form)
    parts = [
        "..." if item is Ellipsis else _layout(item, depth - 1, indent + 1, form) for item in items
    ]
    return "[" + ("," + "\n" * (depth - 1) + " " * (indent + 1)).join(parts) + "]"


def _tensor_str(self, indent) -> str:
    """The bracketed elements of a strided tensor with a value for every element."""
    if self.numel() == 0:
        return "[]"
    summarize = self.numel() > PRINT_OPTS.threshold
    items = _shown_items(self, summarize)
    return _layout(items, self.dim(), indent, _formatter(items, self.dtype))


def _add_suffixes(tensor_str, suffixes, indent, force_newline) -> str:
    parts = [tensor_str]
    line = len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or line + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            line = indent + len(suffix)
            force_newline = False
        else:
            parts.append(", " + suffix)
            line += len(suffix) + 2
    parts.append(")")
    return "".join(parts)


# ---- whole tensors
# --------------------------------------------------------------------------------------------


def _device_suffix(self) -> list[str]:
    device = self.device
    if device.type == torch._C._get_default_device():
        return []
    return [f"device='{device}'"]


def _size_text(size) -> str:
    return f"size={tuple(size)}"


def _sparse_contents(self, names, indent, suffixes) -> str:
    """Index and value tensors of a sparse tensor, each printed as a tensor without its device and
    dtype."""
    parts = []
    for name, member in names:
        prefix = name + "=tensor("
        inner = indent + len(prefix)
        own = [] if member.numel() else [_size_text(member.shape)]
        parts.append(_add_suffixes(prefix + _tensor_str(member, inner), own, inner, False))
    suffixes.insert(0, f"nnz={self._nnz()}")
    suffixes.insert(0, _size_text(self.shape))
    return (",\n" + " " * indent).join(parts)


_COMPRESSED_NAMES = {
    "sparse_csr": ("crow_indices", "col_indices"),
    "sparse_csc": ("ccol_indices", "row_indices"),
    "sparse_bsr": ("crow_indices", "col_indices"),
    "sparse_bsc": ("ccol_indices", "row_indices"),
}


def _is_default_dtype(dtype) -> bool:
    default = torch.get_default_dtype()
    return dtype in (default, torch.int64, torch.bool) or (
        dtype is (torch.complex128 if default is torch.float64 else torch.complex64)
    )


def _members(self) -> list[tuple[str, torch.Tensor]] | None:
    """Names and tensors of what a tensor that is not strided is made of; None for strided ones."""
    layout = str(self.layout).replace("torch.", "")
    plain = self.detach()
    if layout == "sparse_coo":
        return [("indices", plain._indices()), ("values", plain._values())]
    if layout in _COMPRESSED_NAMES:
        names = _COMPRESSED_NAMES[layout]
        members = [(name, getattr(plain, name)()) for name in names]
        return [*members, ("values", plain.values())]
    return None


def _quantizer_suffixes(self) -> list[str]:
    """What the levels of a quantized tensor mean."""
    scheme = self.qscheme()
    suffixes = [
        _size_text(self.shape),
        f"dtype={self.dtype}",
        f"quantization_scheme={scheme}",
    ]
    if scheme is torch.per_tensor_affine:
        return [*suffixes, f"scale={self.q_scale()}", f"zero_point={self.q_zero_point()}"]
    return [
        *suffixes,
        f"scale={self.q_per_channel_scales()}",
        f"zero_point={self.q_per_channel_zero_points()}",
        f"axis={self.q_per_channel_axis()}",
    ]


def _str_intern(self, *, tensor_contents=None) -> str:
    subclass = type(self) not in (torch.Tensor, torch.nn.Parameter)
    prefix = f"{type(self).__name__}(" if subclass else "tensor("
    # A tensor of a class of its own stays one when it becomes a parameter.
    marked = subclass and isinstance(self, torch.nn.Parameter)
    prefix = f"Parameter({prefix}" if marked else prefix
    indent = len(prefix)
    suffixes = _device_suffix(self)
    default_dtype = _is_default_dtype(self.dtype)
    members = _members(self)
    force_newline = False
    if members is not None:
        coo = members[0][0] == "indices"
        if not default_dtype:
            suffixes.append("dtype=" + str(self.dtype))
        contents = tensor_contents or _sparse_contents(self, members, indent, suffixes)
        suffixes.append("layout=" + str(self.layout))
        force_newline = coo
    elif self.device.type == "meta" or torch._C._is_fake(self):
        suffixes.append(_size_text(self.shape))
        if self.dtype is not torch.get_default_dtype():
            suffixes.append("dtype=" + str(self.dtype))
        contents = tensor_contents or "..."
    elif self.is_quantized:
        suffixes.extend(_quantizer_suffixes(self))
        contents = tensor_contents or _tensor_str(self.detach().dequantize(), indent)
    else:
        # Where no element shows it, the size is said.
        if (self.numel() == 0 and self.dim() != 1) or PRINT_OPTS.edgeitems == 0:
            suffixes.append(_size_text(self.shape))
        # An empty list would be read back as the default dtype, so integers say what they are.
        shown_by_values = default_dtype
        if self.numel() == 0:
            shown_by_values = self.dtype is torch.get_default_dtype()
        if not shown_by_values:
            suffixes.append("dtype=" + str(self.dtype))
        contents = tensor_contents or _tensor_str(
            self.detach().cpu().resolve_conj().resolve_neg(), indent
        )
        if self.layout is not torch.strided:
            suffixes.append("layout=" + str(self.layout))
    suffixes.extend(_grad_suffix(self))
    tangent = torch.autograd.forward_ad.unpack_dual(self).tangent
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    text = _add_suffixes(prefix + contents, suffixes, indent, force_newline)
    return text + ")" if marked else text


def _grad_suffix(self):
    try:
        grad_fn = self.grad_fn
    except RuntimeError:
        # A view whose base was changed in place where autograd cannot rebuild its history.
        return ["grad_fn=<Invalid>"]
    if grad_fn is not None:
        return [f"grad_fn=<{type(grad_fn).__name__}>"]
    return ["requires_grad=True"] if self.requires_grad else []


def _transformed_str(self) -> str:
    """A tensor inside a function transform: its level and what it wraps."""
    transforms = torch._C._functorch
    level = transforms.maybe_get_level(self)
    value = _str(transforms.get_unwrapped(self)).replace("\n", "\n    ")
    if transforms.is_batchedtensor(self):
        bdim = transforms.maybe_get_bdim(self)
        return f"BatchedTensor(lvl={level}, bdim={bdim}, value=\n    {value}\n)"
    if not transforms.is_gradtrackingtensor(self):
        return f"FunctionalTensor(lvl={level}, value=\n{value})"
    return f"GradTrackingTensor(lvl={level}, value=\n    {value}\n)"


def _str(self, *, tensor_contents=None):
    if torch._C._functorch.is_functorch_wrapped_tensor(self):
        return _transformed_str(self)
    with contextlib.ExitStack() as blocks:
        if torch._C._len_torch_dispatch_stack():  # what is printed is no part of the program
            blocks.enter_context(torch.utils._python_dispatch._disable_current_modes())
        blocks.enter_context(torch.no_grad())
        blocks.enter_context(torch._C.DisableTorchFunctionSubclass())
        return _str_intern(self, tensor_contents=tensor_contents)
