"""A GPU node: pictures to patchmill, patches through a small random vision encoder, tokens.

    python examples/nemotron_gpu_node.py [PICTURE ...] [--url http://127.0.0.1:8080]
                                         [--device cpu|cuda] [--order raster|merge]

Needs patchmill_client and torch, and a running service. The encoder's weights
are random, so the tokens mean nothing; their shapes and their order are real.
"""

import argparse

import torch
from patchmill_client import Batch, Client
from patchmill_client.orders import merge_index
from patchmill_client.pixel_shuffle import pixel_shuffle_packed
from torch import Tensor, nn

MODEL, PATCH, MERGE = "nemotron-nano-vl", 16, 2
HIDDEN, HEADS, LAYERS = 128, 4, 2


class Encoder(nn.Module):
    """Patch embedding, position embeddings by index, attention within each image.

    A place is a row and a column, each with a table of `longest_side` embeddings: the
    profile allows strips of thousands of patches, whose square no table could have.
    """

    def __init__(self, longest_side: int) -> None:
        super().__init__()
        self.embed = nn.Linear(3 * PATCH * PATCH, HIDDEN)
        self.rows = nn.Embedding(longest_side, HIDDEN)
        self.columns = nn.Embedding(longest_side, HIDDEN)
        layer = nn.TransformerEncoderLayer(HIDDEN, HEADS, 4 * HIDDEN, 0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)

    def forward(self, patches: Tensor, places: Tensor, lengths: list[int]) -> Tensor:
        """(L, 3, P, P) packed patches and their (L, 2) places to (1, L, HIDDEN)."""
        x = self.embed(patches.flatten(1)) + self.rows(places[:, 0]) + self.columns(places[:, 1])
        return torch.cat([self.layers(image[None]) for image in x.split(lengths)], dim=1)


def places_of(batch: Batch) -> Tensor:
    """(L, 2): row and column of each patch in its picture, in the order in which they came."""
    grids = [torch.cartesian_prod(torch.arange(h), torch.arange(w)) for _, h, w in batch.grid_thws]
    places = torch.cat(grids)
    return places[merge_index(batch.grid_thws, MERGE)] if batch.order == "merge" else places


def tokens_of(encoded: Tensor, sizes: list[tuple[int, int]], order: str) -> Tensor:
    """(1, L, HIDDEN) to (1, L / 4, 4 * HIDDEN)."""
    if order == "merge":  # the patches of a token lie together: a view
        return encoded.view(1, -1, MERGE * MERGE * HIDDEN)
    return pixel_shuffle_packed(encoded, sizes, patch_size=PATCH, scale_factor=1 / MERGE)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pictures", nargs="*", default=["examples/picture.jpg"])
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--order", choices=("raster", "merge"), default="raster")
    options = parser.parse_args()

    with Client(options.url) as client:
        batch = client.preprocess(options.pictures, model=MODEL, order=options.order)
    sizes = [(height, width) for height, width in batch.imgs_sizes]
    places = places_of(batch)
    lengths = [item.num_patches for item in batch.items]

    torch.manual_seed(0)
    encoder = Encoder(int(places.max()) + 1).eval().to(options.device)
    with torch.inference_mode():
        encoded = encoder(batch.to(options.device), places.to(options.device), lengths)
        tokens = tokens_of(encoded, sizes, batch.order)

    print(f"order    {batch.order}")
    print(f"sizes    {sizes}")
    print(f"patches  {batch.shape} {batch.dtype}")
    print(f"encoded  {tuple(encoded.shape)} on {encoded.device}")
    print(f"tokens   {tuple(tokens.shape)}, by picture {[item.num_tokens for item in batch.items]}")
    print(f"mean     {tokens.mean().item():.6f}, first {tokens[0, 0, :4].tolist()}")


if __name__ == "__main__":
    main()
