"""Partitioning for CUDA graphs: everything that runs on a CUDA device goes into partitions."""

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupport
from torch.fx.passes.tools_common import CALLABLE_NODE_OPS
from torch.utils._pytree import tree_leaves


class CudaGraphsSupport(OperatorSupport):
    """Supports calls all of whose values lie on CUDA devices."""

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        """Whether the inputs and results noted as meta["val"] are CUDA tensors."""
        if (
            node.op not in CALLABLE_NODE_OPS
            or node.target is torch.ops.aten.embedding_dense_backward.default
        ):
            return False
        if node.target is operator.getitem:
            return True
        values = [n.meta.get("val") for n in (*node.all_input_nodes, node)]
        tensors = [t for t in tree_leaves(values) if isinstance(t, torch.Tensor)]
        return all(t.device.type == "cuda" for t in tensors)


def partition_cudagraphs(gm: GraphModule, inputs: Any) -> GraphModule:
    """Fuses what can be captured into submodules. Values are found under fake tensors."""
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp

    FakeTensorProp(gm).propagate(*inputs)
    partitioner = CapabilityBasedPartitioner(
        gm, CudaGraphsSupport(), allows_single_node_partition=True
    )
    return partitioner.partition_and_fuse()
