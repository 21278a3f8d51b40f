#!/usr/bin/env python3
"""Times one training step of bench_step's ViT, or one Hessian-vector product, in PyTorch. Flags, JSON keys and
arithmetic are the same as in bench_step.

The script needs torch and numpy: pip install torch numpy. compare.sh runs the script in turn with bench_step.
"""
import argparse
import contextlib
import json
import resource
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


class Attention(nn.Module):
    def __init__(self, dim, heads, dropkey):
        super().__init__()
        self.heads, self.dropkey = heads, dropkey
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def dropped_scores(self, q):
        """Returns the values that DropKey adds to the scores: 0, or a very negative number for a dropped key."""
        b, h, n, _ = q.shape
        dropped = torch.rand(b, h, n, n, device=q.device) < self.dropkey
        return torch.zeros(b, h, n, n, dtype=q.dtype, device=q.device).masked_fill_(dropped, -1e12 if q.dtype == torch.float32 else -1e4)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mask = self.dropped_scores(q) if self.dropkey > 0 else None
        return self.proj(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(b, n, d))


class LayerScale(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((dim,), 1e-4))

    def forward(self, x):
        return self.gamma * x


class Block(nn.Module):
    def __init__(self, dim, heads, gate, dropkey):
        super().__init__()
        gated = (lambda: LayerScale(dim)) if gate == "layerscale" else nn.Identity
        self.attn = nn.Sequential(nn.LayerNorm(dim), Attention(dim, heads, dropkey), gated())
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), gated())

    def forward(self, x):
        x = x + self.attn(x)
        return x + self.mlp(x)


class ViT(nn.Module):
    def __init__(self, o):
        super().__init__()
        tokens = (o.image // o.patch) ** 2 + 1
        self.patches = nn.Conv2d(3, o.dim, o.patch, o.patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, o.dim))
        self.position = nn.Parameter(0.02 * torch.randn(1, tokens, o.dim))
        self.blocks = nn.Sequential(*(Block(o.dim, o.heads, o.gate, o.dropkey) for _ in range(o.depth)))
        self.norm = nn.LayerNorm(o.dim)
        self.head = nn.Linear(o.dim, o.classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])


def matmul_flops(o):
    """Returns the FLOPs of the matrix products of a step: forward, and twice as many backward."""
    patches = (o.image // o.patch) ** 2
    tokens = patches + 1
    block = 2 * tokens * 12 * o.dim**2 + 4 * tokens**2 * o.dim
    return 3 * o.batch * (o.depth * block + 2 * patches * 3 * o.patch**2 * o.dim + 2 * o.dim * o.classes)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = dict(depth=12, dim=192, heads=3, batch=64, image=32, patch=4, classes=100, threads=2, steps=20, warmup=5, seed=0)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"[{default}]")
    parser.add_argument("--gate", choices=["none", "layerscale"], default="none")
    parser.add_argument("--dropkey", type=float, default=0.0)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32", help="bf16: autocast")
    parser.add_argument("--work", choices=["step", "hvp"], default="step", help="step: a training step; hvp: a Hessian-vector product")
    parser.add_argument("--mode", choices=["eager", "compile", "graph"], default="eager", help="graph: torch.compile with CUDA graphs (reduce-overhead)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    return parser.parse_args()


def main():
    o = arguments()
    base_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # memory of Python and its libraries
    torch.manual_seed(o.seed)
    torch.set_num_threads(o.threads)
    on_gpu = o.device == "cuda"
    model = ViT(o).to(o.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), weight_decay=0.05, fused=True)
    images = torch.randn(o.batch, 3, o.image, o.image).to(o.device)
    labels = torch.randint(0, o.classes, (o.batch,)).to(o.device)
    run = model if o.mode == "eager" else torch.compile(model, mode="reduce-overhead" if o.mode == "graph" else None)
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    parameters = list(model.parameters())
    direction = [torch.randn_like(p) for p in parameters]

    seconds = []
    for step in range(o.warmup + o.steps):
        wait()
        start = time.perf_counter()
        # PyTorch's fused attention has no second derivative, but its math backend has one.
        attention = sdpa_kernel(SDPBackend.MATH) if o.work == "hvp" else contextlib.nullcontext()
        with torch.autocast(o.device, torch.bfloat16, enabled=o.dtype == "bf16"), attention:
            loss = F.cross_entropy(run(images).float(), labels)
        if o.work == "hvp":
            gradient = torch.autograd.grad(loss, parameters, create_graph=True)
            torch.autograd.grad(gradient, parameters, direction)
            del gradient
        else:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        wait()
        if step >= o.warmup:
            seconds.append(time.perf_counter() - start)
    seconds.sort()
    median = seconds[len(seconds) // 2]
    measured = dict(
        torch=torch.__version__,
        **(dict(machine=torch.cuda.get_device_name(), cuda=torch.version.cuda) if on_gpu else {}),
        min_s=seconds[0],
        median_s=median,
        images_per_s=o.batch / median,
        gflops_per_s=matmul_flops(o) / median * 1e-9,
        loss=loss.item(),
        base_bytes=base_bytes,
        peak_bytes=torch.cuda.max_memory_allocated() if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        parameters=sum(p.numel() for p in model.parameters()),
    )
    print(json.dumps(vars(o) | measured))


if __name__ == "__main__":
    main()
