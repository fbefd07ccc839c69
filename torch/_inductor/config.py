"""Settings of the compiler. The first part decides something; those under "accepted" belong to
machinery that does not exist here: they can be set and read, and change nothing. Which these are
is read from this file (torch/_inductor/settings.py), so a setting stands on the right side."""

import os
import sys

from torch.utils._config_module import install_config_module


def _flag(name: str, default: str = "0") -> bool:
    return os.environ.get(name, default) == "1"


# ---- functions that change graphs on the way. Each is given an fx.Graph; a CustomGraphPass
# (torch._inductor.custom_graph_pass) also says what it is, so that results can be cached.
pre_grad_custom_pass: object = None
joint_custom_pre_pass: object = None
joint_custom_post_pass: object = None
post_grad_custom_pre_pass: object = None
post_grad_custom_post_pass: object = None
# Divides a joint graph instead of min_cut_rematerialization_partition.
custom_partitioner_fn: object = None
# Passes of each stage, and the patterns that they and users register.
use_pre_grad_passes: bool = True
use_joint_graph_passes: bool = True
use_post_grad_passes: bool = True
pattern_matcher: bool = True
# Networks of convolutions on a GPU are computed with the channels innermost.
layout_optimization: bool = _flag("TORCHINDUCTOR_LAYOUT_OPTIMIZATION", "1")
# Names of pre-grad and post-grad pattern passes that are asked for, each with its options.
pre_grad_fusion_options: dict = {}
post_grad_fusion_options: dict = {}

# ---- what is compiled
# Parameters of inference graphs become constants, and what depends on them alone is computed once.
freezing: bool = _flag("TORCHINDUCTOR_FREEZING")
# Permutations next to matrix products are taken into them.
permute_fusion: bool = False
# Random numbers on GPUs come from the operators of eager code.
fallback_random: bool = False
fx_graph_cache: bool = _flag("TORCHINDUCTOR_FX_GRAPH_CACHE", "1")
force_disable_caches: bool = _flag("TORCHINDUCTOR_FORCE_DISABLE_CACHES")

# ---- what is said and checked
# Prints the plan of every graph.
debug: bool = False  # @compile_ignored
# Results of kernels are looked at for NaN and infinity; the first bad kernel is named.
nan_asserts: bool = _flag("TORCHINDUCTOR_NAN_ASSERTS")
_raise_error_for_testing: bool = False


class trace:
    """What TORCH_COMPILE_DEBUG=1 leaves behind."""

    enabled: bool = _flag("TORCH_COMPILE_DEBUG")
    # Where folders of artifacts are made; None: torch._dynamo.config.debug_dir_root.
    debug_dir: object = None
    save_real_tensors: bool = _flag("TORCH_COMPILE_DEBUG_SAVE_REAL")
    fx_graph: bool = True
    fx_graph_transformed: bool = True
    ir_pre_fusion: bool = True
    ir_post_fusion: bool = True
    output_code: bool = True
    upload_tar: object = None
    # ---- accepted
    debug_log: bool = False
    info_log: bool = False
    compile_profile: bool = False
    dot_graph_shape: object = None
    draw_orig_fx_graph: bool = False
    graph_diagram: bool = False
    graph_diagram_format: str = "svg"
    log_autotuning_results: bool = False
    log_url_for_graph_xform: object = None
    orig_fx_graph_diagram_format: str = "svg"
    provenance_tracking_level: int = 0


