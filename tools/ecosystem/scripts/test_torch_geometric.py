"""Graph networks with torch_geometric, whose distributions carry no tests: every layer,
aggregation, norm and model forward and backward on a small graph. Numbers are compared with the
peer's for the same seeds."""

import pytest
import torch_geometric.nn as nn
import torch_geometric.utils as utils
from recorded import Recorded
from torch_geometric.data import Data, HeteroData

import torch

recorded = Recorded("torch_geometric")
NODES, EDGES, FEATURES = 6, 14, 8
BATCH = torch.tensor([0, 0, 1, 1, 1, 3])
HALVES = torch.tensor([0, 0, 0, 1, 1, 1])


class Graph:
    """One graph with everything the layers ask for."""

    def __init__(self, seed=1) -> None:
        generator = torch.Generator().manual_seed(seed)
        edges = torch.randint(0, NODES, (2, EDGES), generator=generator)
        self.edges = edges[:, (edges[0] * NODES + edges[1]).argsort()]
        self.x = torch.randn(NODES, FEATURES, generator=generator)
        self.weight = torch.rand(EDGES, generator=generator)
        self.attr = torch.randn(EDGES, 3, generator=generator)
        self.pos = torch.randn(NODES, 3, generator=generator)
        self.other = torch.randn(NODES, FEATURES, generator=generator)
        self.kind = torch.arange(EDGES) % 4

    def data(self):
        return Data(
            x=self.x,
            edge_index=self.edges,
            edge_attr=self.attr,
            edge_weight=self.weight,
            pos=self.pos,
            y=torch.arange(NODES) % 3,
        )


def hetero():
    g, data = Graph(), HeteroData()
    data["a"].x, data["b"].x = g.x, g.other[:4]
    data["a"].y = torch.arange(NODES) % 2
    forth = utils.coalesce(torch.stack([g.edges[0], g.edges[1] % 4]), g.attr)
    data["a", "to", "b"].edge_index, data["a", "to", "b"].edge_attr = forth
    data["b", "rev", "a"].edge_index = utils.coalesce(torch.stack([g.edges[0] % 4, g.edges[1]]))
    return data


