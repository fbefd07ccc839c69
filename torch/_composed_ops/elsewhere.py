"""Operators of engines and devices that do not exist here, with their schemas. A program may name
them, look for them in a graph and read their schemas; a call raises NotImplementedError."""

from torch._composed_ops.registry import declare

# MIOpen, on AMD's GPUs.
declare(
    "miopen_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, "
    "Tensor? running_var, bool training, float exponential_average_factor, float epsilon) -> "
    "(Tensor, Tensor, Tensor)",
    "miopen_batch_norm.out(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, "
    "Tensor? running_var, bool training, float exponential_average_factor, float epsilon, *, "
    "Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), "
    "Tensor(c!))",
    "miopen_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, Tensor? "
    "running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, float epsilon) "
    "-> (Tensor, Tensor, Tensor)",
    "miopen_batch_norm_backward.out(Tensor input, Tensor grad_output, Tensor weight, Tensor? "
    "running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, float epsilon, "
    "*, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), "
    "Tensor(c!))",
    "miopen_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] "
    "stride, SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic) -> Tensor",
    "miopen_convolution.out(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, "
    "SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic, "
    "*, Tensor(a!) out) -> Tensor(a!)",
    "miopen_convolution_add_relu(Tensor self, Tensor weight, Tensor z, Scalar? alpha, Tensor? "
    "bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups) -> Tensor",
    "miopen_convolution_relu(Tensor self, Tensor weight, Tensor? bias, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, SymInt groups) -> Tensor",
    "miopen_convolution_transpose(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, "
    "SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, SymInt groups, bool "
    "benchmark, bool deterministic) -> Tensor",
    "miopen_convolution_transpose.out(Tensor self, Tensor weight, Tensor? bias, SymInt[] "
    "padding, SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, SymInt groups, "
    "bool benchmark, bool deterministic, *, Tensor(a!) out) -> Tensor(a!)",
    "miopen_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
    "target_lengths, int blank, bool deterministic, bool zero_infinity) -> (Tensor, Tensor)",
    "miopen_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
    "target_lengths, int blank, bool deterministic, bool zero_infinity) -> (Tensor, Tensor)",
    "miopen_ctc_loss.out(Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
    "target_lengths, int blank, bool deterministic, bool zero_infinity, *, Tensor(a!) out0, "
    "Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
    "miopen_depthwise_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, "
    "SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic) "
    "-> Tensor",
    "miopen_depthwise_convolution.out(Tensor self, Tensor weight, Tensor? bias, SymInt[] "
    "padding, SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark, bool "
    "deterministic, *, Tensor(a!) out) -> Tensor(a!)",
    "miopen_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor hx, Tensor? cx, int "
    "mode, int hidden_size, int num_layers, bool batch_first, float dropout, bool train, bool "
    "bidirectional, int[] batch_sizes, Tensor? dropout_state) -> (Tensor, Tensor, Tensor, "
    "Tensor, Tensor)",
    "miopen_rnn.out(Tensor input, Tensor[] weight, int weight_stride0, Tensor hx, Tensor? cx, "
    "int mode, int hidden_size, int num_layers, bool batch_first, float dropout, bool train, "
    "bool bidirectional, int[] batch_sizes, Tensor? dropout_state, *, Tensor(a!) out0, "
    "Tensor(b!) out1, Tensor(c!) out2, Tensor(d!) out3, Tensor(e!) out4) -> (Tensor(a!), "
    "Tensor(b!), Tensor(c!), Tensor(d!), Tensor(e!))",
    "miopen_rnn_backward(Tensor input, Tensor[] weight, int weight_stride0, Tensor "
    "weight_buf, Tensor hx, Tensor? cx, Tensor output, Tensor? grad_output, Tensor? grad_hy, "
    "Tensor? grad_cy, int mode, int hidden_size, int num_layers, bool batch_first, float "
    "dropout, bool train, bool bidirectional, int[] batch_sizes, Tensor? dropout_state, "
    "Tensor reserve, bool[4] output_mask) -> (Tensor, Tensor, Tensor, Tensor[])",
    "miopen_rnn_backward.out(Tensor input, Tensor[] weight, int weight_stride0, Tensor "
    "weight_buf, Tensor hx, Tensor? cx, Tensor output, Tensor? grad_output, Tensor? grad_hy, "
    "Tensor? grad_cy, int mode, int hidden_size, int num_layers, bool batch_first, float "
    "dropout, bool train, bool bidirectional, int[] batch_sizes, Tensor? dropout_state, "
    "Tensor reserve, bool[4] output_mask, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) "
    "out2, Tensor(d!)[] out3) -> ()",
)

