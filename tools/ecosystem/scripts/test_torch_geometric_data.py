"""torch_geometric's utilities, transforms, data classes, loaders and tensor subclasses. Numbers are
compared with the peer's for the same seeds."""

import copy
import io
import pickle
import random

import pytest
import torch_geometric.nn as nn
import torch_geometric.transforms as transforms
import torch_geometric.utils as utils
from recorded import Recorded
from test_torch_geometric import BATCH, EDGES, HALVES, NODES, Graph, digest, hetero, train
from torch_geometric import EdgeIndex, Index
from torch_geometric.data import Batch, Data, InMemoryDataset, TemporalData
from torch_geometric.loader import DataLoader

import torch

recorded = Recorded("torch_geometric_data")
PTR = torch.tensor([0, 2, 2, 6])
FACE = torch.tensor([[0, 0], [1, 2], [2, 3]])

# ---- utilities

UTILITIES = {
    "degree": lambda g: utils.degree(g.edges[0], NODES, dtype=torch.long),
    "softmax": lambda g: [utils.softmax(g.weight, g.edges[0]), utils.softmax(g.attr, g.edges[1])],
    "lexsort": lambda g: utils.lexsort([g.edges[1], g.edges[0]]),
    "sort_edge_index": lambda g: utils.sort_edge_index(g.edges.flip(1), g.attr, sort_by_row=False),
    "coalesce": lambda g: utils.coalesce(g.edges, [g.attr, g.weight], reduce="max"),
    "to_undirected": lambda g: utils.to_undirected(g.edges, g.attr, reduce="mean"),
    "self_loops": lambda g: [
        utils.remove_self_loops(g.edges, g.attr),
        utils.add_self_loops(g.edges, g.attr, fill_value="mean"),
        utils.add_remaining_self_loops(g.edges, g.weight, 2.0),
        utils.segregate_self_loops(g.edges, g.attr)[:2],
        utils.get_self_loop_attr(g.edges, g.weight),
    ],
    "isolated": lambda g: utils.remove_isolated_nodes(g.edges[:, :4], g.attr[:4], 8),
    "subgraph": lambda g: [
        utils.subgraph([0, 2, 4], g.edges, g.attr, relabel_nodes=True),
        utils.k_hop_subgraph(1, 2, g.edges, relabel_nodes=True),
        utils.bipartite_subgraph(([0, 1], [2, 3]), g.edges, g.weight),
    ],
    "dropout": lambda g: [utils.dropout_node(g.edges), utils.dropout_edge(g.edges)],
    "laplacian": lambda g: [
        utils.get_laplacian(g.edges, g.weight, kind) for kind in (None, "sym", "rw")
    ],
    "dense": lambda g: [
        utils.to_dense_adj(g.edges, HALVES, edge_attr=g.attr),
        utils.to_dense_batch(g.x, BATCH, fill_value=-1, max_num_nodes=4),
        utils.dense_to_sparse(torch.rand(4, 4).round()),
    ],
    "sparse": lambda g: [
        utils.to_torch_coo_tensor(g.edges, g.weight),
        utils.to_torch_csr_tensor(g.edges, g.weight),
        utils.to_torch_csc_tensor(g.edges, g.weight),
        utils.to_edge_index(utils.to_torch_csr_tensor(g.edges, g.weight)),
    ],
    "unbatch": lambda g: utils.unbatch(g.x, BATCH),
    "one_hot": lambda g: [utils.one_hot(torch.arange(4) % 3), utils.cumsum(torch.arange(4))],
    "graphs": lambda g: [
        utils.erdos_renyi_graph(6, 0.4),
        utils.stochastic_blockmodel_graph([3, 3], [[0.5, 0.1], [0.1, 0.5]]),
        utils.grid(2, 3),
        utils.mask_feature(g.x, 0.4),
        utils.shuffle_node(g.x),
    ],
    "scipy": lambda g: utils.from_scipy_sparse_matrix(
        utils.to_scipy_sparse_matrix(g.edges, g.weight)
    ),
    "networkx": lambda g: utils.from_networkx(utils.to_networkx(g.data(), node_attrs=["x"])),
    "select": lambda g: [
        utils.index_sort(g.edges[0], max_value=NODES),
        utils.index_to_mask(torch.tensor([1, 3]), 5),
        utils.mask_to_index(torch.arange(5) > 2),
        utils.select(g.x, torch.arange(NODES) > 2, 0),
        utils.group_argsort(g.weight, g.edges[0]),
    ],
    "homophily": lambda g: torch.tensor(
        [
            utils.homophily(g.edges, torch.arange(NODES) % 3, method=kind)
            for kind in ("edge", "node", "edge_insensitive")
        ]
    ),
}


@pytest.mark.parametrize("name", UTILITIES)
def test_utility(name) -> None:
    torch.manual_seed(12)
    recorded.check(f"utility {name}", digest(UTILITIES[name](Graph())))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "mul"])
