"""GraphModule: the module that a traced program becomes. Nothing traces yet, so there is none; the
class is there to be derived from and asked about, and making one raises NotImplementedError."""

import torch
from torch import _later

__all__ = ["GraphModule"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"

globals().update(_later.names(__name__, "_CodeOnlyModule _copy_attr reduce_graph_module"))


class GraphModule(torch.nn.Module):
    """A module whose forward is generated from a graph."""

    def __init__(self, root, graph=None, class_name="GraphModule"):
        raise NotImplementedError("torch.fx.GraphModule is not implemented in this version")
