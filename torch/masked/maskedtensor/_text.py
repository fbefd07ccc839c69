"""How a masked tensor is printed: its values in nested brackets, -- for those not there."""


def _formatted(value) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else f"{value}"


def _lines(data, mask, indent):
    if data.dim() == 1:
        pairs = zip(data.tolist(), mask.tolist(), strict=True)
        cells = (_formatted(d) if m else f"{'--':>8}" for d, m in pairs)
        return " " * indent + "[" + ", ".join(cells) + "]"
    pairs = zip(data.unbind(), mask.unbind(), strict=True)
    rows = ",\n".join(_lines(d, m, indent + 2) for d, m in pairs)
    pad = " " * indent
    return f"{pad}[\n{rows}\n{pad}]"


def text_of(data, mask) -> str:
    """The text of a masked tensor."""
    data = data.detach()
    if data.dim() == 0:
        value = _formatted(data.item()) if mask.item() else f"{'--':>8}"
        return f"MaskedTensor({value}, {mask.item()})"
    return f"MaskedTensor(\n{_lines(data, mask, 2)}\n)"
