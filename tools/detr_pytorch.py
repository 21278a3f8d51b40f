"""The networks of Plumb's nn::Detr in PyTorch, with the names of facebookresearch/detr: for comparisons of weights, cases and speed.

The transformer is written after models/transformer.py, models/detr.py and models/position_encoding.py of that repository; the backbone is
Plumb's: convolutions of stride 2 with batch norm and ReLU.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F


def sine_positions(keep, dim):
    """keep [B, H, W] (1 = pixel of the image) -> [B, H W, dim]."""
    y, x = keep.cumsum(1, dtype=torch.get_default_dtype()), keep.cumsum(2, dtype=torch.get_default_dtype())
    y, x = y / (y[:, -1:, :] + 1e-6) * 2 * math.pi, x / (x[:, :, -1:] + 1e-6) * 2 * math.pi
    i = torch.arange(dim // 2)
    t = 10000 ** (2 * (i // 2) / (dim // 2))

    def waves(u):
        w = u[..., None] / t
        return torch.stack([w[..., 0::2].sin(), w[..., 1::2].cos()], -1).flatten(-2)

    return torch.cat([waves(y), waves(x)], -1).flatten(1, 2)


def plus(x, position):
    return x if position is None else x + position


class Layer(nn.Module):
    """A block of the encoder, or, with `cross`, of the decoder; post-norm, or pre-norm."""

    def __init__(self, dim, heads, hidden, dropout, attention_dropout, pre, cross):
        super().__init__()
        self.pre, self.cross = pre, cross
        self.self_attn = nn.MultiheadAttention(dim, heads, attention_dropout, batch_first=True)
        if cross:
            self.multihead_attn = nn.MultiheadAttention(dim, heads, attention_dropout, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        if cross:
            self.norm3 = nn.LayerNorm(dim)
        self.drop = nn.Dropout(dropout)

    def add(self, x, norm, branch):
        return x + self.drop(branch(norm(x))) if self.pre else norm(x + self.drop(branch(x)))

    def forward(self, x, position, padding=None, memory=None, memory_position=None, memory_padding=None):
        def attend(u):
            q = plus(u, position)
            return self.self_attn(q, q, u, key_padding_mask=padding, need_weights=False)[0]

        def read(u):
            return self.multihead_attn(plus(u, position), plus(memory, memory_position), memory, key_padding_mask=memory_padding,
                                       need_weights=False)[0]

        def mlp(u):
            return self.linear2(self.drop(F.relu(self.linear1(u))))

        x = self.add(x, self.norm1, attend)
        if self.cross:
            x = self.add(x, self.norm2, read)
        return self.add(x, self.norm3 if self.cross else self.norm2, mlp)


class Stack(nn.Module):
    def __init__(self, layers, norm):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        if norm is not None:
            self.norm = norm


class Transformer(nn.Module):
    def __init__(self, dim, heads, hidden, encoder, decoder, dropout, attention_dropout, pre):
        super().__init__()
        make = lambda cross: Layer(dim, heads, hidden, dropout, attention_dropout, pre, cross)  # noqa: E731
        self.encoder = Stack([make(False) for _ in range(encoder)], nn.LayerNorm(dim) if pre else None)
        self.decoder = Stack([make(True) for _ in range(decoder)], nn.LayerNorm(dim))


class Backbone(nn.Module):
    def __init__(self, channels, widths):
        super().__init__()
        self.conv = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1, bias=False) for a, b in zip([channels] + widths, widths))
        self.norm = nn.ModuleList(nn.BatchNorm2d(b) for b in widths)

    def forward(self, x):
        for conv, norm in zip(self.conv, self.norm):
            x = F.relu(norm(conv(x)))
        return x


class Mlp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 4)])

    def forward(self, x):
        return self.layers[2](F.relu(self.layers[1](F.relu(self.layers[0](x))))).sigmoid()


class Detr(nn.Module):
    def __init__(self, channels=3, classes=91, backbone=(32, 64, 128), dim=256, heads=8, encoder=6, decoder=6, hidden=2048,
                 queries=100, dropout=0.0, attention_dropout=0.0, pre=False):
        super().__init__()
        self.dim = dim
        self.backbone = Backbone(channels, list(backbone))
        self.input_proj = nn.Conv2d(backbone[-1], dim, 1)
        self.transformer = Transformer(dim, heads, hidden, encoder, decoder, dropout, attention_dropout, pre)
        self.query_embed = nn.Embedding(queries, dim)
        self.class_embed = nn.Linear(dim, classes + 1)
        self.bbox_embed = Mlp(dim)

    def forward(self, images, keep=None):
        """images [B, C, H, W], keep [B, H, W] or None -> logits [L, B, Q, classes + 1], boxes [L, B, Q, 4]."""
        features = self.input_proj(self.backbone(images))
        h, w = features.shape[-2:]
        if keep is None:
            cells, padding = torch.ones(1, h, w), None
        else:
            cells = F.interpolate(keep[:, None].to(features.dtype), size=(h, w))[:, 0]
            padding = cells.flatten(1) == 0
        position = sine_positions(cells, self.dim)
        memory = features.flatten(2).transpose(1, 2)
        for layer in self.transformer.encoder.layers:
            memory = layer(memory, position, padding)
        if hasattr(self.transformer.encoder, "norm"):
            memory = self.transformer.encoder.norm(memory)
        queries = self.query_embed.weight
        x, found = torch.zeros(len(images), *queries.shape, dtype=memory.dtype), []
        for layer in self.transformer.decoder.layers:
            x = layer(x, queries, None, memory, position, padding)
            found.append(self.transformer.decoder.norm(x))
        found = torch.stack(found)
        return self.class_embed(found), self.bbox_embed(found)