class cpp:
    """Kernels for the CPU."""

    threads: int = -1
    # Kernels that ran over millions of elements are compiled by the system's compiler meanwhile.
    compile_hot_kernels: bool = _flag("TORCHINDUCTOR_COMPILE_HOT_KERNELS", "1")
    hot_kernel_elements: int = 1 << 22
    # Such kernels run beside the loops they replace for ever; one whose bits differ is dropped.
    check_tiers: bool = _flag("TORCHINDUCTOR_TIER_CHECK", "0")
    # Bits of the vectors that cpu_vec_isa.pick_vec_isa names; None: the widest.
    simdlen: object = None
    # Names of the compiler, the first that is there.
    cxx: tuple = (None, "g++")
    # Faults on purpose, for tests of the minifier: "compile_error", "runtime_error", "accuracy".
    inject_relu_bug_TESTING_ONLY: object = None
    inject_log1p_bug_TESTING_ONLY: object = None
    # ---- accepted
    descriptive_names: str = "original_aten"
    dynamic_threads: bool = False
    enable_concat_linear: bool = False
    enable_floating_point_contract_flag: str = "off"
    enable_grouped_gemm_template: bool = False
    enable_kernel_profile: bool = False
    enable_loop_tail_vec: bool = True
    enable_tiling_heuristics: bool = True
    enable_unsafe_math_opt_flag: bool = False
    fallback_scatter_reduce_sum: bool = True
    force_inline_kernel: bool = False
    gemm_cache_blocking: object = None
    gemm_max_k_slices: int = 1
    gemm_thread_factors: object = None
    march: object = None
    max_horizontal_fusion_size: int = 16
    min_chunk_size: int = 512
    no_redundant_loops: bool = True
    use_constexpr_for_int_array: bool = True
    use_decompose_tanh: bool = False
    use_small_dequant_buffer: bool = False
    use_two_step_variance_threshold: int = 1024
    vec_isa_ok: object = None
    weight_prepack: bool = True


class triton:
    """Kernels for GPUs."""

    # Every compiled graph is recorded as a CUDA graph.
    cudagraphs: bool = _flag("TORCHINDUCTOR_CUDAGRAPHS")
    # Those are whose launches take longer than their kernels.
    record_launch_bound: bool = _flag("TORCHINDUCTOR_RECORD_LAUNCH_BOUND", "1")
    # The operators of a graph run one by one, with the same bits, until its kernels are compiled.
    compile_in_background: bool = _flag("TORCHINDUCTOR_CUDA_BACKGROUND", "1")
    # The host waits for the device after every graph, or after every operator, which run one by
    # one: an error is then that of the operator it names.
    debug_sync_graph: bool = False
    debug_sync_kernel: bool = False

    # ---- accepted
    unique_kernel_names: bool = _flag("TORCHINDUCTOR_UNIQUE_KERNEL_NAMES", "1")
    autotune_at_compile_time: object = None
    autotune_cublasLt: bool = True
    autotune_pointwise: bool = True
    autotune_with_sample_inputs: bool = False
    coalesce_tiling_analysis: bool = True
    codegen_upcast_to_fp32: bool = True
    cooperative_reductions: bool = False
    cudagraph_capture_sizes: object = None
    cudagraph_dynamic_shape_warn_limit: int = 8
    cudagraph_min_partition_size: int = 0
    cudagraph_or_error: bool = False
    cudagraph_partition_memory_budget: float = 1.1
    cudagraph_skip_dynamic_graphs: bool = False
    cudagraph_support_input_mutation: bool = True
    cudagraph_trees: bool = True
    cudagraph_trees_history_recording: bool = False
    cudagraph_trees_objgraph: bool = False
    cudagraph_unexpected_rerecord_limit: int = 128
    debug_dump_kernel_inputs: dict = {}
    decompose_k_threshold: int = 32
    decompose_sort_ops: bool = False
    dense_indexing: bool = False
    descriptive_names: str = "original_aten"
    disallow_failing_autotune_kernels_TESTING_ONLY: bool = False
    divisible_by_16: bool = True
    dynamic_disable_pipelining: bool = True
    emit_pointer_range_32: bool = True
    enable_pdl: bool = False
    enable_persistent_tma_matmul: bool = False
    enable_template_tma_store: bool = False
    enable_tma_load_for_template_epilogue: bool = False
    fast_path_cudagraph_asserts: bool = False
    force_cooperative_reductions: bool = False
    force_cudagraph_sync: bool = False
    force_cudagraphs_warmup: bool = False
    inject_relu_bug_TESTING_ONLY: object = None
    max_kernel_dump_occurrences: int = 3
    max_tiles: object = None
    min_split_scan_rblock: int = 256
    mix_order_reduction: bool = True
    mix_order_reduction_allow_multi_stages: bool = True
    mix_order_reduction_autotune_split_size: bool = False
    mix_order_reduction_initial_xblock: int = 1
    mix_order_reduction_max_reads: int = 10
    mix_order_reduction_non_strict_mode: bool = False
    mix_order_reduction_split_size: object = None
    multi_kernel: int = 0
    native_matmul: bool = False
    nested_reduction: bool = False
    num_decompose_k_splits: int = 10
    persistent_reductions: bool = True
    prefer_nd_tiling: bool = False
    skip_cudagraph_warmup: bool = False
    skip_l1_cache: bool = False
    slow_path_cudagraph_asserts: bool = True
    spill_threshold: int = 16
    store_cubin: bool = False
    tile_reductions: bool = False
    tiling_prevents_pointwise_fusion: bool = True
    tiling_prevents_reduction_fusion: bool = True
    transpose_discontiguous_tensor_descriptor: bool = True
    unique_user_kernel_names: bool = False
    use_block_ptr: bool = False
    use_tensor_descriptor: bool = False
    use_two_step_variance_min_numel: int = 1024
    use_two_step_variance_threshold: int = 32768