def test_scatter(reduce) -> None:
    graph = Graph()
    run = lambda: utils.scatter(graph.x, BATCH, reduce=reduce)
    recorded.check(f"scatter {reduce}", train(run, graph.x.requires_grad_()))
    if reduce != "mul":
        graph = Graph()
        run = lambda: utils.segment(graph.x, PTR, reduce=reduce)
        recorded.check(f"segment {reduce}", train(run, graph.x.requires_grad_()))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_spmm(layout, reduce) -> None:
    graph = Graph()
    make = getattr(utils, f"to_torch_{layout}_tensor")
    matrix = make(utils.coalesce(graph.edges), size=(NODES, NODES))
    run = lambda: utils.spmm(matrix, graph.x, reduce)
    recorded.check(f"spmm {layout} {reduce}", train(run, graph.x.requires_grad_()))


# ---- transforms

TRANSFORMS = {
    name: (lambda name=name, args=args: getattr(transforms, name)(*args))
    for name, args in {
        "ToUndirected": (), "AddSelfLoops": (), "RemoveSelfLoops": (), "RemoveIsolatedNodes": (),
        "RemoveDuplicatedEdges": (), "LargestConnectedComponents": (), "NormalizeFeatures": (),
        "Constant": (), "OneHotDegree": (20,), "TargetIndegree": (), "LocalDegreeProfile": (),
        "GCNNorm": (), "NormalizeScale": (), "Center": (), "Distance": (), "Cartesian": (),
        "LocalCartesian": (), "Spherical": (), "RandomJitter": (0.1,), "RandomFlip": (0,),
        "RandomScale": ((0.8, 1.2),), "RandomShear": (0.1,), "AddRemainingSelfLoops": (),
        "LineGraph": (), "VirtualNode": (), "AddRandomWalkPE": (3,), "TwoHop": (),
        "RootedEgoNets": (1,), "ToDense": (8,), "ToDevice": ("cpu",), "RandomNodeSplit": (),
        "LinearTransformation": (torch.eye(3) * 2,), "Pad": (10, 20),
    }.items()
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name) -> None:
    torch.manual_seed(12)
    random.seed(12)
    transform = TRANSFORMS[name]()
    recorded.check(f"transform {name}", digest(transform(Graph().data())))
    assert name in repr(transform)


def test_transforms_of_meshes_and_heterogeneous_graphs() -> None:
    torch.manual_seed(12)
    graph = Graph()
    for name, data in {
        "FaceToEdge": Data(face=FACE, num_nodes=4),
        "GenerateMeshNormals": Data(pos=graph.pos, face=FACE),
        "ToUndirected": hetero(),
    }.items():
        recorded.check(f"mesh {name}", digest(getattr(transforms, name)()(data)))
    paths = transforms.AddMetaPaths([[("a", "b"), ("b", "a")]])
    # The order inside of a row of a sparse product is free.
    found = paths(hetero())["a", "metapath_0", "a"].edge_index
    recorded.check("metapaths", digest(utils.coalesce(found)))


# ---- data


def test_batches() -> None:
    data = [Graph(seed).data() for seed in range(3)]
    batch = Batch.from_data_list(data)
    recorded.check("batch", digest([batch, batch.batch, batch.ptr]))
    assert batch.num_graphs == 3 and torch.equal(batch[1].x, data[1].x)
    assert torch.equal(batch.to_data_list()[2].edge_index, data[2].edge_index)
    assert str(data[0]).startswith("Data(x=[6, 8], edge_index=[2, 14]")
    both = Batch.from_data_list([hetero(), hetero()])
    recorded.check("hetero batch", digest([both["a"].batch, both["a", "to", "b"].edge_index]))


def test_copies_of_data() -> None:
    data = Graph().data()
    file = io.BytesIO()
    torch.save(data, file)
    file.seek(0)
    copies = [copy.deepcopy(data), pickle.loads(pickle.dumps(data)), data.clone()]
    copies += [copy.copy(data), torch.load(file, weights_only=False), data.to("cpu")]
    for other in copies:
        assert torch.equal(other.x, data.x) and torch.equal(other.edge_index, data.edge_index)
    assert copies[0].x.data_ptr() != data.x.data_ptr()


def test_heterogeneous_data() -> None:
    data = hetero()
    whole = data.to_homogeneous()
    recorded.check("homogeneous", digest([whole.edge_index, whole.node_type, whole.edge_type]))
    assert data.metadata() == (["a", "b"], [("a", "to", "b"), ("b", "rev", "a")])
    part = data.subgraph({"a": torch.tensor([0, 1, 2])})
    recorded.check("hetero subgraph", digest(part))


def test_temporal_data() -> None:
    data = TemporalData(src=torch.arange(5), dst=torch.arange(5) + 1, t=torch.arange(5) * 10)
    assert len(data) == 5 and data[1:3].src.tolist() == [1, 2]
    assert data.train_val_test_split(0.2, 0.2)[0].src.tolist() == [0, 1, 2]


