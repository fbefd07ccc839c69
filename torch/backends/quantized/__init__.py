"""Which engine computes with quantized numbers. There is one; the names are those of PyTorch's
engines, which differ in the scales that torch.ao.quantization proposes for them."""

import sys
import types

_ENGINES = ["qnnpack", "onednn", "x86", "fbgemm"]


class _Settings(types.ModuleType):
    """The module; `engine` refuses names that are not in `supported_engines`."""

    _chosen = "x86"

    @property
    def supported_engines(self) -> list[str]:
        return list(_ENGINES)

    @property
    def engine(self) -> str:
        return self._chosen

    @engine.setter
    def engine(self, name: str) -> None:
        if name not in _ENGINES:
            raise RuntimeError(f"{name} is not a valid value for quantized engine")
        self._chosen = name


sys.modules[__name__].__class__ = _Settings