class aot_inductor:
    """Compiled models in files."""

    # Texts that the file holds for whoever loads it.
    metadata: dict = {}
    # Where aot_compile writes: a file (.pt2, .so) or a folder; a folder of the store otherwise.
    output_path: str = ""
    # aot_compile returns the files that package_aoti takes.
    package: bool = False
    # Whether parameters and buffers are in the file; else load_constants gives them.
    package_constants_in_so: bool = True
    # A program that fails leaves a launcher (torch/_dynamo/repro/aoti.py), by repro_level.
    dump_aoti_minifier: bool = _flag("DUMP_AOTI_MINIFIER")
    repro_level: int = int(os.environ.get("AOTINDUCTOR_REPRO_LEVEL", "2"))
    # What depends on constants alone is computed when they are loaded, not when it is compiled.
    use_runtime_constant_folding: bool = False

    # ---- accepted
    allow_stack_allocation: bool = False
    aoti_shim_library: object = None
    aoti_shim_library_path: object = None
    autotune_per_kernel_alloc: bool = False
    check_lowerbound: bool = True
    compile_wrapper_opt_level: str = "O1"
    cross_target_platform: object = None
    custom_op_libs: object = None
    custom_ops_to_c_shims: dict = {}
    debug_compile: bool = False
    debug_intermediate_value_printer: str = "0"
    debug_symbols: bool = False
    dynamic_linkage: bool = True
    embed_kernel_binary: object = None
    emit_multi_arch_kernel: object = None
    enable_frame_pointer: bool = True
    enable_line_tables: bool = True
    enable_lto: bool = False
    filtered_kernel_names: object = None
    force_mmap_weights: bool = False
    link_libtorch: bool = True
    model_name_for_generated_files: object = None
    package_constants_on_disk_format: object = None
    package_cpp_only: object = None
    precompile_headers: bool = True
    presets: dict = {}
    raise_error_on_ignored_optimization: bool = True
    serialized_in_spec: str = ""
    serialized_out_spec: str = ""
    use_consts_asm_build: bool = True
    use_minimal_arrayref_interface: bool = False
    weight_use_caching_allocator: bool = False


class cuda:
    """Compiling for CUDA."""

    # ---- accepted
    arch: object = None
    compile_opt_level: str = "-O1"
    enable_debug_info: bool = False
    use_fast_math: bool = False
    version: object = None


class test_configs:
    """Checks of other code generators' own tests."""

    # ---- accepted
    autotune_choice_desc_regex: object = None
    autotune_choice_name_regex: object = None
    force_extern_kernel_in_multi_template: bool = False
    graphsafe_rng_func_ignores_fallback_random: bool = False
    max_mm_configs: object = None
    runtime_triton_dtype_assert: bool = False
    static_cpp_dtype_assert: bool = False
    track_memory_lifecycle: object = None
    use_libtorch: bool = False


class halide:
    """Another code generator, which is not here."""

    # ---- accepted
    asserts: bool = False
    cpu_target: str = "host"
    debug: bool = False
    gpu_target: str = "host-cuda"
    scan_kernels: bool = False
    scheduler_cpu: str = "Adams2019"
    scheduler_cuda: str = "Anderson2021"


