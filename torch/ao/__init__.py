"""Quantization and pruning flows: the names. Starting one raises NotImplementedError."""

import collections

from torch import _later

_QUANTIZATION = (
    "ABC DeQuantStub FakeQuantize FakeQuantizeBase FixedQParamsFakeQuantize HistogramObserver "
    "MinMaxObserver MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver NoopObserver "
    "ObserverBase PerChannelMinMaxObserver PlaceholderObserver QConfig QConfigMapping QuantStub "
    "QuantWrapper UniformQuantizationObserverBase add_quant_dequant convert default_fake_quant "
    "default_observer default_per_channel_weight_observer default_qat_qconfig default_qconfig "
    "default_weight_fake_quant default_weight_observer disable_fake_quant disable_observer "
    "enable_fake_quant enable_observer fuse_modules fuse_modules_qat get_default_qat_qconfig "
    "get_default_qat_qconfig_mapping get_default_qconfig get_default_qconfig_mapping prepare "
    "prepare_qat propagate_qconfig_ quantize quantize_dynamic quantize_qat swap_module"
)
_OBSERVERS = "ObserverBase MinMaxObserver HistogramObserver UniformQuantizationObserverBase"
_SUBMODULES = _later.install(
    __name__,
    f"""
    quantization: {_QUANTIZATION}
    quantization.observer: {_OBSERVERS}
    quantization.fake_quantize: FakeQuantize FakeQuantizeBase
    quantization.qconfig: QConfig
    quantization.quantize_fx: prepare_fx prepare_qat_fx convert_fx fuse_fx
    quantization.utils: get_qparam_dict
    quantization.stubs: QuantStub DeQuantStub QuantWrapper
    nn.quantized: FloatFunctional Linear Conv2d
    nn.quantized.dynamic: Linear LSTM
    nn.intrinsic: ConvBn2d ConvBnReLU2d LinearReLU
    nn.intrinsic.qat: ConvBn2d ConvBnReLU2d freeze_bn_stats update_bn_stats
    nn.qat: Linear Conv2d
    pruning: BaseSparsifier WeightNormSparsifier
    """,
)
QConfig = collections.namedtuple("QConfig", ["activation", "weight"])
_later._Finder.real[f"{__name__}.quantization.qconfig"] = {"QConfig": QConfig}
_later._Finder.real[f"{__name__}.quantization"] = {"QConfig": QConfig}
__getattr__ = _later.submodules(__name__, _SUBMODULES)
