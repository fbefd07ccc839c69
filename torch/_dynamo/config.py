"""Settings of the tracer. There is none yet: what is set is kept, and changes nothing."""

import sys

from torch._settings_module import SettingsModule, patcher

recompile_limit = cache_size_limit = 8
accumulated_recompile_limit = accumulated_cache_size_limit = 256
suppress_errors = False
verbose = False
fail_on_recompile_limit_hit = False
reorderable_logging_functions = set()
disable = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
automatic_dynamic_shapes = True
assume_static_by_default = True
dynamic_shapes = True
error_on_nested_fx_trace = True
inline_inbuilt_nn_modules = True
optimize_ddp = True
guard_nn_modules = True
allow_unspec_int_on_nn_module = False
skip_fwd_side_effects_in_bwd_under_checkpoint = False

patch = patcher(sys.modules[__name__])
sys.modules[__name__].__class__ = SettingsModule