# ---- accepted
freezing_discard_parameters: bool = False
max_autotune: bool = _flag("TORCHINDUCTOR_MAX_AUTOTUNE")
coordinate_descent_tuning: bool = _flag("TORCHINDUCTOR_COORDINATE_DESCENT_TUNING")
epilogue_fusion: bool = True
allow_buffer_reuse: bool = True
compile_threads: int = int(os.environ.get("TORCHINDUCTOR_COMPILE_THREADS", os.cpu_count() or 1))
size_asserts: bool = _flag("TORCHINDUCTOR_SIZE_ASSERTS", "1")
joint_graph_constant_folding: bool = True
_cache_config_factory_keys: list = ["inductor_choices_class"]
_conv_default_backends: str = "ATEN"
_pre_fusion_custom_pass: object = None
_realize_acc_reads_threshold_default: int = 8
_realize_opcount_threshold_default: int = 30
add_pre_grad_passes: object = None
aggressive_fusion: bool = False
align_random_eager: bool = False
alignment_asserts: bool = True
always_keep_tensor_constants: bool = False
annotate_training: bool = False
apply_gumbel_max_trick: bool = True
assert_indirect_indexing: bool = True
assume_32bit_indexing: bool = False
assume_aligned_inputs: bool = False
assume_unaligned_fallback_output: bool = False
autotune_fallback_to_aten: bool = False
autotune_in_subproc: bool = False
autotune_local_cache: bool = True
autotune_lookup_table: dict = {}
autotune_multi_device: bool = False
autotune_num_choices_displayed: int = 10
autotune_remote_cache: object = None
b2b_gemm_pass: bool = False
batch_fusion: bool = True
batch_invariant: bool = False
benchmark_combo_kernel: bool = False
benchmark_epilogue_fusion: bool = True
benchmark_fusion: bool = False
benchmark_harness: bool = True
benchmark_kernel: bool = False
bundle_triton_into_fx_graph_cache: bool = True
bw_outputs_user_visible: bool = True
cache_sdpa_constraint: bool = False
can_inplace_pad_graph_input: bool = False
check_stack_no_cycles_TESTING_ONLY: bool = False
combo_kernels: bool = False
combo_kernels_autotune: int = 1
combo_kernels_pointwise_only: bool = False
comment_origin: bool = False
compile_worker_wait_timeout: int = 0
comprehensive_padding: bool = True
compute_all_bounds: bool = False
constant_and_index_propagation: bool = True
conv_1x1_as_mm: bool = False
coordinate_descent_check_all_directions: bool = False
coordinate_descent_search_radius: int = 1
cpp_cache_precompile_headers: bool = True
cpp_wrapper_build_separate: bool = False
cpu_backend: str = "cpp"
cpu_gpu_bw: float = 50.0
cuda_backend: str = "triton"
custom_should_partition_ops: list = []
dce: bool = False
debug_fusion: bool = False
debug_index_asserts: bool = False
debug_ir_traceback: bool = False
decompose_mem_bound_mm: bool = False
delay_realize_cheap_outputs: bool = True
deterministic: bool = False
developer_warnings: bool = False
disable_cpp_codegen: bool = False
disable_padding_cpu: bool = True
disable_progress: bool = True
disabled_passes: str = ""
do_not_emit_runtime_assertions: bool = False
dynamic_scale_rblock: bool = True
efficient_conv_bn_eval_fx_passes: bool = False
emulate_precision_casts: bool = False
emulate_precision_casts_on_saved_tensors: bool = True
enable_auto_functionalized_v2: bool = True
enable_autograd_for_aot: bool = False
enable_caching_generated_triton_templates: bool = True
enable_linear_binary_folding: bool = False
enabled_metric_tables: str = ""
epilogue_fusion_first: bool = False
epilogue_fusion_user_defined_triton_kernel: bool = False
epilogue_fusion_with_atomic_add: bool = False
estimate_op_runtime: str = "default"
expand_dimension_for_pointwise_nodes: bool = False
external_matmul: list = []
fallback_by_default: bool = False
fallback_embedding_bag_byte_unpack: bool = False
file_lock_timeout: int = 600
force_disable_cudagraph_TESTING_ONLY: bool = False
force_fuse_int_mm_with_mul: bool = False
force_layout_optimization: bool = False
force_pointwise_cat: bool = False
force_shape_pad: bool = False
fx_graph_remote_cache: object = None
fx_wrapper: bool = False
global_cache_dir: object = None
graph_partition: bool = True
group_fusion: bool = False
inductor_choices_class: object = None
inductor_default_autotune_rep: int = 100
inductor_default_autotune_warmup: int = 25
inplace_buffers: bool = True
inplace_padding: bool = True
is_predispatch: bool = False
keep_addmm_fused_for_half_dtypes: bool = True
keep_output_stride: bool = True
kernel_name_max_ops: int = 10
layout_opt_default: str = "1"
log_tlparse: bool = False
loop_index_inversion_in_fusion: bool = True
loop_ordering_after_fusion: bool = True
loop_reindexing_after_fusion: bool = True
max_autotune_allow_flexible_layouts: bool = False
max_autotune_conv_backends: str = "ATEN,TRITON"
max_autotune_conv_bwd_input_backends: str = "ATEN"
max_autotune_conv_bwd_weight_backends: str = "ATEN"
max_autotune_flex_search_space: str = "DEFAULT"
max_autotune_gemm: bool = False
max_autotune_gemm_backends: str = "ATEN,TRITON,CPP"
max_autotune_gemm_search_space: str = "DEFAULT"
max_autotune_pointwise: bool = False
max_autotune_prune_choices_based_on_shared_mem: bool = False
max_autotune_report_choices_stats: bool = True
max_complex_pointwise_cat_inputs: int = 8
max_epilogue_benchmarked_choices: int = 1
max_fusion_buffer_group_pairwise_attempts: int = 64
max_fusion_size: int = 64
max_fusion_unique_io_buffers: object = None
max_pointwise_cat_inputs: int = 8
memory_planning: bool = False
memory_pool: str = "intermediates"
min_num_split: int = 0
min_overlap_ratio: float = 1.1
mixed_mm_choice: str = "heuristic"
multi_kernel_hints: list = []
online_softmax: bool = True
optimize_scatter_upon_const_tensor: bool = True
pad_channels_last: bool = False
pad_dynamic_shapes: bool = False
pad_outputs: bool = False
padding_alignment_bytes: int = 128
padding_stride_threshold: int = 1024
pick_loop_orders: bool = True
pre_grad_pass_timing: str = "default"
precompilation_timeout_seconds: int = 300
profile_bandwidth: bool = False
profile_bandwidth_output: object = None
profile_bandwidth_regex: str = ""
profile_bandwidth_with_do_bench_using_profiling: bool = False
profiler_mark_wrapper_call: bool = False
prologue_fusion: bool = True
realize_acc_reads_size_threshold: object = None
realize_acc_reads_threshold: object = None
realize_cpu_acc_reads_threshold: int = 12
realize_cpu_opcount_threshold: int = 50
realize_opcount_threshold: object = None
realize_reads_threshold: int = 4
remove_pre_grad_passes: object = None
run_jit_post_compile_hook: bool = False
runtime_estimations_mms_benchmark: bool = False
runtime_triton_nan_asserts: bool = False
save_args: bool = False
scalar_asserts: bool = True
score_fusion_memory_threshold: int = 10
search_autotune_cache: bool = False
selective_decompose: bool = False
shape_padding: bool = True
size_threshold_for_succ_based_strategy: int = 0
sleep_sec_TESTING_ONLY: object = None
small_memory_access_threshold: int = 16777216
split_cat_fx_passes: bool = True
split_reductions: bool = True
static_weight_shapes: bool = True
triton_disable_device_detection: bool = False
triton_kernel_default_layout_constraint: str = "needs_fixed_stride_order"
unbacked_symint_fallback: int = 8192
unroll_reductions_threshold: int = 8
unsafe_ignore_unsupported_triton_autotune_args: bool = False
unsafe_marked_cacheable_functions: dict = {}
unsafe_skip_cache_dynamic_shape_guards: bool = False
use_dce: bool = True
use_experimental_benchmarker: bool = True
use_fast_math: bool = False
use_mixed_mm: bool = True
use_torch_profiler_benchmarker: bool = False
verbose_progress: bool = False
warn_mix_layout: bool = False
wrap_inductor_compiled_regions: bool = False
write_are_deterministic_algorithms_enabled: bool = True
implicit_fallbacks: bool = True
generate_intermediate_hooks: bool = False
cpp_wrapper: bool = _flag("TORCHINDUCTOR_CPP_WRAPPER")
reorder_for_compute_comm_overlap: bool = False
reorder_for_peak_memory: bool = True
autoheuristic_log_path: str = "DEFAULT"
bucket_all_gathers_bucket_mode: str = "default"
bucket_all_gathers_fx: str = "none"
bucket_all_gathers_fx_bucket_size_determinator: object = None
bucket_all_reduces_fx: str = "none"
bucket_all_reduces_fx_bucket_size_determinator: object = None
bucket_reduce_scatters_bucket_mode: str = "default"
bucket_reduce_scatters_fx: str = "none"
bucket_reduce_scatters_fx_bucket_size_determinator: object = None
bundled_autotune_remote_cache: object = None
collective_benchmark_nruns: int = 50
collective_benchmark_timeout: float = 30.0
combo_kernel_allow_mixed_sizes: int = 1
combo_kernel_autotune_grouping: bool = True
combo_kernel_foreach_dynamic_shapes: bool = True
combo_kernel_max_distance: int = -1
combo_kernel_max_num_args: int = 250
combo_kernel_max_num_nodes: int = 8
combo_kernel_peak_memory_increase_gb: object = None
combo_kernel_peak_memory_pct_threshold: float = 0.05
combo_kernel_per_subkernel_blocks: bool = False
cudagraph_policy: object = None
cudagraph_unsafe_unbacked_ops: list = []
cutedsl_enable_autotuning: bool = False
dedup_reduce_scatters: bool = False
distributed_max_autotune_gemm: bool = False
fx_passes_numeric_check: dict = {
    "pre_grad": False,
    "precision": 0.0001,
    "num_iterations": 1,
    "requires_optimizer": True,
}
incremental_autotune: bool = False
inter_node_bw: object = None
intra_node_bw: object = None
is_nightly_or_source: bool = False
keep_static_cubin_raw: bool = False
max_autotune_subproc_graceful_timeout_seconds: float = 0.0
max_autotune_subproc_result_timeout_seconds: float = 60.0
max_autotune_subproc_terminate_timeout_seconds: float = 0.0
non_blocking_remote_cache_write: bool = True
nvgemm_max_profiling_configs: int = 5
nvgemm_supplement_configs: bool = False
partitioned_scatter_enabled: bool = False
partitioned_scatter_max_partitions: int = 128
partitioned_scatter_memory_budget: float = 0.1
partitioned_scatter_min_partitions: int = 2
pipeline_max_autotune_gemm: bool = False
quiesce_async_compile_pool: bool = True
quiesce_async_compile_time: int = 60
remote_gemm_autotune_cache: bool = False
reorder_for_compute_comm_overlap_passes: list = []
reorder_for_locality: bool = True
reorder_for_peak_memory_debug: bool = False
reorder_prefetch_limit: object = None
static_launch_user_defined_triton_kernels: bool = False
strict_static_cuda_launcher: bool = False
strict_static_triton_launcher: bool = False
torchinductor_worker_logpath: str = ""
tpu_backend: str = "pallas"
use_fast_triton_launcher: bool = True
use_launch_metadata_schema: bool = True
use_static_cuda_launcher: bool = True
use_static_triton_launcher: bool = True
worker_log_path: object = None
worker_start_method: str = "subprocess"
worker_suppress_logging: bool = True
xpu_backend: str = "triton"
_save_config_ignore: list = [
    "trace.upload_tar",
    "pre_grad_custom_pass",
    "joint_custom_pre_pass",
    "joint_custom_post_pass",
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
    "aot_inductor.repro_level",
    "aot_inductor.dump_aoti_minifier",
]
_cache_config_ignore_prefix: list = [
    "trace",
    "compile_threads",
    "pre_grad_custom_pass",
    "joint_custom_pre_pass",
    "joint_custom_post_pass",
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
]

install_config_module(sys.modules[__name__])
