"""Settings of the tracer. Those of machinery that does not exist here are accepted, kept and
without effect; they are the ones under "accepted"."""

import os
import sys
from os.path import abspath, dirname

from torch.utils._config_module import Config, install_config_module


def _flag(name: str, default: str = "0") -> bool:
    return os.environ.get(name, default) == "1"


# ---- what is compiled, and how often
disable: bool = _flag("TORCH_COMPILE_DISABLE")
recompile_limit: int = 8
accumulated_recompile_limit: int = 256
skip_code_recursive_on_recompile_limit_hit: bool = True
fail_on_recompile_limit_hit: bool = False
error_on_recompile: bool = False
cache_size_limit: int = Config(alias="torch._dynamo.config.recompile_limit")
accumulated_cache_size_limit: int = Config(alias="torch._dynamo.config.accumulated_recompile_limit")
skip_code_recursive_on_cache_limit_hit: bool = Config(
    alias="torch._dynamo.config.skip_code_recursive_on_recompile_limit_hit"
)
fail_on_cache_limit_hit: bool = Config(alias="torch._dynamo.config.fail_on_recompile_limit_hit")
error_on_nested_fx_trace: bool = True
error_on_nested_jit_trace: bool = True
suppress_errors: bool = _flag("TORCHDYNAMO_SUPPRESS_ERRORS")
# Compiled frames are kept between processes (torch/_dynamo/regions.py).
region_cache: bool = _flag("TORCHDYNAMO_REGION_CACHE", "1")
minimum_call_count: int = 1
raise_on_ctx_manager_usage: bool = True
raise_on_unsafe_aot_autograd: bool = False
report_guard_failures: bool = True
enable_compiler_collectives: bool = _flag("TORCH_COMPILER_COLLECTIVES")

# ---- sizes and numbers
dynamic_shapes: bool = True
automatic_dynamic_shapes: bool = True
automatic_dynamic_shapes_mark_as: str = "dynamic"
automatic_dynamic_local_pgo: bool = _flag("TORCH_DYNAMO_AUTOMATIC_DYNAMIC_LOCAL_PGO", "1")
automatic_dynamic_remote_pgo: bool | None = None
assume_static_by_default: bool = True
assume_dunder_attributes_remain_unchanged: bool = True
specialize_int: bool = False
specialize_float: bool = False
use_duck_shape: bool = True
prefer_deferred_runtime_asserts_over_guards: bool = False
allow_complex_guards_as_runtime_asserts: bool = False
force_unspec_int_unbacked_size_like_on_torchrec_kjt: bool = False
capture_scalar_outputs: bool = _flag("TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS")
capture_dynamic_output_shape_ops: bool = _flag("TORCHDYNAMO_CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS")
dynamic_sources: str = os.environ.get("TORCH_COMPILE_DYNAMIC_SOURCES", "")
unbacked_sources: str = os.environ.get("TORCH_COMPILE_UNBACKED_SOURCES", "")

# ---- modules and attributes
guard_nn_modules: bool = True
force_nn_module_property_static_shapes: bool = True
force_parameter_static_shapes: bool = True
guard_nn_modules_using_dict_tags: bool = True
inline_inbuilt_nn_modules: bool = True
install_free_tensors: bool = False
allow_unspec_int_on_nn_module: bool = True
skip_nnmodule_hook_guards: bool = True
skip_no_tensor_aliasing_guards_on_parameters: bool = True
skip_tensor_guards_with_matching_dict_tags: bool = True
skip_guards_on_constant_func_defaults: bool = True
issue_3_13_0_warning: bool = True
allow_rnn: bool = False
traceable_tensor_subclasses: set[type] = set()
nontraceable_tensor_subclasses: set[type] = set()
skip_torchrec: bool = True
dont_skip_tracing: bool = False
skipfiles_inline_module_allowlist: dict[str, bool] = {}
reorderable_logging_functions: set[object] = set()
ignore_logger_methods: set[object] = set()
ignore_logging_functions: set[object] = set()
constant_functions: dict[object, bool] = {}
allowed_functions_module_string_ignorelist: set[str] = set()
inline_torch_dispatch_modes: bool = True
skip_fsdp_guards: bool = True
skip_fsdp_hooks: bool = True
only_allow_pt2_compliant_ops: bool = False
trace_numpy: bool = True
use_numpy_random_stream: bool = False
enable_trace_contextlib: bool = True
enable_trace_unittest: bool = False
enable_faithful_generator_behavior: bool = True
capture_func_transforms: bool = True
capture_autograd_function: bool = True
allow_empty_graphs: bool = False
nested_graph_breaks: bool = _flag("TORCH_DYNAMO_NESTED_GRAPH_BREAKS")
record_runtime_overhead: bool = True
graph_break_on_nn_param_ctor: bool = True
enable_autograd_cache: bool = False
fake_tensor_cache_enabled: bool = True
fake_tensor_cache_crosscheck_enabled: bool = False
fake_tensor_disable_inference_mode: bool = True
run_gc_after_compile: bool = True
use_graph_deduplication: bool = False
track_nodes_for_deduplication: bool = False
graph_deduplication_lint: bool = False
caching_precompile: bool = _flag("TORCH_CACHING_PRECOMPILE")
strict_precompile: bool = _flag("TORCH_STRICT_PRECOMPILE")
wrap_top_frame: bool = False