def tensors(value):
    """The tensors inside of any result, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from tensors(value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif hasattr(value, "to_dict"):
        yield from tensors(value.to_dict())


def digest(value):
    """Of each tensor its size, its sum and a sum that depends on the places."""
    out = []
    for tensor in tensors(value):
        tensor = tensor.as_tensor() if hasattr(tensor, "as_tensor") else tensor.detach()
        tensor = tensor if tensor.layout is torch.strided else tensor.to_dense()
        flat = tensor.double().flatten()
        places = torch.linspace(-1, 1, flat.numel(), dtype=torch.float64)
        out += [float(tensor.numel()), flat.sum().item(), (flat * places).sum().item()]
    return out


def train(function, leaf, parameters=()):
    """Runs function and a backward pass; returns the digest of results and gradients."""
    results = [t for t in tensors(function()) if t.layout is torch.strided]
    kept = [t.detach().clone() for t in results]
    loss = sum(
        (t * torch.linspace(-1, 1, t.numel()).view(t.shape)).sum()
        for t in results
        if t.is_floating_point()
    )
    if loss.requires_grad:
        loss.backward()
    grads = [t.grad for t in (leaf, *parameters) if t.grad is not None]
    return digest([kept, grads])


# ---- layers

LAYERS = {
    "SimpleConv": lambda: nn.SimpleConv(),
    "GCNConv": lambda: nn.GCNConv(8, 5),
    "ChebConv": lambda: nn.ChebConv(8, 5, 3),
    "SAGEConv": lambda: nn.SAGEConv(8, 5),
    "SAGEConv-lazy": lambda: nn.SAGEConv(-1, 5, normalize=True),
    "GraphConv": lambda: nn.GraphConv(8, 5, aggr="max"),
    "GatedGraphConv": lambda: nn.GatedGraphConv(8, 3),
    "ResGatedGraphConv": lambda: nn.ResGatedGraphConv(8, 5),
    "GATConv": lambda: nn.GATConv(8, 5, heads=2),
    "GATv2Conv": lambda: nn.GATv2Conv(8, 5, heads=2, concat=False),
    "TransformerConv": lambda: nn.TransformerConv(8, 5, heads=2, beta=True),
    "AGNNConv": lambda: nn.AGNNConv(),
    "TAGConv": lambda: nn.TAGConv(8, 5),
    "GINConv": lambda: nn.GINConv(nn.MLP([8, 5, 5]), train_eps=True),
    "ARMAConv": lambda: nn.ARMAConv(8, 5, num_stacks=2, num_layers=2),
    "SGConv": lambda: nn.SGConv(8, 5, K=2),
    "SSGConv": lambda: nn.SSGConv(8, 5, alpha=0.1, K=2),
    "APPNP": lambda: nn.APPNP(3, 0.1),
    "MFConv": lambda: nn.MFConv(8, 5),
    "CGConv": lambda: nn.CGConv(8),
    "EdgeConv": lambda: nn.EdgeConv(nn.MLP([16, 5])),
    "FeaStConv": lambda: nn.FeaStConv(8, 5, heads=2),
    "LEConv": lambda: nn.LEConv(8, 5),
    "ClusterGCNConv": lambda: nn.ClusterGCNConv(8, 5),
    "GENConv": lambda: nn.GENConv(8, 5, aggr="softmax", learn_t=True),
    "WLConvContinuous": lambda: nn.WLConvContinuous(),
    "FiLMConv": lambda: nn.FiLMConv(8, 5),
    "SuperGATConv": lambda: nn.SuperGATConv(8, 5, heads=2),
    "EGConv": lambda: nn.EGConv(8, 8, num_heads=4, aggregators=["sum", "max", "std"]),
    "GeneralConv": lambda: nn.GeneralConv(8, 5, attention=True, heads=2),
    "LGConv": lambda: nn.LGConv(),
    "AntiSymmetricConv": lambda: nn.AntiSymmetricConv(8),
    "DirGNNConv": lambda: nn.DirGNNConv(nn.SAGEConv(8, 5)),
    "MixHopConv": lambda: nn.MixHopConv(8, 5),
}
# Layers with arguments of their own.
OTHERS = {
    "GINEConv": (lambda: nn.GINEConv(nn.MLP([8, 5]), edge_dim=3), lambda g: (g.edges, g.attr)),
    "RGCNConv": (lambda: nn.RGCNConv(8, 6, 4, num_bases=2), lambda g: (g.edges, g.kind)),
    "RGCNConv-blocks": (lambda: nn.RGCNConv(8, 6, 4, num_blocks=2), lambda g: (g.edges, g.kind)),
    "FastRGCNConv": (lambda: nn.FastRGCNConv(8, 6, 4), lambda g: (g.edges, g.kind)),
    "RGATConv": (
        lambda: nn.RGATConv(8, 6, 4, num_bases=2, heads=2, dim=1),
        lambda g: (g.edges, g.kind),
    ),
    "SignedConv": (lambda: nn.SignedConv(8, 5, True), lambda g: (g.edges, g.edges.flip(0))),
    "GMMConv": (lambda: nn.GMMConv(8, 5, dim=3, kernel_size=4), lambda g: (g.edges, g.attr)),
    "NNConv": (lambda: nn.NNConv(8, 5, nn.MLP([3, 40])), lambda g: (g.edges, g.attr)),
    "PointNetConv": (lambda: nn.PointNetConv(nn.MLP([11, 5])), lambda g: (g.pos, g.edges)),
    "PointTransformerConv": (lambda: nn.PointTransformerConv(8, 5), lambda g: (g.pos, g.edges)),
    "PPFConv": (
        lambda: nn.PPFConv(nn.MLP([12, 5])),
        lambda g: (g.pos, torch.nn.functional.normalize(g.pos), g.edges),
    ),
    "HypergraphConv": (
        lambda: nn.HypergraphConv(8, 5),
        lambda g: (torch.stack([g.edges[0], g.edges[1] % 3]),),
    ),
    "PNAConv": (
        lambda: nn.PNAConv(
            8,
            8,
            ["mean", "min", "max", "std", "var", "sum"],
            ["identity", "amplification", "attenuation", "linear", "inverse_linear"],
            deg=torch.tensor([0, 3, 0, 1, 2]),
            edge_dim=3,
            towers=2,
        ),
        lambda g: (g.edges, g.attr),
    ),
    "GCN2Conv": (lambda: nn.GCN2Conv(8, alpha=0.2), lambda g: (g.other, g.edges)),
    "FAConv": (lambda: nn.FAConv(8, eps=1.0, dropout=0.0), lambda g: (g.other, g.edges)),
    "PDNConv": (
        lambda: nn.PDNConv(8, 5, edge_dim=3, hidden_channels=7),
        lambda g: (g.edges, g.attr),
    ),
    "GPSConv": (
        lambda: nn.GPSConv(8, nn.SAGEConv(8, 8), heads=2, norm="layer_norm"),
        lambda g: (g.edges, HALVES),
    ),
    "HEATConv": (
        lambda: nn.HEATConv(8, 6, 2, 4, 4, 3, 5, heads=2),
        lambda g: (g.edges, torch.arange(NODES) % 2, g.kind, g.attr),
    ),
}


def run_layer(name, layer, args, graph) -> None:
    graph.x.requires_grad_()
    recorded.check(name, train(lambda: layer(graph.x, *args), graph.x, layer.parameters()))
    assert type(layer).__name__ in repr(layer)


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name) -> None:
    torch.manual_seed(12)
    graph, layer = Graph(), LAYERS[name]()
    run_layer(f"layer {name}", layer, (graph.edges,), graph)


@pytest.mark.parametrize("name", OTHERS)
def test_other_layer(name) -> None:
    torch.manual_seed(12)
    graph, (make, arguments) = Graph(), OTHERS[name]
    run_layer(f"layer {name}", make(), arguments(graph), graph)


SPARSE = [
    "GCNConv", "SAGEConv", "GraphConv", "GATConv", "TAGConv", "GINConv", "SGConv", "APPNP",
    "ClusterGCNConv", "LGConv", "MixHopConv", "GatedGraphConv", "SimpleConv",
]  # fmt: skip


@pytest.mark.parametrize("layout", ["csc", "coo"])
@pytest.mark.parametrize("name", SPARSE)
def test_layer_with_a_sparse_matrix(name, layout) -> None:
    torch.manual_seed(12)
    graph, layer = Graph(), LAYERS[name]()
    edges = utils.coalesce(utils.remove_self_loops(graph.edges)[0])
    make = getattr(utils, f"to_torch_{layout}_tensor")
    matrix = make(edges, size=(NODES, NODES)).t()
    torch.testing.assert_close(layer(graph.x, matrix), layer(graph.x, edges), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["HGTConv", "HANConv", "HeteroConv"])
def test_heterogeneous_layer(name) -> None:
    torch.manual_seed(12)
    data = hetero()
    if name == "HeteroConv":
        layer = nn.HeteroConv({kind: nn.SAGEConv((8, 8), 5) for kind in data.edge_types})
    else:
        layer = getattr(nn, name)(8, 6, data.metadata(), heads=2)
    leaf = data["a"].x.requires_grad_()
    run = lambda: layer(data.x_dict, data.edge_index_dict)
    recorded.check(f"hetero {name}", train(run, leaf, layer.parameters()))


class Difference(nn.MessagePassing):
    def __init__(self) -> None:
        super().__init__(aggr=["mean", "max"], flow="target_to_source")
        self.lin = nn.Linear(16, 4)

    def forward(self, x, edge_index, weight):
        return self.propagate(edge_index, x=x, weight=weight)

    def message(self, x_i, x_j, weight):
        return (x_j - x_i) * weight.view(-1, 1)

    def update(self, inputs):
        return self.lin(inputs)


def test_own_message_passing() -> None:
    torch.manual_seed(12)
    graph, layer, seen = Graph(), Difference(), []
    hook = layer.register_message_forward_hook(lambda *_: seen.append("message"))
    run = lambda: layer(graph.x, graph.edges, graph.weight)
    recorded.check("own layer", train(run, graph.x.requires_grad_(), layer.parameters()))
    hook.remove()
    run()
    assert seen == ["message"]


# ---- aggregations, norms, pooling

AGGREGATIONS = {
    **{
        name: lambda name=name: nn.resolver.aggregation_resolver(name)
        for name in "sum mean max min mul var std softmax powermean median".split()
    },
    "lstm": lambda: nn.LSTMAggregation(8, 5),
    "gru": lambda: nn.GRUAggregation(8, 5),
    "set2set": lambda: nn.Set2Set(8, 2),
    "sort": lambda: nn.SortAggregation(2),
    "quantile": lambda: nn.QuantileAggregation([0.2, 0.7]),
    "multi": lambda: nn.MultiAggregation(["mean", "max", "min", "var", "std"]),
    "deepsets": lambda: nn.DeepSetsAggregation(nn.MLP([8, 4]), nn.MLP([4, 3])),
    "attention": lambda: nn.AttentionalAggregation(torch.nn.Linear(8, 1)),
    "degree": lambda: nn.DegreeScalerAggregation(
        ["mean", "max"], ["identity", "amplification"], deg=torch.tensor([0, 3, 1, 1])
    ),
    "variance": lambda: nn.VariancePreservingAggregation(),
}  # fmt: skip


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_aggregation(name) -> None:
    torch.manual_seed(12)
    graph, layer = Graph(), AGGREGATIONS[name]()
    run = lambda: layer(graph.x, BATCH)
    recorded.check(f"aggr {name}", train(run, graph.x.requires_grad_(), layer.parameters()))


NORMS = {
    "BatchNorm": (lambda: nn.BatchNorm(8), ()),
    "InstanceNorm": (lambda: nn.InstanceNorm(8), (HALVES,)),
    "LayerNorm": (lambda: nn.LayerNorm(8), (HALVES,)),
    "GraphNorm": (lambda: nn.GraphNorm(8), (HALVES,)),
    "GraphSizeNorm": (lambda: nn.GraphSizeNorm(), (HALVES,)),
    "PairNorm": (lambda: nn.PairNorm(), (HALVES,)),
    "MeanSubtractionNorm": (lambda: nn.MeanSubtractionNorm(), (HALVES,)),
    "DiffGroupNorm": (lambda: nn.DiffGroupNorm(8, groups=3), ()),
    "HeteroLayerNorm": (lambda: nn.HeteroLayerNorm(8, 2), (HALVES,)),
    "HeteroBatchNorm": (lambda: nn.HeteroBatchNorm(8, 2), (HALVES,)),
}


@pytest.mark.parametrize("name", NORMS)
def test_norm(name) -> None:
    torch.manual_seed(12)
    make, args = NORMS[name]
    graph, layer = Graph(), make()
    run = lambda: layer(graph.x, *args)
    recorded.check(f"norm {name}", train(run, graph.x.requires_grad_(), layer.parameters()))


POOLINGS = {
    "topk": lambda g: nn.TopKPooling(8, ratio=0.5)(g.x, g.edges, batch=HALVES)[:1],
    "sag": lambda g: nn.SAGPooling(8, ratio=0.5)(g.x, g.edges, batch=HALVES)[:1],
    "asap": lambda g: nn.ASAPooling(8, ratio=0.5)(g.x, g.edges, batch=HALVES)[:1],
    "edge": lambda g: nn.EdgePooling(8)(g.x, g.edges, HALVES)[:2],
    "mem": lambda g: nn.MemPooling(8, 4, heads=2, num_clusters=2)(g.x, HALVES),
    "global": lambda g: [
        nn.global_add_pool(g.x, HALVES),
        nn.global_mean_pool(g.x, HALVES),
        nn.global_max_pool(g.x, None),
    ],
    "diff": lambda g: nn.dense_diff_pool(g.x[None], torch.ones(1, 6, 6), g.other[None, :, :3]),
    "mincut": lambda g: nn.dense_mincut_pool(g.x[None], torch.ones(1, 6, 6), g.other[None, :, :3]),
    "dmon": lambda g: nn.DMoNPooling([8, 8], 3)(g.x[None], torch.ones(1, 6, 6)),
    "dense": lambda g: [
        layer(g.x[None], torch.ones(1, 6, 6))
        for layer in (nn.DenseGCNConv(8, 4), nn.DenseSAGEConv(8, 4), nn.DenseGATConv(8, 4, heads=2))
    ],
}


@pytest.mark.parametrize("name", POOLINGS)
def test_pooling(name) -> None:
    torch.manual_seed(12)
    graph = Graph()
    run = lambda: POOLINGS[name](graph)
    recorded.check(f"pool {name}", train(run, graph.x.requires_grad_()))


# ---- models

DEGREE = {
    "aggregators": ["mean", "max"],
    "scalers": ["identity", "amplification"],
    "deg": torch.tensor([1, 3, 2, 1]),
}
EXTRAS = [
    {},
    {"norm": "layer_norm", "jk": "lstm"},
    {"jk": "cat", "dropout": 0.5, "act": "elu"},
]
MODELS = {
    **{
        f"{name}-{len(extra)}": (
            lambda name=name, extra=extra: getattr(nn, name)(
                8, 8, 3, 4, **extra, **(DEGREE if name == "PNA" else {})
            ),
            lambda m, g: m(g.x, g.edges),
        )
        for name in ["GCN", "GraphSAGE", "GIN", "GAT", "PNA", "EdgeCNN"]
        for extra in EXTRAS
    },
    "MLP": (lambda: nn.MLP([8, 16, 4], norm="layer_norm"), lambda m, g: m(g.x)),
    "GAE": (
        lambda: nn.GAE(nn.GCNConv(8, 4)),
        lambda m, g: m.recon_loss(m.encode(g.x, g.edges), g.edges, g.edges.flip(0)),
    ),
    "LightGCN": (lambda: nn.LightGCN(NODES, 4, 2), lambda m, g: m(g.edges)),
    "LINKX": (lambda: nn.LINKX(NODES, 8, 8, 4, 2), lambda m, g: m(g.x, g.edges)),
    "AttentiveFP": (
        lambda: nn.AttentiveFP(8, 8, 4, 3, 2, 2),
        lambda m, g: m(g.x, g.edges, g.attr, HALVES),
    ),
    "GraphUNet": (lambda: nn.GraphUNet(8, 8, 4, depth=2), lambda m, g: m(g.x, g.edges)),
    "DeepGCNLayer": (
        lambda: nn.DeepGCNLayer(
            nn.GCNConv(8, 8), torch.nn.LayerNorm(8), torch.nn.ReLU(), "res+", 0.0, ckpt_grad=True
        ),
        lambda m, g: m(g.x, g.edges),
    ),
    "GroupAddRev": (
        lambda: nn.GroupAddRev(nn.SAGEConv(4, 4), num_groups=2),
        lambda m, g: m(g.x * 1, g.edges),
    ),
    "Sequential": (
        lambda: nn.Sequential(
            "x, edge_index",
            [
                (nn.GCNConv(8, 8), "x, edge_index -> x"),
                torch.nn.ReLU(inplace=True),
                (nn.GCNConv(8, 4), "x, edge_index -> x"),
            ],
        ),
        lambda m, g: m(g.x, g.edges),
    ),
    **{
        name: (
            lambda name=name: getattr(nn, name)(NODES, 4, 8),
            lambda m, g: m.loss(g.edges[0], g.kind, g.edges[1]),
        )
        for name in ["TransE", "ComplEx", "DistMult", "RotatE"]
    },
    "HeteroLinear": (lambda: nn.HeteroLinear(8, 4, 3), lambda m, g: m(g.x, torch.arange(6) // 2)),
    "Polynormer": (
        lambda: nn.Polynormer(8, 8, 4, local_layers=2, global_layers=1, dropout=0.0),
        lambda m, g: m(g.x, g.edges, HALVES),
    ),
    "SGFormer": (lambda: nn.SGFormer(8, 8, 4), lambda m, g: m(g.x, g.edges, HALVES)),
    "Performer": (lambda: nn.attention.PerformerAttention(8, 2), lambda m, g: m(g.x[None])),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_model(name) -> None:
    torch.manual_seed(12)
    make, call = MODELS[name]
    graph, model = Graph(), make()
    run = lambda: call(model, graph)
    recorded.check(f"model {name}", train(run, graph.x.requires_grad_(), model.parameters()))
    again = make()
    again.load_state_dict(model.state_dict())


def test_training() -> None:
    torch.manual_seed(12)
    data, model = Graph().data(), nn.GCN(8, 8, 2, 3)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.05), []
    for _ in range(10):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data.x, data.edge_index), data.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    recorded.check("training", losses)


def test_to_hetero() -> None:
    torch.manual_seed(12)
    data = hetero()
    model = nn.to_hetero(nn.GraphSAGE((-1, -1), 8, 2, 4), data.metadata())
    recorded.check("to_hetero", digest(model(data.x_dict, data.edge_index_dict)))


def test_explainer() -> None:
    from torch_geometric.explain import Explainer, GNNExplainer

    torch.manual_seed(12)
    graph = Graph()
    explainer = Explainer(
        nn.GCN(8, 8, 2, 3),
        GNNExplainer(epochs=5),
        "model",
        {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
        node_mask_type="attributes",
        edge_mask_type="object",
    )
    found = explainer(graph.x, graph.edges, index=1)
    recorded.check("explainer", digest([found.node_mask, found.edge_mask]))
