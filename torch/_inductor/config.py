"""Settings of the kernel generator. There is none yet: what is set is kept, and changes nothing."""

import sys

from torch._settings_module import Group, SettingsModule, patcher

triton = Group(cudagraphs=False, unique_kernel_names=True)
cpp = Group(threads=-1)
aot_inductor = Group()
trace = Group(enabled=False)
max_autotune = False
coordinate_descent_tuning = False
fx_graph_cache = True
epilogue_fusion = True
allow_buffer_reuse = True
debug = False

patch = patcher(sys.modules[__name__])
sys.modules[__name__].__class__ = SettingsModule