# ---- what is said
verbose: bool = _flag("TORCHDYNAMO_VERBOSE")  # @compile_ignored
log_level: int | None = None  # @compile_ignored
log_file_name: str | None = None  # @compile_ignored
output_code: bool = False  # @compile_ignored
print_graph_breaks: bool = False  # @compile_ignored
log_graph_in_out_metadata: bool = False  # @compile_ignored
log_compilation_metrics: bool = True  # @compile_ignored
print_specializations: bool = False  # @compile_ignored
debug_dir_root: str = os.path.join(os.getcwd(), "torch_compile_debug")  # @compile_ignored
debug_backend_fn: object = None  # @compile_ignored
base_dir: str = dirname(dirname(dirname(abspath(__file__))))  # @compile_ignored
trace_distributed: bool = False  # @compile_ignored
verify_correctness: bool = False

# ---- failing programs, written down
repro_after: str | None = os.environ.get("TORCHDYNAMO_REPRO_AFTER")
repro_level: int = int(os.environ.get("TORCHDYNAMO_REPRO_LEVEL", "2"))
repro_forward_only: bool = _flag("TORCHDYNAMO_REPRO_FORWARD_ONLY")
repro_tolerance: float = 1e-3
repro_ignore_non_fp: bool = _flag("TORCHDYNAMO_REPRO_IGNORE_NON_FP")
same_two_models_use_fp64: bool = True
replay_record_enabled: bool = _flag("TORCH_COMPILE_REPLAY_RECORD")
rewrite_assert_with_torch_assert: bool = True
do_not_emit_runtime_asserts: bool = _flag("TORCH_DYNAMO_DO_NOT_EMIT_RUNTIME_ASSERTS")
translation_validation: bool = False
translation_validation_no_bisect: bool = False

# ---- accepted
optimize_ddp: bool = True
_ddp_optimization_mode: list[str] = [
    "ddp_optimizer", "python_reducer", "python_reducer_without_compiled_forward", "no_optimization",
]  # fmt: skip
compiled_autograd: bool = False
compiled_autograd_kwargs_override: dict[str, object] = {}
cudagraph_backend_keep_input_mutation: bool = False
cudagraph_backend_support_input_mutation: bool = False
prepare_freezing: bool = _flag("TORCHDYNAMO_PREPARE_FREEZING")
enable_cpp_guard_manager: bool = True
enable_cpp_framelocals_guard_eval: bool = True
enable_cpp_symbolic_shape_guards: bool = True
enable_guard_collectives: bool = _flag("TORCHDYNAMO_ENABLE_GUARD_COLLECTIVES")
side_effect_replay_policy: str = "silent"
numpy_default_float: str = "float64"
numpy_default_complex: str = "complex128"
numpy_default_int: str = "int64"
use_lazy_graph_module: bool = _flag("TORCH_COMPILE_USE_LAZY_GRAPH_MODULE", "1")
use_recursive_dict_tags_for_guards: bool = True
max_saved_pointers_for_recursive_dict_tags_check: int = 256
reorderable_ops: set[object] = set()
external_utils_inline: bool = True
skip_fwd_side_effects_in_bwd_under_checkpoint: bool = False
_autograd_backward_strict_mode_banned_ops: list[str] = []
_autograd_backward_strict_mode_conditional_banned_ops: list[str] = ["stride", "storage_offset"]
_save_config_ignore: list[str] = [
    "repro_after", "repro_level", "constant_functions", "skipfiles_inline_module_allowlist",
]  # fmt: skip
fake_tensor_cache_check_interval: int = 0
allow_ignore_mark_dynamic: bool = False
automatic_dynamic_exclusion_guard: bool = False
capture_profiler_record_function: bool = False
capture_sparse_compute: bool = True
constant_fold_autograd_profiler_enabled: bool = False
cprofile: bool = False
dead_code_elimination: bool | None = None
debug_backend_override: str = ""
debug_disable_compile_counter: bool = False
debug_dynamo_config_override: str = ""
debug_force_graph_break_on_leaf_return: bool = False
debug_force_nested_calls: bool = False
debug_inductor_config_override: str = ""
dynamo_profiler: bool = False
enable_aot_compile: bool = True
enable_dynamo_decompositions: bool = True
enable_invoke_subgraph_regional_compile: bool = False
enable_p2p_compilation: bool = False
enable_trace_load_build_class: bool = False
error_on_dynamo_callback_in_fullgraph_compiled_code: bool = False
force_compile_during_fx_trace: bool = False
generate_pycode: bool = False
inject_BUILD_SET_unimplemented_TESTING_ONLY: bool = False
inline_invoke_subgraph: bool = False
inline_single_use_invoke_subgraph: bool = True
inline_torch_dispatch_torch_compile: bool = True
install_free_tensors_for_export: bool = True
invalidate_compile_context_weakrefs: bool | None = None
leaf_function_check_escaped_gradients: bool = False
leaf_function_validate_outputs: bool = False
optimize_ddp_lazy_compile: bool = False
pt2_compile_id_prefix: str | None = None
record_compile_time_instruction_count: bool = False
replay_side_effects: bool = True
trace_autograd_ops: bool = False
use_lamba_guard_for_object_aliasing: bool = True

_custom_ops_profile: object = None


def is_fbcode() -> bool:
    """Whether this is a build of one particular company: no."""
    return False


install_config_module(sys.modules[__name__])
