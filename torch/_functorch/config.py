"""Settings of AOTAutograd and of the partitioners."""

import sys

from torch._settings_module import SettingsModule, patcher

# Checks at run time that compiled functions get what they were compiled for.
debug_assert = False
# Prints what the partitioner saves.
debug_partitioner = False
# Share equal calls before a joint graph is divided.
cse = True
# Sizes of parameters are numbers where those of other inputs are symbols.
static_weight_shapes = True
# Operators on tensors of the meta device are allowed while a trace runs.
fake_tensor_allow_meta = True
fake_tensor_propagate_real_tensors = False

# ---- the min-cut partitioner
# Recompute anything that is not expensive, whether or not it is known to be cheap.
aggressive_recomputation = False
# Reductions are saved: their results are small and their inputs large.
ban_recompute_reductions = True
# Whatever is not known to be cheap is saved.
ban_recompute_not_in_allowlist = True
# The share of the memory of the usual partition that activations may take, from 0 (save inputs
# only) to 1.
activation_memory_budget = 1.0
# How the time of a recomputed operator is estimated: "flops", or a function of a node.
activation_memory_budget_runtime_estimator = "flops"
# Levels of memory that the knapsack tells apart.
activation_memory_budget_levels = 10_000

# ---- accepted, without effect: they are about parts that work otherwise or do not exist here
functionalize_rng_ops = False
recompute_views = False
treat_parameters_as_free_to_save = True
guess_tangent_strides_as_outputs = False
view_replay_for_aliased_outputs = True
donated_buffer = False
enable_autograd_cache = False

patch = patcher(sys.modules[__name__])
sys.modules[__name__].__class__ = SettingsModule
