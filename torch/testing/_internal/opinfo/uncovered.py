"""Operators of native_functions.yaml that no record calls by themselves, each with the reason.
test/ops/test_op_records.py fails for an operator that is neither here nor covered by a record, and
for an entry here that is no longer needed."""

_BACKWARD = "a gradient: called and checked through the gradient of its forward operator"
_QUESTION = "answers a question about a tensor's properties; test/tensor/test_tensor_type.py"
_MEMORY = (
    "changes the memory of a tensor, not its values; test/ops/test_ops_shape.py, test_runtime.py"
)
_PART = "a part of another operator, called by it"
_VIEW = "a form of a recorded view that only the compiler and the function transforms call"
_DTYPES = "works on dtypes; test/tensor/test_tensor_type.py"
_LINALG_PART = "a part of the public linear algebra function, called by it"

_QUESTIONS = """
    is_same_size dim numel storage_offset is_contiguous is_complex is_floating_point is_signed
    is_conj is_neg is_inference is_distributed _has_same_storage_numel size stride sym_size
    sym_stride sym_numel sym_storage_offset _fused_sdp_choice _assert_tensor_metadata
"""
_VIEWS = """
    _aminmax _unsafe_view _reshape_alias _reshape_copy _reshape_alias_copy slice_inverse
    unsafe_split_with_sizes slice_copy _shape_as_tensor _reshape_from_tensor
"""
_PARTS = """
    _conj_physical _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors
    _weight_norm
    _cross_entropy_rows _attention_by_products _fused_attention _cudnn_attention _fft_c2c _fft_r2c
    _fft_c2r _upsample_lanczos2d_aa _native_multi_head_attention _transform_bias_rescale_qkv
"""
_MEMORIES = "resize_ resize_as_ set_ is_pinned pin_memory _pin_memory"
_NESTED = "takes nested tensors, or makes their padded form; test/nested/test_nested.py"
_NESTEDS = """
    to_padded_tensor nested_to_padded_tensor _jagged_to_padded_dense_forward
    _padded_dense_to_jagged_forward
"""
_ROUNDING = "its derivative is not that of its values; test/ops/test_fake_quantize.py"
_ROUNDINGS = """
    fake_quantize_per_tensor_affine fake_quantize_per_tensor_affine_cachemask
    _fake_quantize_per_tensor_affine_cachemask_tensor_qparams fake_quantize_per_channel_affine
    fake_quantize_per_channel_affine_cachemask
"""
_QUANTIZED = "takes or makes quantized tensors; test/quantized/test_quantized_tensor.py"
_QUANTIZEDS = """
    quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize q_scale
    q_zero_point q_per_channel_scales q_per_channel_zero_points q_per_channel_axis int_repr
    _choose_qparams_per_tensor _make_per_tensor_quantized_tensor _make_per_channel_quantized_tensor
    _empty_affine_quantized _empty_per_channel_affine_quantized empty_quantized
"""
_OTHER_DEVICE = "copies to and from devices of other packages; test/utils/test_private_device.py"
_DENSE = "helpers of data-parallel training; test/ops/test_ops_shape.py"

UNCOVERED = {
    **dict.fromkeys(_MEMORIES.split(), _MEMORY),
    **dict.fromkeys("result_type can_cast promote_types".split(), _DTYPES),
    **dict.fromkeys(_VIEWS.split(), _VIEW),
    **dict.fromkeys("flatten_dense_tensors unflatten_dense_tensors".split(), _DENSE),
    **dict.fromkeys(_QUESTIONS.split(), _QUESTION),
    **dict.fromkeys(_NESTEDS.split(), _NESTED),
    **dict.fromkeys(("_copy_from", "_copy_from_and_resize"), _OTHER_DEVICE),
    **dict.fromkeys(_PARTS.split(), _PART),
    **dict.fromkeys(_ROUNDINGS.split(), _ROUNDING),
    **dict.fromkeys(_QUANTIZEDS.split(), _QUANTIZED),
    "_fused_clip_grad_norm": "runs on CUDA only; test/cuda/test_cuda_optim.py",
    "infinitely_differentiable_gelu_backward": _BACKWARD,
    "_dirichlet_grad": _BACKWARD,
    "_addmm_activation": "addmm and an activation; test/dispatch/test_function_schema.py",
    "_int_mm": "takes 8-bit integers only; test/ops/test_ops_integer_products.py",
    "_scaled_mm": "takes 8-bit floating numbers only; test/utils/test_names_of_projects.py",
    "_weight_int8pack_mm": "takes 8-bit weights only; test/ops/test_ops_integer_products.py",
    "_weight_int4pack_mm_for_cpu": "takes packed weights; test/quantized/test_weight_only.py",
    "_weight_int4pack_mm": "packed weights on CUDA; test/cuda/test_cuda_int4.py",
    "_convert_weight_to_int4pack": "packs weights on CUDA; test/cuda/test_cuda_int4.py",
    "_convert_weight_to_int4pack_for_cpu": "packs weights; test/quantized/test_weight_only.py",
    "_standard_gamma_grad": _BACKWARD,
    "embedding_renorm": "writes into the table it reads; test/ops/test_ops_embedding.py",
}


def reason(name):
    """Why no record calls the operator, or None."""
    if name in UNCOVERED:
        return UNCOVERED[name]
    if name.endswith(("_backward", "_backward_data")):
        return _BACKWARD
    if name.startswith("_linalg"):
        return _LINALG_PART
    return None
