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
    "cudagraphs": "torch._inductor.cudagraph_trees",
    "caching": "torch._inductor.runtime.caching",
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
_VISIBLE = {
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
# Said only when named, not with debug output of the whole log.
_OFF = frozenset(
    """
    verbose_guards recompiles_verbose aot_joint_graph post_grad_graphs pre_grad_graphs
    joint_graph_passes inductor_metrics output_code kernel_code schedule perf_hints fusion overlap
    sym_node compiled_autograd_verbose cudagraph_static_inputs autotuning benchmarking
    graph_code_verbose aot_graphs_effects graph_region_expansion loop_tiling annotation
    compute_dependencies loop_ordering hierarchical_compile onnx_diagnostics cutlass
    """.split()
)

for _alias, _names in _LOGS.items():
    register_log(_alias, _names)
for _name, _text in _VISIBLE.items():
    if _name not in _LOGS:
        register_artifact(_name, _text, visible=True, off_by_default=_name in _OFF)
register_artifact("not_implemented", "Python keys without a rule.", visible=False)
register_artifact("custom_format_test_artifact", "Testing only", log_format="")
