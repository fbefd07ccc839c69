"""Settings of the compiler. Those of machinery that is not here are kept, and change nothing."""

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
# Prints the plan of every graph.
debug = False

# ---- functions that change graphs on the way; each is given an fx.Graph
pre_grad_custom_pass = None
joint_custom_pre_pass = None
joint_custom_post_pass = None
post_grad_custom_pre_pass = None
post_grad_custom_post_pass = None
# Divides a joint graph instead of min_cut_rematerialization_partition.
custom_partitioner_fn = None

patch = patcher(sys.modules[__name__])
sys.modules[__name__].__class__ = SettingsModule
