"""The logs and artifacts of this package, registered once."""

from torch._logging._internal import register_artifact, register_log

_DYNAMIC = [
    "torch.fx.experimental.symbolic_shapes",
    "torch.fx.experimental._shape_env",
    "torch.fx.experimental.sym_node",
    "torch.fx.experimental.recording",
]
_LOGS = {
    "dynamo": ["torch._dynamo", *_DYNAMIC],
    "fake_tensor": ["torch._subclasses.fake_tensor"],
    "aot": ["torch._functorch.aot_autograd", "torch._functorch._aot_autograd"],
    "autograd": "torch.autograd",
    "inductor": ["torch._inductor", "torch._inductor.cudagraph_trees"],
    "async_compile": "torch._inductor.async_compile",
    "cache": ["torch._inductor.codecache", "torch._functorch._aot_autograd.autograd_cache"],
    "dynamic": _DYNAMIC,
    "torch": "torch",
    "distributed": "torch.distributed",
    "c10d": ["torch.distributed.distributed_c10d", "torch.distributed.rendezvous"],
    "ddp": ["torch.nn.parallel.distributed", "torch._dynamo.backends.distributed"],
    "pp": "torch.distributed.pipelining",
    "fsdp": ["torch.distributed.fsdp", "torch.distributed._composable.fsdp"],
    "dtensor": ["torch.distributed._tensor", "torch.distributed.tensor"],
    "onnx": "torch.onnx",
    "export": ["torch._dynamo", "torch.export", "torch._export", *_DYNAMIC],
    "torchbind": ["torch._library.fake_class_registry"],
}
_ARTIFACTS = {
    "guards": "The guards of every compiled function, with the lines they come from.",
    "verbose_guards": "Guards with the place in torch that made them.",
    "bytecode": "The code before and after.",
    "graph": "The captured graph as a table.",
    "graph_code": "The captured graph as Python code.",
    "graph_code_verbose": "Graphs as code, in every stage.",
    "graph_sizes": "The sizes of all values of the graph.",
    "trace_source": "The user's lines as they are traced.",
    "trace_call": "Calls with the marked place in the line.",
    "trace_bytecode": "Instructions as they are traced.",
    "graph_breaks": "Where and why a graph ended.",
    "recompiles": "Why a function was compiled again.",
    "recompiles_verbose": "All guards that failed before a function was compiled again.",
    "aot_graphs": "Forward and backward graphs of AOTAutograd.",
    "aot_joint_graph": "The joint graph of AOTAutograd.",
    "aot_graphs_effects": "Graphs whose effects are ordered by tokens.",
    "post_grad_graphs": "Graphs after the passes that follow autograd.",
    "pre_grad_graphs": "Graphs before autograd.",
    "joint_graph_passes": "The joint graph before and after its passes.",
    "inductor_metrics": "Estimated time and memory of kernels.",
    "output_code": "The generated code.",
    "ir_pre_fusion": "Loops before they are fused.",
    "ir_post_fusion": "Loops after they are fused.",
    "caching": "What caches hold, find and keep.",
    "kernel_code": "The generated code of each kernel.",
    "schedule": "Fusion decisions.",
    "perf_hints": "What keeps code from being faster.",
    "fusion": "Fusion in detail.",
    "overlap": "How communication and computation overlap.",
    "sym_node": "Operations on symbols.",
    "compiled_autograd": "Graphs of compiled backward passes.",
    "compiled_autograd_verbose": "The same in detail.",
    "cudagraphs": "What CUDA graphs record.",
    "cudagraph_static_inputs": "Which inputs stay where they are.",
    "ddp_graphs": "Graphs cut for DistributedDataParallel.",
    "autotuning": "Choices by timing.",
    "benchmarking": "Timings.",
    "hierarchical_compile": "Regions that repeat.",
    "dynamic": "Symbols, their sources and the guards on them.",
    "side_effects": "Changes that compiled code makes again.",
    "loop_tiling": "Tilings of loops.",
    "graph_region_expansion": "Regions that grow.",
    "onnx_diagnostics": "What the exporter to ONNX found.",
    "annotation": "Annotations of nodes.",
    "compute_dependencies": "Dependencies between kernels.",
    "loop_ordering": "Orders of loops.",
    "cutlass": "Kernels of CUTLASS.",
}
# What TORCH_LOGS=help lists; TORCH_LOGS=+help lists all.
_VISIBLE = frozenset(
    """
    aot_graphs aot_graphs_effects compiled_autograd graph_breaks guards kernel_code output_code
    recompiles recompiles_verbose side_effects
    """.split()
)
# Said only when named, not with debug output of the whole log.
_OFF = frozenset(
    """
    annotation autotuning benchmarking bytecode caching compiled_autograd_verbose
    compute_dependencies cudagraph_static_inputs cutlass fusion graph_region_expansion
    hierarchical_compile inductor_metrics ir_post_fusion ir_pre_fusion joint_graph_passes
    kernel_code loop_ordering loop_tiling onnx_diagnostics output_code overlap perf_hints
    recompiles_verbose schedule sym_node verbose_guards
    """.split()
)

for _alias, _names in _LOGS.items():
    register_log(_alias, _names)
for _name, _text in _ARTIFACTS.items():
    if _name not in _LOGS:
        register_artifact(_name, _text, visible=_name in _VISIBLE, off_by_default=_name in _OFF)
register_artifact("not_implemented", "Python keys without a rule.", visible=False)
register_artifact("custom_format_test_artifact", "Testing only", log_format="")