# Metal, on Apple's.
declare(
    "_lstm_mps(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "
    "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, "
    "Tensor, Tensor, Tensor, Tensor)",
    "_lstm_mps.out(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int "
    "num_layers, float dropout, bool train, bool bidirectional, bool batch_first, *, "
    "Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2, Tensor(d!) out3, Tensor(e!) out4, "
    "Tensor(f!) out5) -> (Tensor(a!), Tensor(b!), Tensor(c!), Tensor(d!), Tensor(e!), "
    "Tensor(f!))",
    "_mps_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] "
    "stride, SymInt[] dilation, SymInt groups) -> Tensor",
    "_mps_convolution.out(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, "
    "SymInt[] stride, SymInt[] dilation, SymInt groups, *, Tensor(a!) out) -> Tensor(a!)",
    "_mps_convolution_transpose(Tensor self, Tensor weight, SymInt[] padding, SymInt[] "
    "output_padding, SymInt[] stride, SymInt[] dilation, SymInt groups) -> Tensor",
    "_mps_convolution_transpose.out(Tensor self, Tensor weight, SymInt[] padding, SymInt[] "
    "output_padding, SymInt[] stride, SymInt[] dilation, SymInt groups, *, Tensor(a!) out) -> "
    "Tensor(a!)",
    "lstm_mps_backward(Tensor? grad_y, Tensor? grad_hy, Tensor? grad_cy, Tensor z_state, "
    "Tensor cell_state_fwd, Tensor input, Tensor layersOutputs, Tensor[] hx, Tensor[] params, "
    "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool "
    "batch_first) -> (Tensor, Tensor[], Tensor[])",
    "lstm_mps_backward.out(Tensor? grad_y, Tensor? grad_hy, Tensor? grad_cy, Tensor z_state, "
    "Tensor cell_state_fwd, Tensor input, Tensor layersOutputs, Tensor[] hx, Tensor[] params, "
    "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool "
    "batch_first, *, Tensor(a!) out0, Tensor(b!)[] out1, Tensor(c!)[] out2) -> ()",
    "mps_convolution_backward(Tensor self, Tensor grad_output, Tensor weight, SymInt[] "
    "padding, SymInt[] stride, SymInt[] dilation, SymInt groups, bool[3] output_mask) -> "
    "(Tensor, Tensor, Tensor)",
    "mps_convolution_backward.out(Tensor self, Tensor grad_output, Tensor weight, SymInt[] "
    "padding, SymInt[] stride, SymInt[] dilation, SymInt groups, bool[3] output_mask, *, "
    "Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), "
    "Tensor(c!))",
    "mps_convolution_transpose_backward(Tensor self, Tensor grad_output, Tensor weight, "
    "SymInt[] padding, SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, SymInt "
    "groups, bool[2] output_mask) -> (Tensor, Tensor)",
    "mps_convolution_transpose_backward.out(Tensor self, Tensor grad_output, Tensor weight, "
    "SymInt[] padding, SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, SymInt "
    "groups, bool[2] output_mask, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), "
    "Tensor(b!))",
)

