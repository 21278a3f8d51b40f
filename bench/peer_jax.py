#!/usr/bin/env python3
"""Times one training step of bench_step's ViT in JAX, compiled as one program. Takes the flags of bench_step and prints
the same JSON keys.

The script needs jax and numpy: pip install jax numpy. compare.sh --jax runs the script in turn with bench_step. With
bf16, the residual stream is bf16 as well, which is less work than in the other programs.
"""
import argparse
import functools
import json
import os
import resource
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = dict(depth=12, dim=192, heads=3, batch=64, image=32, patch=4, classes=100, threads=2, steps=20, warmup=5, seed=0)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"[{default}]")
    parser.add_argument("--gate", choices=["none", "layerscale"], default="none")
    parser.add_argument("--dropkey", type=float, default=0.0)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32", help="bf16: activations and products; parameters stay fp32")
    return parser.parse_args()


o = arguments()
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: o.threads])  # XLA uses every processor that the process may run on
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

grid = o.image // o.patch
tokens = grid**2 + 1
dtype = jnp.bfloat16 if o.dtype == "bf16" else jnp.float32


def initial(key):
    keys = iter(jax.random.split(key, 4 * o.depth + 3))

    def linear(inputs, outputs):
        return {"w": 0.02 * jax.random.normal(next(keys), (inputs, outputs)), "b": jnp.zeros(outputs)}

    def norm():
        return {"w": jnp.ones(o.dim), "b": jnp.zeros(o.dim)}

    def block():
        p = {"norm1": norm(), "qkv": linear(o.dim, 3 * o.dim), "proj": linear(o.dim, o.dim)}
        p |= {"norm2": norm(), "fc1": linear(o.dim, 4 * o.dim), "fc2": linear(4 * o.dim, o.dim)}
        return p | ({"gate1": jnp.full(o.dim, 1e-4, jnp.float32), "gate2": jnp.full(o.dim, 1e-4, jnp.float32)} if o.gate == "layerscale" else {})

    return {
        "patches": linear(3 * o.patch**2, o.dim),
        "cls": jnp.zeros((1, 1, o.dim)),
        "position": 0.02 * jax.random.normal(next(keys), (1, tokens, o.dim)),
        "blocks": [block() for _ in range(o.depth)],
        "norm": norm(),
        "head": linear(o.dim, o.classes),
    }


def linear(x, p):
    return x @ p["w"].astype(dtype) + p["b"].astype(dtype)


def norm(x, p):
    x = x.astype(jnp.float32)
    centred = x - x.mean(-1, keepdims=True)
    return (centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p["w"] + p["b"]).astype(dtype)


def attention(x, p, key):
    b, n, d = x.shape
    q, k, v = linear(x, p["qkv"]).reshape(b, n, 3, o.heads, d // o.heads).transpose(2, 0, 3, 1, 4)
    scores = (q @ k.swapaxes(-1, -2)).astype(jnp.float32) * (d // o.heads) ** -0.5
    if o.dropkey > 0:
        scores = jnp.where(jax.random.bernoulli(key, o.dropkey, scores.shape), -1e12, scores)
    return linear((jax.nn.softmax(scores).astype(dtype) @ v).swapaxes(1, 2).reshape(b, n, d), p["proj"])


def block(x, p, key):
    gate1, gate2 = (p["gate1"].astype(dtype), p["gate2"].astype(dtype)) if o.gate == "layerscale" else (1, 1)
    x = x + gate1 * attention(norm(x, p["norm1"]), p, key)
    return x + gate2 * linear(jax.nn.gelu(linear(norm(x, p["norm2"]), p["fc1"]), approximate=False), p["fc2"])


def loss_of(p, images, labels, key):
    b = len(images)
    x = images.reshape(b, 3, grid, o.patch, grid, o.patch).transpose(0, 2, 4, 1, 3, 5).reshape(b, tokens - 1, -1)
    x = linear(x.astype(dtype), p["patches"])
    x = jnp.concatenate([jnp.broadcast_to(p["cls"].astype(dtype), (b, 1, o.dim)), x], 1) + p["position"].astype(dtype)
    for p_block, key_block in zip(p["blocks"], jax.random.split(key, o.depth)):
        x = block(x, p_block, key_block)
    logits = linear(norm(x[:, 0], p["norm"]), p["head"]).astype(jnp.float32)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def adamw(p, m, v, t):
    return p - 1e-3 * (m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8) + 0.05 * p)


@functools.partial(jax.jit, donate_argnums=0)
def step(state, images, labels):
    p, m, v, t, key = state
    key, dropping = jax.random.split(key)
    loss, g = jax.value_and_grad(loss_of)(p, images, labels, dropping)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    return (jax.tree.map(lambda p, m, v: adamw(p, m, v, t + 1), p, m, v), m, v, t + 1, key), loss


def matmul_flops():
    """Returns the FLOPs of the matrix products of a step: forward, and twice as many backward."""
    per_block = 2 * tokens * 12 * o.dim**2 + 4 * tokens**2 * o.dim
    return 3 * o.batch * (o.depth * per_block + 2 * grid**2 * 3 * o.patch**2 * o.dim + 2 * o.dim * o.classes)


def main():
    key = jax.random.PRNGKey(o.seed)
    parameters = initial(key)
    moments = [jax.tree.map(jnp.zeros_like, parameters) for _ in range(2)]
    state = (parameters, *moments, jnp.float32(0), key)
    images = jax.random.normal(key, (o.batch, 3, o.image, o.image))
    labels = jax.random.randint(key, (o.batch,), 0, o.classes)

    seconds = []
    for i in range(o.warmup + o.steps):
        start = time.perf_counter()
        state, loss = step(state, images, labels)
        jax.block_until_ready((state, loss))
        if i >= o.warmup:
            seconds.append(time.perf_counter() - start)
    seconds.sort()
    median = seconds[len(seconds) // 2]
    measured = dict(
        jax=jax.__version__,
        min_s=seconds[0],
        median_s=median,
        images_per_s=o.batch / median,
        gflops_per_s=matmul_flops() / median * 1e-9,
        loss=float(loss),
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        parameters=sum(p.size for p in jax.tree.leaves(parameters)),
    )
    print(json.dumps(vars(o) | measured))


if __name__ == "__main__":
    main()
