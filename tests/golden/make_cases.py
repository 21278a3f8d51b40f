#!/usr/bin/env python3
"""Writes tests/golden/cases: small problems with PyTorch's answers in float64, so that bin/parity runs without PyTorch.

Usage: make_cases.py OUT_DIR      Needs: pip install torch safetensors

There is one .safetensors file for each case. Its metadata "case" is JSON (kind and settings); its tensors are in.*, param.*, out.*, cot.y and
grad.*, as described in tests/parity/case.h. The cases are stacks of every residual method, especially those that no other library
implements, and LAMB.
"""
import json
import math
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch.nn.functional import gelu, layer_norm, linear

torch.set_default_dtype(torch.float64)
DIM, HEADS, DEPTH, TOKENS, EPS = 4, 2, 3, 2, 1e-6


class Weights:
    """Parameters that are made when they are first used. The values are random, not special values such as 0 or 1."""

    def __init__(self):
        self.values = {}

    def __call__(self, name, *shape, around=0.0):
        if name not in self.values:
            self.values[name] = (around + torch.randn(*shape) * (0.3 if len(shape) > 1 else 0.2)).requires_grad_()
        return self.values[name]


def norm(w, name, x):
    return layer_norm(x, x.shape[-1:], w(name + ".weight", x.shape[-1], around=1.0), w(name + ".bias", x.shape[-1]), EPS)


def dense(w, name, x, out):
    return linear(x, w(name + ".weight", out, x.shape[-1]), w(name + ".bias", out))