@pytest.mark.parametrize("workers", [0, 1])
def test_loader(workers) -> None:
    torch.manual_seed(12)
    data = [Graph(seed).data() for seed in range(6)]
    loader = DataLoader(data, batch_size=4, shuffle=True, follow_batch=["x"], num_workers=workers)
    recorded.check(f"loader {workers}", digest([[b, b.x_batch] for b in loader]))


class Saved(InMemoryDataset):
    raw_file_names = ()
    processed_file_names = ("data.pt",)

    def __init__(self, root) -> None:
        super().__init__(root)
        self.load(self.processed_paths[0])

    def process(self) -> None:
        self.save([Graph(seed).data() for seed in range(3)], self.processed_paths[0])


def test_dataset(tmp_path) -> None:
    data = Saved(str(tmp_path))
    assert len(data) == 3 and len(data[torch.tensor([True, False, True])]) == 2
    recorded.check("dataset", digest([data[2], data[torch.tensor([0, 2])][1], data.copy()[0]]))


# ---- tensor subclasses


def edge_index(order="row"):
    edges = utils.sort_edge_index(Graph().edges, sort_by_row=order == "row")
    return EdgeIndex(edges, sort_order=order, sparse_size=(NODES, NODES))


EDGE_INDEX = {
    "caches": lambda e: [e.get_csr(), e.get_csc(), e.get_indptr()],
    "dense": lambda e: [e.to_dense(), e.to_dense(Graph().weight)],
    "layouts": lambda e: [e.to_sparse_coo(), e.to_sparse_csr(), e.to_sparse_csc()],
    "sort_by": lambda e: e.sort_by("col").values,
    "slices": lambda e: [e[:, :4], e[:, torch.arange(EDGES) > 5], e[0], e[..., 2:], e[:, 3]],
    "index_select": lambda e: e.index_select(1, torch.tensor([0, 3])),
    "arithmetic": lambda e: [e + 1, e - torch.tensor([[1], [0]])],
    "matmul": lambda e: [e @ Graph().x, e.matmul(Graph().x, Graph().weight)],
    "narrow": lambda e: e.sparse_narrow(0, 1, 2),
    "cat": lambda e: [torch.cat([e, e], 1), torch.stack([e[0], e[1]])],
    "split": lambda e: [list(torch.split(e, 7, 1)), list(e.unbind(0)), list(e.chunk(2, 1))],
    "conversions": lambda e: [e.clone(), e.int(), e.cpu(), e.flip(0), e.contiguous()],
}


@pytest.mark.parametrize("name", EDGE_INDEX)
def test_edge_index(name) -> None:
    recorded.check(f"edge index {name}", digest(EDGE_INDEX[name](edge_index())))


def test_edge_index_keeps_its_class_and_state() -> None:
    index = edge_index().fill_cache_()
    index.validate()
    assert index.sort_order == "row" and index.sparse_size() == (NODES, NODES)
    for other in (pickle.loads(pickle.dumps(index)), copy.deepcopy(index), index.clone()):
        assert type(other) is EdgeIndex and other.sort_order == index.sort_order
        assert torch.equal(other.as_tensor(), index.as_tensor())
    assert index.tolist() == index.as_tensor().tolist()
    assert (index.numpy() == index.as_tensor().numpy()).all()
    assert index.flip(0).sort_order == "col" and type(index[:, :4]) is EdgeIndex
    with pytest.raises(ValueError, match="is not sorted by row"):
        EdgeIndex(torch.tensor([[1, 0], [0, 1]]), sort_order="row").validate()


def test_edge_index_gradients() -> None:
    torch.manual_seed(12)
    graph, weight = Graph(), Graph().weight.requires_grad_()
    run = lambda: edge_index().matmul(graph.x, weight)
    recorded.check("edge index grad", train(run, graph.x.requires_grad_(), [weight]))
    graph, layer = Graph(), nn.GCNConv(8, 4)
    run = lambda: layer(graph.x, edge_index("col"))
    recorded.check("edge index layer", train(run, graph.x.requires_grad_(), layer.parameters()))


def test_index() -> None:
    index = Index(torch.tensor([0, 1, 1, 2]), dim_size=3, is_sorted=True).fill_cache_()
    index.validate()
    parts = [index.get_indptr(), index[1:], index + 1, index.flip(0), index.sort().values]
    parts += [torch.cat([index, index]), index.index_select(0, torch.tensor([0, 2]))]
    parts += [index[torch.tensor([True, False, True, False])], index.view(-1), index == 1]
    recorded.check("index", digest(parts))
    again = pickle.loads(pickle.dumps(index))
    assert type(again) is Index and again.dim_size == 3 and again.tolist() == [0, 1, 1, 2]
    assert repr(index) == "Index([0, 1, 1, 2], dim_size=3, is_sorted=True)"
