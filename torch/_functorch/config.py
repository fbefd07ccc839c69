"""Settings of AOTAutograd and of the partitioners."""

import os
import sys

from torch.utils._config_module import install_config_module

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

# Random operators on CUDA become functions of a seed and an offset, which graphs take and return.
# Those of other devices raise RuntimeError.
functionalize_rng_ops = False

# Traced functions are kept between processes; TORCHINDUCTOR_AUTOGRAD_CACHE=0: they are not.
enable_autograd_cache = os.environ.get("TORCHINDUCTOR_AUTOGRAD_CACHE", "1") == "1"

# ---- accepted, without effect: they are about parts that work otherwise or do not exist here
recompute_views = False
treat_parameters_as_free_to_save = True
guess_tangent_strides_as_outputs = False
view_replay_for_aliased_outputs = True
donated_buffer = False

autograd_cache_allow_custom_autograd_functions = False
autograd_cache_normalize_inputs = True
backward_pass_autocast = "same_as_forward"
ban_recompute_long_fusible_chains = True
ban_recompute_materialized_backward = True
ban_recompute_used_far_apart = True
bundled_autograd_cache = False
bypass_autograd_cache_key = False
check_custom_op_aliasing = True
custom_op_default_layout_constraint = "needs_exact_strides"
disable_guess_zero_tangent_for_mutated_input_subclass = False
enable_remote_autograd_cache: bool | None = None
error_on_custom_op_aliasing = False
activation_memory_budget_solver = "dp"
fake_tensor_allow_unsafe_data_ptr_access = True
fake_tensor_crossref = False
fake_tensor_prefer_device_type: str | None = None
force_autograd_cache = False
force_non_lazy_backward_lowering = False
generate_fake_kernels_from_real_mismatches = False
graphsafe_rng_functionalization = True
joint_custom_pass: object = None
max_dist_from_bw = 1000
memory_budget_pareto_dir: str | None = None
saved_tensors_hooks_filtering_mode = "donated"
selective_decompose = False
strict_autograd_cache = False
torch_compile_graph_format = "svg"
unlift_effect_tokens = False
unsafe_allow_optimization_of_collectives = False
visualize_memory_budget_pareto = False
_save_config_ignore: list = ["joint_custom_pass", "activation_memory_budget_runtime_estimator"]

install_config_module(sys.modules[__name__])
