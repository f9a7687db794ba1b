"""Networks over graphs: nodes, edges that data holds, and sums over neighbours."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unseen_models.table import Part, add, load

WIDTH = 8
NODES_AND_EDGES = ({0: "n"}, {1: "e"})
EDGES = (14, 9, 23)


def _graph(n: int, e: int = EDGES[0]) -> tuple[Tensor, Tensor]:
    """Five nodes for each of `n`, and `e` edges."""
    return torch.randn(5 * n, WIDTH), torch.randint(0, 5 * n, (2, e))


def _weighted(n: int, e: int = EDGES[0]) -> tuple[Tensor, Tensor, Tensor]:
    return *_graph(n, e), torch.rand(e)


def _described(n: int, e: int = EDGES[0]) -> tuple[Tensor, Tensor, Tensor]:
    return *_graph(n, e), torch.randn(e, 4)


def _many(n: int, e: int = EDGES[0]) -> tuple[Tensor, Tensor, Tensor]:
    """As many graphs as `n`, of five nodes each; the last input says to which one a node belongs."""
    return *_graph(n, e), torch.arange(n).repeat_interleave(5)


def _layer(name: str, inputs: Any = _graph, *more: dict[int, str], **options: Any) -> None:
    options = {"in_channels": WIDTH, "out_channels": 6} | options
    add(
        "torch_geometric",
        name,
        lambda: getattr(load("torch_geometric.nn"), name)(**options),
        inputs,
        *NODES_AND_EDGES,
        *more,
        e=EDGES,
    )


for _name in ("GCNConv", "SAGEConv", "GATConv", "GATv2Conv", "TransformerConv", "LEConv", "ClusterGCNConv"):
    _layer(_name)
_layer("ChebConv", K=3)
_layer("TAGConv")
_layer("ResGatedGraphConv")
_layer("SuperGATConv", heads=2)
_layer("MixHopConv")
_layer("EGConv", out_channels=8, num_heads=2, num_bases=2)
_layer("ARMAConv", num_stacks=2, num_layers=2)
_layer("GraphConv", _weighted, {0: "e"}, aggr="max")
_layer("GENConv", _described, {0: "e"}, edge_dim=4)
_layer("GMMConv", _described, {0: "e"}, dim=4, kernel_size=3)
MODELS_OF_GRAPHS = {
    "GIN": {"num_layers": 2},
    "PNA": {
        "num_layers": 2,
        "aggregators": ["mean", "min", "max", "std"],
        "scalers": ["identity", "amplification", "attenuation"],
        "deg": torch.tensor([1, 3, 4, 2]),
    },
    "EdgeCNN": {"num_layers": 2},
    "GraphSAGE": {"num_layers": 3, "jk": "lstm"},
}
for _name, _options in MODELS_OF_GRAPHS.items():
    add(
        "torch_geometric",
        _name,
        lambda name=_name, options=_options: getattr(load("torch_geometric.nn"), name)(
            in_channels=WIDTH, hidden_channels=12, out_channels=4, **options
        ),
        _graph,
        *NODES_AND_EDGES,
        e=EDGES,
    )


def _classify(pool: Any) -> Any:
    def run(network: Any, x: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
        result: Tensor = pool(network(x, edges), batch)
        return result

    return run


for _pool in ("global_mean_pool", "global_max_pool", "global_add_pool"):
    add(
        "torch_geometric",
        f"GCN, {_pool}",
        lambda pool=_pool: Part(
            load("torch_geometric.nn").GCN(WIDTH, 12, 2, 4), _classify(getattr(load("torch_geometric.nn"), pool))
        ),
        _many,
        *NODES_AND_EDGES,
        {0: "n"},
        e=EDGES,
    )
add(
    "torch_geometric",
    "SoftmaxAggregation",
    lambda: Part(
        load("torch_geometric.nn").SoftmaxAggregation(learn=True),
        lambda m, x, edges, batch: m(x, batch),
    ),
    _many,
    *NODES_AND_EDGES,
    {0: "n"},
    e=EDGES,
)
add(
    "torch_geometric",
    "GATConv, Set2Set",
    lambda: Part(
        load("torch_geometric.nn").Set2Set(WIDTH, 3),
        lambda m, x, edges, batch: m(x, batch),
    ),
    _many,
    *NODES_AND_EDGES,
    {0: "n"},
    e=EDGES,
)
add(
    "torch_geometric",
    "TopKPooling",
    lambda: Part(
        load("torch_geometric.nn").TopKPooling(WIDTH, ratio=0.6),
        lambda m, x, edges, batch: m(x, edges, batch=batch)[:2],
    ),
    _many,
    *NODES_AND_EDGES,
    {0: "n"},
    e=EDGES,
)
add(
    "torch_geometric",
    "DenseGCNConv, dense_diff_pool",
    lambda: Part(
        load("torch_geometric.nn").DenseGCNConv(WIDTH, 6),
        lambda m, x, adjacent: load("torch_geometric.nn").dense_diff_pool(m(x, adjacent), adjacent, x)[:2],
    ),
    lambda n, v=7: (torch.randn(n, v, WIDTH), torch.rand(n, v, v)),
    {0: "n", 1: "v"},
    {0: "n", 1: "v", 2: "v"},
    v=(7, 4, 11),
)
add(
    "torch_geometric",
    "SchNet's interactions",
    lambda: Part(
        load("torch_geometric.nn").SchNet(hidden_channels=8, num_filters=8, num_interactions=2, num_gaussians=5),
        lambda m, x, edges, lengths: m.interactions[0](x, edges, lengths, m.distance_expansion(lengths)),
    ),
    _weighted,
    *NODES_AND_EDGES,
    {0: "e"},
    e=EDGES,
)
