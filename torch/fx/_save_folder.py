"""A graph module as a Python package: `module.py` with the class, `state_dict.pt` with its
tensors, and a pickle for each submodule whose text cannot make it."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from torch.fx.graph_module import GraphModule

# Modules whose repr is the call that makes them.
_BY_REPR = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
    nn.ReLU,
)


def write_package(module: "GraphModule", folder: Path, class_name: str) -> None:
    """Writes the files; the folder is made."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(module.state_dict(), folder / "state_dict.pt")
    code = module.graph.python_code(root_module="self")
    lines: list[str] = []
    for name, child in module.named_children():
        lines.append(f"self.{name} = {_maker(name, child, folder)}")
    for name, value in module._buffers.items():
        if value is not None:
            made = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
            saved = name not in module._non_persistent_buffers_set
            if not saved:
                torch.save(value, folder / f"{name}.pt")
                made = f'torch.load(_HERE / "{name}.pt")'
            lines.append(f'self.register_buffer("{name}", {made}, persistent={saved})')
    for name, value in module._parameters.items():
        if value is not None:
            shape = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
            lines.append(f"self.{name} = torch.nn.Parameter({shape}, {value.requires_grad})")
    lines.append('self.load_state_dict(torch.load(_HERE / "state_dict.pt"))')
    (folder / "module.py").write_text(_text(code, class_name, lines), encoding="utf-8")
    (folder / "__init__.py").write_text(f"from .module import {class_name}\n", encoding="utf-8")


def _maker(name: str, child: nn.Module, folder: Path) -> str:
    """The expression that makes a submodule."""
    if type(child) in _BY_REPR:
        return f"torch.nn.{child!r}"
    torch.save(child, folder / f"{name}.pt")
    return f'torch.load(_HERE / "{name}.pt", weights_only=False)'


def _text(code: object, class_name: str, lines: list[str]) -> str:
    from torch.fx.graph_module import _format_import_block

    body = "\n".join(f"        {line}" for line in lines)
    forward = code.src.strip("\n").replace("\n", "\n    ").rstrip()
    return (
        f'"""Written by torch.fx.GraphModule.to_folder."""\n\nfrom pathlib import Path\n\n'
        f"{_format_import_block(code.globals)}\nimport torch\n\n_HERE = Path(__file__).parent\n\n\n"
        f"class {class_name}(torch.nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n{body}\n\n    {forward}\n"
    )
