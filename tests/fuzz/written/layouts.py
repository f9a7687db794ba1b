"""Programs that ask how a tensor lies in memory: bytes, strides, storages, what shares it and what copies it."""

import copy
import io

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="float batch=3 4")
class BytesDecide(nn.Module):
    def forward(self, x):
        return x * 2 if x.nbytes > 112 else x + 1


@program(x="float batch=3 4")
class BytesAsANumber(nn.Module):
    def forward(self, x):
        return x * (x.nbytes // x.itemsize)


@program(x="float batch=3 4")
class ElementsTimesSize(nn.Module):
    def forward(self, x):
        return x / (x.numel() * x.element_size())


@program(x="float batch=3 width=4")
class FirstStride(nn.Module):
    def forward(self, x):
        return x + x.stride(0)


@program(x="float batch=3 width=4")
class StrideOfTransposed(nn.Module):
    def forward(self, x):
        return x * x.t().stride(1) if x.t().stride()[0] == 1 else x


@program(x="float batch=3 width=4")
class StridesTell(nn.Module):
    def forward(self, x):
        y = x.t()
        return y.reshape(-1) if y.stride(1) > 5 else y.contiguous().view(-1) * 2


@program(x="float batch=6 4")
class OffsetOfAView(nn.Module):
    def forward(self, x):
        half = x[x.shape[0] // 2 :]
        return half + half.storage_offset()


@program(x="float batch=6 4")
class StorageOfAView(nn.Module):
    def forward(self, x):
        return x[1:] * (x[1:].untyped_storage().nbytes() // 4)


@program(x="float batch=3 4")
class StorageSize(nn.Module):
    def forward(self, x):
        return x[:1] * len(x.untyped_storage())


@program(x="float batch=3 width=4")
class SquareOfMemory(nn.Module):
    def forward(self, x):
        return torch.as_strided(x, (x.shape[1], x.shape[0]), (x.shape[0], 1))


@program(x="float batch=2 3 height=4 width=5")
class IsChannelsLast(nn.Module):
    def forward(self, x):
        y = x.to(memory_format=torch.channels_last)
        return y * 2 if y.is_contiguous(memory_format=torch.channels_last) else y


@program(x="float batch=2 3 height=4 width=5")
class IsStillContiguous(nn.Module):
    def forward(self, x):
        y = x.permute(0, 2, 3, 1)
        return y.contiguous() if not y.is_contiguous() else y * 2


@program(x="float batch=2 3 height=4 width=5")
class RowIsContiguous(nn.Module):
    def forward(self, x):
        y = x[:, :, :, :1]
        return y * 2 if y.is_contiguous() else y


@program(x="float batch=3 4")
class SharesMemory(nn.Module):
    def forward(self, x):
        y = x.reshape(-1)
        return y * 2 if y.data_ptr() == x.data_ptr() else y


@program(x="float batch=3 width=4")
class TransposedSharesMemory(nn.Module):
    def forward(self, x):
        y = x.t().contiguous()
        return y * 2 if y.data_ptr() == x.data_ptr() else y


@program(x="float batch=3 4")
class ContiguousIsItself(nn.Module):
    def forward(self, x):
        y = x.contiguous()
        return y * 2 if y is x else y


@program(x="float batch=3 width=4")
class ExpandIsItself(nn.Module):
    def forward(self, x):
        y = x.expand(x.shape[0], x.shape[1])
        return y * 2 if y is x else y


@program(x="float batch=3 4")
class ConvertedIsItself(nn.Module):
    def forward(self, x):
        y = x.to(torch.float32)
        y = y.float()
        return y * 2 if y is x else y


@program(x="float batch=3 width=4")
class WritesThroughReshape(nn.Module):
    def forward(self, x):
        x = x.clone()
        x.t().reshape(-1)[0] = 7
        x.reshape(-1)[1] = 9
        return x


@program(x="float batch=3 width=4")
class WritesThroughFlattened(nn.Module):
    def forward(self, x):
        x = x.clone()[:, 1:]
        x.flatten()[0] = 100
        return x


@program(x="float batch=3 4")
class WritesThroughChunks(nn.Module):
    def forward(self, x):
        x = x + 0
        for i, part in enumerate(x.chunk(2)):
            part.add_(i)
        return x


@program(x="float batch=3 4")
class WritesThroughUnbound(nn.Module):
    def forward(self, x):
        x = x + 0
        x.unbind(1)[2].mul_(3)
        x.select(0, -1).zero_()
        return x


@program(x="float batch=3 4")
class WritesThroughNarrow(nn.Module):
    def forward(self, x):
        x = x.clone()
        x.narrow(0, x.shape[0] // 2, 1).fill_(x.shape[0])
        return x


@program(x="float batch=3 4")
class WritesThroughDiagonal(nn.Module):
    def forward(self, x):
        x = x.clone()
        x.diagonal().copy_(x[:, 0][: x.diagonal().shape[0]])
        return x


@program(x="float batch=3 4")
class WritesThroughUnfold(nn.Module):
    def forward(self, x):
        x = x.clone()
        x.unfold(1, 2, 2)[..., 0].neg_()
        return x


@program(x="float batch=3 4")
class WritesThroughReal(nn.Module):
    def forward(self, x):
        z = torch.complex(x, x + 1)
        z.real.mul_(2)
        z.imag[:1] = 0
        return torch.view_as_real(z)


@program(x="float batch=3 4")
class ReadsWhatOneWrote(nn.Module):
    def forward(self, x):
        x = x.clone()
        row, whole = x[0], x.view(-1)
        whole += 1
        first = row.sum()
        row.zero_()
        return x, whole, first


@program(x="float batch=3 4")
class OverlappingWrites(nn.Module):
    def forward(self, x):
        x = x.clone()
        x[1:] = x[:-1].clone()
        x[:, 1:] += x[:, :-1].clone()
        return x


@program(x="float batch=3 4")
class SwapsRows(nn.Module):
    def forward(self, x):
        x = x.clone()
        x[[0, -1]] = x[[-1, 0]]
        return x


@program(x="float batch=3 4")
class BitsOfFloats(nn.Module):
    def forward(self, x):
        return x.view(torch.int32) & 0x7FFFFFFF


@program(x="float batch=3 4")
class FastInverseRoot(nn.Module):
    def forward(self, x):
        x = x.abs() + 0.5
        y = (0x5F3759DF - (x.view(torch.int32) >> 1)).view(torch.float32)
        return y * (1.5 - 0.5 * x * y * y)


@program(x="float batch=3 4")
class BytesOfFloats(nn.Module):
    def forward(self, x):
        return x.view(torch.uint8).reshape(x.shape[0], -1).sum(1)


@program(x="uint8 batch=3 8")
class FloatsOfBytes(nn.Module):
    def forward(self, x):
        return x.view(torch.int16).float()


@program(x="number batch=3 4")
class SignBits(nn.Module):
    def forward(self, x):
        return torch.signbit(x), torch.copysign(torch.ones_like(x), x)


@program(x="float batch=3 4")
class MantissaAndExponent(nn.Module):
    def forward(self, x):
        mantissa, exponent = torch.frexp(x)
        return torch.ldexp(mantissa, exponent), exponent


@program(x="float batch=3 4")
class NextFloat(nn.Module):
    def forward(self, x):
        return torch.nextafter(x, torch.full_like(x, 10.0))


@program(x="float batch=3 4")
class StridesOfNumpy(nn.Module):
    def forward(self, x):
        return x * x.detach().numpy().strides[0]


@program(x="float batch=3 4")
class SizeOfNumpy(nn.Module):
    def forward(self, x):
        return x * np.asarray(x.detach()).size


@program(x="float batch=3 4")
class SavedAndLoaded(nn.Module):
    def forward(self, x):
        stream = io.BytesIO()
        torch.save(x.detach(), stream)
        stream.seek(0)
        return x + torch.load(stream)


@program(x="float batch=3 4")
class DeepCopied(nn.Module):
    def forward(self, x):
        y = copy.deepcopy(x)
        y += 1
        return x * y


@program(x="float batch=3 4")
class CopiedShallow(nn.Module):
    def forward(self, x):
        x = x + 0
        y = copy.copy(x)
        y += 1
        return x * 2


@program(x="float batch=3 4")
class SetToAnother(nn.Module):
    def forward(self, x):
        y = torch.empty(0)
        y.set_(x.clone().untyped_storage(), 0, (x.shape[0], 2), (4, 1))
        return y


@program(x="float batch=3 4")
class ResizedInPlace(nn.Module):
    def forward(self, x):
        y = x.clone()
        y.resize_(2, x.shape[0])
        return y


@program(x="float batch=3 4")
class OutOfAnEmpty(nn.Module):
    def forward(self, x):
        y = torch.empty(0)
        torch.cat([x, x * 2], out=y)
        return y


@program(x="float batch=3 4")
class FilledEmpty(nn.Module):
    def forward(self, x):
        y = x.new_empty(x.shape[0] + 1, x.shape[1])
        y[0] = 0
        y[1:] = x
        return y


@program(x="float batch=3 4")
class DataOfAnother(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        y.data = x * 2
        return y + x


@program(x="float batch=3 4")
class DataWritten(nn.Module):
    def forward(self, x):
        y = x * 1
        y.data[0] = 5
        y.data.mul_(2)
        return y


@program(x="float batch=2 3 length=8")
class SlidingByStrides(nn.Module):
    def forward(self, x):
        size, step = 4, 2
        count = (x.shape[-1] - size) // step + 1
        x = x.contiguous()
        a, b, c = x.stride()
        return x.as_strided((x.shape[0], x.shape[1], count, size), (a, b, c * step, c)).mean(-1)


@program(x="float batch=2 length=6 4")
class HeadsByStride(nn.Module):
    def forward(self, x):
        y = x.view(x.shape[0], -1, 2, 2).transpose(1, 2)
        z = y.contiguous().view(-1, x.shape[1], 2) if not y.is_contiguous() else y.view(-1, x.shape[1], 2) * 3
        return F.softmax(z, -1)


@program(x="float batch=3 4")
class DimensionOrder(nn.Module):
    def forward(self, x):
        order = x.t().dim_order()
        return x.permute(order)


@program(x="float batch=3 4")
class PinnedOrNot(nn.Module):
    def forward(self, x):
        if x.is_pinned() or x.is_cuda or x.is_sparse or x.is_quantized or x.device.type != "cpu" or x.is_meta:
            return x * 2
        return x
