"""What a call returns: an answer's facts, and views over its one buffer.

A `Batch` never copies its elements unless it is asked to: arrays, tensors and
the batches of `split` all lie in the buffer that the answer was received into,
and keep it alive.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from patchmill_client import normalize, tensors
from patchmill_client.buffer import Body, BodyReader
from patchmill_client.errors import AlreadyNormalized
from patchmill_client.values import Dtype, Grid, Item, Layout, Normalization, Order, Size
from patchmill_client.wire import packed_shape

if TYPE_CHECKING:
    from torch import Tensor, device

Device: TypeAlias = "device | str | int"
"""What torch takes as a device: torch.device("cuda"), "cuda:1", 1."""
PixelValues: TypeAlias = "Tensor | NDArray[np.generic]"
"""A torch tensor where torch is installed, else a NumPy array."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """One answer. `data` is its elements as (bytes,) uint8, 64-byte aligned before a split."""

    model: str
    layout: Layout
    order: Order
    numerics: str
    dtype: Dtype
    items: tuple[Item, ...]
    normalization: Normalization
    timings_ms: Mapping[str, float]
    request_id: str | None
    data: NDArray[np.uint8]

    @classmethod
    def from_bytes(cls, body: bytes | bytearray | memoryview) -> "Batch":
        """An answer that was kept, such as curl's output; it is copied once, to be aligned.

        Raises LyingAnswer.
        """
        reader = BodyReader(None, max_answer_bytes=len(body), length_bytes=len(body))
        reader.feed(body)
        return received(reader.finish(), None)

    @property
    def grid_thws(self) -> tuple[Grid, ...]:
        """The grids of all items; `torch.tensor(batch.grid_thws)` is (items, 3)."""
        return tuple(item.grid_thw for item in self.items)

    @property
    def imgs_sizes(self) -> tuple[Size, ...]:
        """(H, W) in pixels of each item: a picture of it, or each of its frames or tiles."""
        return tuple(item.image_size for item in self.items)

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, 3, P, P) over all items; not cut (3, H, W) of one picture and (N, 3, H, W) of more.

        (elements,) when the items' patches or pictures differ in size.
        """
        return packed_shape(self.items)

    @property
    def pixel_values(self) -> PixelValues:
        """The elements without a copy: `torch()` where torch is installed, else `numpy()`."""
        return self.numpy() if tensors.find_torch() is None else self.torch()

    def numpy(self) -> NDArray[np.generic]:
        """The elements as an array of `shape`, without a copy; a bfloat16's bits as uint16."""
        return self.data.view(self.dtype.storage).reshape(self.shape)

    def torch(self) -> "Tensor":
        """The elements as a CPU tensor of `shape`, without a copy; raises MissingPackage."""
        return tensors.view(self.numpy(), self.dtype)

    def split(self) -> tuple["Batch", ...]:
        """A batch for each item, in order, over the same buffer."""
        start = self.items[0].offset_bytes
        return tuple(
            replace(
                self,
                items=(item,),
                data=self.data[item.offset_bytes - start :][: item.length_bytes],
            )
            for item in self.items
        )

    def to(self, device: Device) -> "Tensor":
        """The elements on a device; to a GPU through pinned memory, on the current stream.

        On the CPU this is `torch()`, without a copy. Raises MissingPackage.
        """
        return tensors.moved(self.torch(), device)

    def normalize(self, device: "Device | None" = None, dtype: str = Dtype.FLOAT32) -> PixelValues:
        """A uint8 batch normalised as the service would have: the same bits on every device.

        `device` None and "cpu" look up on the CPU; on another device the bytes
        travel first and are looked up there. Raises AlreadyNormalized for a
        batch of another type, ValueError for a `dtype` that is not a float type.
        """
        wanted = Dtype(dtype)
        if wanted is Dtype.UINT8:
            raise ValueError("uint8 elements are not normalised; name a float type")
        if self.normalization.applied:
            raise AlreadyNormalized(f"the elements are {self.dtype} and normalised already")
        values = normalize.table(wanted, self.normalization.mean, self.normalization.std)
        shapes = [item.shape for item in self.items]
        if device not in (None, "cpu") and tensors.need_torch().device(device).type != "cpu":
            flat = tensors.normalized_on(device, self.data, shapes, values, wanted)
            return flat.reshape(self.shape)
        array = normalize.normalized(self.data, shapes, values).reshape(self.shape)
        return array if tensors.find_torch() is None else tensors.view(array, wanted)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"<Batch of {len(self)}: {self.model}, {self.dtype}, {self.shape}>"


def received(body: Body, request_id: str | None) -> Batch:
    """The batch over an answer that was received whole."""
    head = body.head
    return Batch(
        model=head.model,
        layout=head.layout,
        order=head.order,
        numerics=head.numerics,
        dtype=head.dtype,
        items=head.items,
        normalization=head.normalization,
        timings_ms=head.timings_ms,
        request_id=request_id,
        data=body.data,
    )
