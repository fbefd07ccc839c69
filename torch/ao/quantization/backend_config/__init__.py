"""What a backend can compute on levels: patterns of operators and the dtypes each of them takes."""

from torch.ao.quantization.backend_config.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    DTypeConfig,
    DTypeWithConstraints,
    ObservationType,
)
from torch.ao.quantization.backend_config.executorch import get_executorch_backend_config
from torch.ao.quantization.backend_config.fbgemm import get_fbgemm_backend_config
from torch.ao.quantization.backend_config.native import (
    get_native_backend_config,
    get_native_backend_config_dict,
    get_test_only_legacy_native_backend_config,
    get_test_only_legacy_native_backend_config_dict,
)
from torch.ao.quantization.backend_config.onednn import get_onednn_backend_config
from torch.ao.quantization.backend_config.qnnpack import get_qnnpack_backend_config
from torch.ao.quantization.backend_config.tensorrt import (
    get_tensorrt_backend_config,
    get_tensorrt_backend_config_dict,
)
from torch.ao.quantization.backend_config.x86 import get_x86_backend_config

__all__ = [
    "BackendConfig",
    "BackendPatternConfig",
    "DTypeConfig",
    "DTypeWithConstraints",
    "ObservationType",
    "get_executorch_backend_config",
    "get_fbgemm_backend_config",
    "get_native_backend_config",
    "get_native_backend_config_dict",
    "get_onednn_backend_config",
    "get_qnnpack_backend_config",
    "get_tensorrt_backend_config",
    "get_tensorrt_backend_config_dict",
    "get_test_only_legacy_native_backend_config",
    "get_test_only_legacy_native_backend_config_dict",
    "get_x86_backend_config",
]