# CuDNN's recurrent layers and CTC loss: torch.nn runs our own kernels.
declare(
    "_cudnn_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
    "target_lengths, int blank, bool deterministic, bool zero_infinity) -> (Tensor, Tensor)",
    "_cudnn_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
    "target_lengths, int blank, bool deterministic, bool zero_infinity) -> (Tensor, Tensor)",
    "_cudnn_ctc_loss.out(Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
    "target_lengths, int blank, bool deterministic, bool zero_infinity, *, Tensor(a!) out0, "
    "Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
    "_cudnn_init_dropout_state(float dropout, bool train, int dropout_seed, *, ScalarType? "
    "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False) -> Tensor",
    "_cudnn_init_dropout_state.out(float dropout, bool train, int dropout_seed, *, Tensor(a!) "
    "out) -> Tensor(a!)",
    "_cudnn_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor? weight_buf, Tensor "
    "hx, Tensor? cx, int mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool "
    "batch_first, float dropout, bool train, bool bidirectional, SymInt[] batch_sizes, "
    "Tensor? dropout_state) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "_cudnn_rnn.out(Tensor input, Tensor[] weight, int weight_stride0, Tensor? weight_buf, "
    "Tensor hx, Tensor? cx, int mode, SymInt hidden_size, SymInt proj_size, int num_layers, "
    "bool batch_first, float dropout, bool train, bool bidirectional, SymInt[] batch_sizes, "
    "Tensor? dropout_state, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2, Tensor(d!) "
    "out3, Tensor(e!) out4) -> (Tensor(a!), Tensor(b!), Tensor(c!), Tensor(d!), Tensor(e!))",
    "_cudnn_rnn_backward(Tensor input, Tensor[] weight, int weight_stride0, Tensor "
    "weight_buf, Tensor hx, Tensor? cx, Tensor output, Tensor? grad_output, Tensor? grad_hy, "
    "Tensor? grad_cy, int mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool "
    "batch_first, float dropout, bool train, bool bidirectional, SymInt[] batch_sizes, "
    "Tensor? dropout_state, Tensor reserve, bool[4] output_mask) -> (Tensor, Tensor, Tensor, "
    "Tensor[])",
    "_cudnn_rnn_backward.out(Tensor input, Tensor[] weight, int weight_stride0, Tensor "
    "weight_buf, Tensor hx, Tensor? cx, Tensor output, Tensor? grad_output, Tensor? grad_hy, "
    "Tensor? grad_cy, int mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool "
    "batch_first, float dropout, bool train, bool bidirectional, SymInt[] batch_sizes, "
    "Tensor? dropout_state, Tensor reserve, bool[4] output_mask, *, Tensor(a!) out0, "
    "Tensor(b!) out1, Tensor(c!) out2, Tensor(d!)[] out3) -> ()",
    "_cudnn_rnn_flatten_weight(Tensor[] weight_arr, int weight_stride0, SymInt input_size, "
    "int mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool batch_first, bool "
    "bidirectional) -> Tensor",
    "_cudnn_rnn_flatten_weight.out(Tensor[] weight_arr, int weight_stride0, SymInt "
    "input_size, int mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool "
    "batch_first, bool bidirectional, *, Tensor(a!) out) -> Tensor(a!)",
)

# Semi-structured sparsity of NVIDIA's GPUs.
declare(
    "_cslt_compress(Tensor input) -> Tensor",
    "_cslt_sparse_mm(Tensor compressed_A, Tensor dense_B, Tensor? bias=None, Tensor? "
    "alpha=None, ScalarType? out_dtype=None, bool transpose_result=False, int alg_id=0, int "
    "split_k=1, int split_k_mode=-1) -> Tensor",
    "_cslt_sparse_mm_search(Tensor compressed_A, Tensor dense_B, Tensor? bias=None, Tensor? "
    "alpha=None, ScalarType? out_dtype=None, bool transpose_result=False) -> int",
    "_sparse_semi_structured_addmm(Tensor input, Tensor mat1, Tensor mat1_meta, Tensor mat2, "
    "*, Scalar alpha=1, Scalar beta=1, ScalarType? out_dtype=None) -> Tensor",
    "_sparse_semi_structured_apply(Tensor input, Tensor thread_masks) -> (Tensor, Tensor)",
    "_sparse_semi_structured_apply_dense(Tensor input, Tensor thread_masks) -> Tensor",
    "_sparse_semi_structured_linear(Tensor input, Tensor weight, Tensor meta, *, Tensor? "
    "bias=None, str? activation=None, ScalarType? out_dtype=None) -> Tensor",
    "_sparse_semi_structured_mm(Tensor mat1, Tensor mat1_meta, Tensor mat2, *, ScalarType? "
    "out_dtype=None) -> Tensor",
    '_sparse_semi_structured_tile(Tensor input, str algorithm="", bool use_cutlass=True) -> '
    "(Tensor, Tensor, Tensor, Tensor, Tensor)",
    "_to_sparse_semi_structured(Tensor dense) -> (Tensor, Tensor)",
)

# 4-bit weights in the order of a kernel, and mixed products.
declare(
    "_dyn_quant_matmul_4bit(Tensor inp, Tensor packed_weights, int block_size, int "
    "in_features, int out_features) -> Tensor",
    "_dyn_quant_pack_4bit_weight(Tensor weights, Tensor scales_zeros, Tensor? bias, int "
    "block_size, int in_features, int out_features) -> Tensor",
    "_mixed_dtypes_linear(Tensor input, Tensor weight, Tensor scale, *, Tensor? bias=None, "
    "str? activation=None) -> Tensor",
    "_weight_int4pack_mm_with_scales_and_zeros(Tensor self, Tensor mat2, int qGroupSize, "
    "Tensor qScale, Tensor qZeros) -> Tensor",
)

# A generator whose state is a tensor.
declare(
    "_philox_key_fold_in(Tensor key, int data) -> Tensor",
    "_philox_key_split(Tensor key, int num_splits) -> Tensor",
    "_philox_normal(Tensor self, Tensor key, float mean=0., float std=1.) -> Tensor",
    "_philox_normal.out(Tensor self, Tensor key, float mean=0., float std=1., *, Tensor(a!) "
    "out) -> Tensor(a!)",
    "_philox_normal_(Tensor(a!) self, Tensor key, float mean=0., float std=1.) -> Tensor(a!)",
    "_philox_uniform(Tensor self, Tensor key, float low=0., float high=1.) -> Tensor",
    "_philox_uniform.out(Tensor self, Tensor key, float low=0., float high=1., *, Tensor(a!) "
    "out) -> Tensor(a!)",
    "_philox_uniform_(Tensor(a!) self, Tensor key, float low=0., float high=1.) -> Tensor(a!)",
)

# Hooks that a device outside of this library overrides.
declare(
    "_propagate_xla_data(Tensor input, Tensor output) -> ()",
    "convolution_backward_overrideable(Tensor grad_output, Tensor input, Tensor weight, "
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] "
    "output_padding, SymInt groups, bool[3] output_mask) -> (Tensor grad_input, Tensor "
    "grad_weight, Tensor grad_bias)",
    "convolution_backward_overrideable.out(Tensor grad_output, Tensor input, Tensor weight, "
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] "
    "output_padding, SymInt groups, bool[3] output_mask, *, Tensor(a!) out0, Tensor(b!) out1, "
    "Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    "convolution_overrideable(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt "
    "groups) -> Tensor",
    "convolution_overrideable.out(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt "
    "groups, *, Tensor(a!) out) -> Tensor(a!)",
)