def attention(w, name, x, qkv_change=lambda t: t, before_proj=lambda t: t):
    b, n, d = x.shape
    q, k, v = qkv_change(dense(w, name + ".qkv", x, 3 * d)).view(b, n, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
    p = torch.softmax(q @ k.mT * (d // HEADS) ** -0.5, -1)
    return dense(w, name + ".proj", before_proj((p @ v).transpose(1, 2).reshape(b, n, d)), d)


def mlp(w, name, x, before_act=lambda t: t, before_fc2=lambda t: t):
    return dense(w, name + ".fc2", before_fc2(gelu(before_act(dense(w, name + ".fc1", x, 4 * DIM)))), DIM)


def forward(method, w, x, **settings):
    first, second, carried = x, x, None
    streams = torch.stack([x] * 4, 2) if method == "hyper_connections" else None
    for i in range(DEPTH):
        b = f"blocks.{i}."
        attn, ffn = lambda t, **kw: attention(w, b + "attn", t, **kw), lambda t, **kw: mlp(w, b + "mlp", t, **kw)
        n1, n2 = lambda t: norm(w, b + "norm1", t), lambda t: norm(w, b + "norm2", t)
        if method in ("pre", "gpt2_init", "t_fixup_ln") or (method == "mix_ln" and i >= 1):  # ceil(3 / 4) = 1 post-norm block
            x = x + attn(n1(x))
            x = x + ffn(n2(x))
        elif method in ("post", "mix_ln"):
            x = n1(x + attn(x))
            x = n2(x + ffn(x))
        elif method == "layerscale":
            x = x + w(b + "gate1.gamma", DIM) * attn(n1(x))
            x = x + w(b + "gate2.gamma", DIM) * ffn(n2(x))
        elif method in ("rezero_separate", "skipinit"):
            x = x + w(b + "gate1.alpha", 1) * attn(x)
            x = x + w(b + "gate2.alpha", 1) * ffn(x)
        elif method == "t_fixup":
            x = x + attn(x)
            x = x + ffn(x)
        elif method == "fixup":
            s = {k: w(b + "shifts." + k, 1) for k in ("attn", "fc1", "act", "fc2")}
            x = x + w(b + "gate1.scale", 1) * attn(x + s["attn"])
            x = x + w(b + "gate2.scale", 1) * ffn(x + s["fc1"], before_act=lambda t: t + s["act"], before_fc2=lambda t: t + s["fc2"])
        elif method == "deepnorm":
            alpha = (2 * DEPTH) ** 0.25
            x = n1(alpha * x + attn(x))
            x = n2(alpha * x + ffn(x))
        elif method == "sub_ln":
            x = x + attn(n1(x), before_proj=lambda t: norm(w, b + "attn_norm", t))
            x = x + ffn(n2(x), before_fc2=lambda t: norm(w, b + "mlp_norm", t))
        elif method == "normformer":
            c = w(b + "gate1.head_scale", HEADS)
            heads = lambda t: (t.view(*t.shape[:2], HEADS, -1) * c[:, None]).reshape(t.shape)
            x = x + norm(w, b + "attn_norm", attn(n1(x), before_proj=heads))
            x = w(b + "gate2.residual_scale", DIM) * x + ffn(n2(x), before_fc2=lambda t: norm(w, b + "mlp_norm", t))
        elif method == "layernorm_scaling":
            x = x + attn(n1(x) / (i + 1) ** 0.5)
            x = x + ffn(n2(x) / (i + 1) ** 0.5)
        elif method == "dyt":
            for name, f in (("norm1", attn), ("norm2", ffn)):
                t = torch.tanh(w(b + name + ".alpha", 1, around=0.5) * x)
                x = x + f(w(b + name + ".weight", DIM, around=1.0) * t + w(b + name + ".bias", DIM))
        elif method == "branch_scale":
            x = x + DEPTH**-0.5 * attn(n1(x))
            x = x + DEPTH**-0.5 * ffn(n2(x))
        elif method in ("rezero_ln", "scalar_gate"):
            x = x + w(b + "gate1.alpha", 1) * attn(n1(x))
            x = x + w(b + "gate2.alpha", 1) * ffn(n2(x))
        elif method == "rezero":
            a = w(b + "gate.alpha", 1)
            x = x + a * attn(x)
            x = x + a * ffn(x)
        elif method == "fixup_ln":
            s = {k: w(b + "shifts." + k, 1) for k in ("attn", "fc1", "act", "fc2")}
            x = x + w(b + "gate1.scale", 1) * attn(n1(x) + s["attn"])
            x = x + w(b + "gate2.scale", 1) * ffn(n2(x) + s["fc1"], before_act=lambda t: t + s["act"], before_fc2=lambda t: t + s["fc2"])
        elif method == "act_norm":
            x = x + w(b + "gate1.scale", DIM) * attn(n1(x)) + w(b + "gate1.shift", DIM)
            x = x + w(b + "gate2.scale", DIM) * ffn(n2(x)) + w(b + "gate2.shift", DIM)
        elif method in ("sandwich", "peri_ln"):
            if method == "peri_ln" and i == 0:
                x = norm(w, "norm_embedding", x)
            x = x + norm(w, b + "norm1_out", attn(n1(x)))
            x = x + norm(w, b + "norm2_out", ffn(n2(x)))
        elif method in ("depth_mup", "complete_p"):
            m = (DEPTH / 2) ** (-0.5 if method == "depth_mup" else -1.0)
            x = x + m * attn(n1(x))
            x = x + m * ffn(n2(x))
        elif method in ("admin", "admin_profile"):
            x = n1(w(b + "gate1.omega", DIM, around=1.0) * x + attn(x))
            x = n2(w(b + "gate2.omega", DIM, around=1.0) * x + ffn(x))
        elif method == "residual_dual":
            for name, f in (("norm1", attn), ("norm2", ffn)):
                a = f(x)
                second = second + a
                x = norm(w, b + name, x + a)
        elif method == "b2t":
            m = n1(x + attn(x))
            x = n2(m + ffn(m) + x)
        elif method == "value_residual":

            def mix(qkv, i=i, b=b):
                nonlocal carried
                qk, v = qkv[..., : 2 * DIM], qkv[..., 2 * DIM :]
                if i == 0:
                    carried = v
                    return qkv
                c = w(b + "gate1.lambdas", 2)
                return torch.cat([qk, c[0] * carried + c[1] * v], -1)

            x = x + attn(n1(x), qkv_change=mix)
            x = x + ffn(n2(x))
        elif method == "hyper_connections":
            for gate, f, n in (("gate1", attn, n1), ("gate2", ffn, n2)):
                read, mixing, write = w(b + gate + ".read", 4), w(b + gate + ".mix", 4, 4), w(b + gate + ".write", 4)
                u = f(n(torch.einsum("i,btid->btd", read, streams)))
                streams = torch.einsum("ji,btjd->btid", mixing, streams) + torch.einsum("i,btd->btid", write, u)
        else:
            raise ValueError(method)
    if method == "hyper_connections":
        return streams.sum(2)
    return x + norm(w, "norm", second) if method == "residual_dual" else x


METHODS = (
    "post pre rezero rezero_separate rezero_ln skipinit fixup fixup_ln t_fixup t_fixup_ln scalar_gate layerscale deepnorm admin admin_profile "
    "residual_dual b2t sub_ln normformer sandwich peri_ln layernorm_scaling mix_ln gpt2_init branch_scale depth_mup complete_p dyt value_residual "
    "hyper_connections act_norm"
).split()


def save(folder, name, case, tensors):
    save_file({k: v.detach().clone().contiguous() for k, v in tensors.items()}, folder / f"{name}.safetensors", {"case": json.dumps(case)})


def stack_case(folder, method):
    w, x = Weights(), torch.randn(2, TOKENS, DIM, requires_grad=True)
    y = forward(method, w, x)
    cotangent = torch.randn_like(y)
    y.backward(cotangent)
    tensors = {"in.x": x, "out.y": y, "cot.y": cotangent, "grad.in.x": x.grad}
    for name, value in w.values.items():
        tensors |= {"param." + name: value, "grad.param." + name: value.grad}
    save(folder, "stack_" + method, dict(kind="stack", method=method, dim=DIM, heads=HEADS, depth=DEPTH, norm_eps=EPS), tensors)


def attention_case(folder, policy, size=1.0):
    """With size 100, the rows are saturated: the gradients of their scores are almost 0."""
    q, k, v = (torch.randn(1, 2, 3, 2).mul(s).requires_grad_() for s in (size, size, 1.0))
    keep = torch.rand(1, 2, 3, 3) > 0.4
    keep[0, 1, 2] = False  # a row without an allowed key, which is 0 under each policy
    alive = keep.any(-1, keepdim=True)
    p = torch.softmax((q @ k.mT * 2**-0.5).masked_fill(~(keep | ~alive), float("-inf")), -1) * alive
    y = p @ v
    cotangent = torch.randn_like(y)
    y.backward(cotangent)
    tensors = {"in.q": q, "in.k": k, "in.v": v, "in.keep": keep.to(torch.uint8), "out.y": y, "cot.y": cotangent}
    save(folder, f"attention_{policy}" + ("_saturated" if size > 1 else ""), dict(kind="attention", empty=policy), tensors | {f"grad.in.{n}": t.grad for n, t in zip("qkv", (q, k, v))})


def lamb_case(folder, steps=6):
    """LAMB (You et al. 2020) as in timm: bias-corrected Adam direction plus decay, times |p| / |u|; parameters without decay keep ratio 1."""
    values = {"weight": torch.randn(3, 2), "gamma": torch.randn(3)}
    decay, (beta1, beta2), eps = {"weight": 0.1, "gamma": 0.0}, (0.9, 0.95), 1e-6
    tensors = {f"param.{k}": v.clone() for k, v in values.items()}
    rates, moments = [0.01 * min(1, (i + 1) / 3) for i in range(steps)], {k: [0, 0] for k in values}
    for i in range(steps):
        for k, p in values.items():
            g = torch.randn_like(p)
            tensors[f"step.{i}.grad.{k}"] = g
            m = moments[k]
            m[0], m[1] = beta1 * m[0] + (1 - beta1) * g, beta2 * m[1] + (1 - beta2) * g * g
            u = m[0] / (1 - beta1 ** (i + 1)) / ((m[1] / (1 - beta2 ** (i + 1))) ** 0.5 + eps) + decay[k] * p
            p -= rates[i] * (p.norm() / u.norm() if decay[k] else 1.0) * u
    save(folder, "optimizer_lamb", dict(kind="optimizer", optimizer="lamb", steps=steps, lr=rates, weight_decay=decay, betas=[beta1, beta2], eps=eps),
         tensors | {f"out.{k}": v for k, v in values.items()})


def tables():
    """Factors by number of blocks N (Fixup and GPT-2 count 2N branches), schedules, and the masks that seeds drop."""
    rows = [
        dict(blocks=n, layerscale_init=eps, deepnorm_alpha=(2 * n) ** 0.25, deepnorm_beta=(8 * n) ** -0.25, t_fixup_encoder=0.67 * n**-0.25,
             t_fixup_decoder=(9 * n) ** -0.25, fixup_fc1=(2 * n) ** -0.5, fixup_qkv=(2 * n) ** (-1 / 6), gpt2_residual=(2 * n) ** -0.5,
             sub_ln=math.log(2 * n) ** 0.5, admin_omega=((2 * n + 1) / math.log(2 * n + 1) - 1) ** 0.5)
        for n, eps in ((6, 0.1), (18, 0.1), (24, 1e-5), (48, 1e-6), (1000, 1e-6))
    ]
    key = dict(rate=0.2, blocks=3, constant=[0.2, 0.2, 0.2], decreasing=[0.2, 0.1, 0.0], increasing=[0.0, 0.1, 0.2], dec_open=[0.2, 0.4 / 3, 0.2 / 3])
    path = dict(rate=0.3, blocks=4, uniform=[0.3] * 4, linear=[0.0, 0.1, 0.2, 0.3])
    # One seed is in the middle. The other seed is at the border, at which a cross fits but a block does not.
    mask = dict(height=3, width=4, window=3, seeds=[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]],
                block=[[1, 1, 1, 0]] * 3, cross=[[1, 1, 1, 1]] * 3)
    stripe = dict(height=3, width=4, window=1, seeds=[[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]],
                  block=[[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], cross=[[0, 0, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0]])
    return dict(factors=rows, schedules=dict(dropkey=key, drop_path=path), masks=[mask, stripe])


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for method in METHODS:
        stack_case(folder, method)
    for policy in ("keep_all", "zero", "paper"):
        attention_case(folder, policy)
    attention_case(folder, "keep_all", size=100.0)
    (folder / "tables.json").write_text(json.dumps(tables(), indent=1))
    lamb_case(folder)


if __name__ == "__main__":
    main()
