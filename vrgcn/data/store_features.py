"""Features between memory and the arrays of a graph's folder: dense, sparse, or in blocks."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from vrgcn.data.store_format import SPARSE_FEATURES, BlockPlace, Meta, blocks_of
from vrgcn.graph.block import Block
from vrgcn.graph.blocks import Blocks
from vrgcn.graph.sparse import CSR, in_blocks, is_sparse, stored


def features_from(arrays: dict[str, Tensor], meta: Meta) -> Tensor:
    """The features whose arrays, by name, `meta.json` describes."""

    def matrix(names: Sequence[str], width: int) -> Tensor:
        if len(names) == 1:
            return arrays[names[0]]
        indptr, indices, values = (arrays[name] for name in names)
        return CSR(indptr, indices, values, width).to_torch()

    places = blocks_of(meta)
    if places is None:
        sparse = meta["feature_layout"] == "sparse"
        return matrix(SPARSE_FEATURES if sparse else ["features"], meta["width"])
    blocks = [
        Block(matrix(place.files(number), place.width), place.column, place.row)
        for number, place in enumerate(places)
    ]
    return Blocks((meta["nodes"], meta["width"]), blocks)


def feature_arrays(features: Tensor) -> dict[str, Tensor]:
    """The arrays that features consist of, by the names of their files."""
    places = block_places(features)
    if places is not None:
        names = [name for number, place in enumerate(places) for name in place.files(number)]
        return dict(zip(names, stored(features), strict=True))
    names = list(SPARSE_FEATURES) if is_sparse(features) else ["features"]
    return dict(zip(names, stored(features), strict=True))


def block_places(features: Tensor) -> list[BlockPlace] | None:
    """Where the blocks of features are; None if they are one matrix."""
    if not in_blocks(features):
        return None
    return [
        BlockPlace(b.row, b.column, b.num_rows, b.width, b.matrix.num_entries if b.sparse else None)
        for b in features.blocks
    ]
