#!/usr/bin/env python3
"""Times the training step of bench_detr in PyTorch. Flags, JSON keys and arithmetic are the same as in bench_detr.

The model is tools/detr_pytorch.py. The loss follows models/matcher.py and models/detr.py of facebookresearch/detr: the
matching is SciPy's, and so the loss is not compiled. The script needs torch, numpy and scipy: pip install torch numpy
scipy. compare.sh runs the script in turn with bench_detr.
"""
import argparse
import json
import pathlib
import resource
import sys
import time

import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from detr_pytorch import Detr  # noqa: E402

WEIGHTS = dict(classes=1, l1=5, giou=2)


def corners(boxes):
    x, y, w, h = boxes.unbind(-1)
    return torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1)


def giou(a, b):
    """Returns the generalised IoU of boxes [.., 4] by their corners; the shapes broadcast."""

    def area(low, high):
        return (high - low).clamp(min=0).prod(-1)

    both = area(torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:]))
    either = area(a[..., :2], a[..., 2:]) + area(b[..., :2], b[..., 2:]) - both
    hull = area(torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:]))
    return both / either - (hull - either) / hull


@torch.no_grad()
def match(logits, boxes, targets):
    """Returns the pairs (query, target) of each image, as two lists of indices."""
    batch, queries = logits.shape[:2]
    labels, wanted = torch.cat([t["labels"] for t in targets]), torch.cat([t["boxes"] for t in targets])
    p, found = logits.flatten(0, 1).softmax(-1), boxes.flatten(0, 1)
    cost = (
        WEIGHTS["l1"] * torch.cdist(found, wanted, p=1)
        - WEIGHTS["classes"] * p[:, labels]
        - WEIGHTS["giou"] * giou(corners(found)[:, None], corners(wanted)[None])
    )
    costs = cost.view(batch, queries, -1).split([len(t["labels"]) for t in targets], -1)
    return [linear_sum_assignment(c[i]) for i, c in enumerate(costs)]


def loss_of_layer(logits, boxes, targets, weights):
    pairs = match(logits, boxes, targets)
    images = torch.cat([torch.full((len(q),), i) for i, (q, _) in enumerate(pairs)])
    queries = torch.cat([torch.as_tensor(q) for q, _ in pairs])
    labels = torch.cat([t["labels"][torch.as_tensor(k)] for t, (_, k) in zip(targets, pairs)])
    wanted = torch.cat([t["boxes"][torch.as_tensor(k)] for t, (_, k) in zip(targets, pairs)])
    classes = torch.full(logits.shape[:2], logits.shape[-1] - 1)
    classes[images, queries] = labels
    count, found = max(len(labels), 1), boxes[images, queries]
    return (
        WEIGHTS["classes"] * F.cross_entropy(logits.transpose(1, 2), classes, weights)
        + WEIGHTS["l1"] * F.l1_loss(found, wanted, reduction="sum") / count
        + WEIGHTS["giou"] * (1 - giou(corners(found), corners(wanted))).sum() / count
    )


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = dict(dim=64, heads=4, encoder=2, decoder=2, hidden=128, queries=10, batch=32, image=64, classes=3, objects=3, threads=2, steps=20,
                   warmup=5, seed=0)
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"[{default}]")
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    return parser.parse_args()


def main():
    o = arguments()
    base_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # memory of Python and its libraries
    torch.manual_seed(o.seed)
    torch.set_num_threads(o.threads)
    # The backbone is that of bin/detr and bench_detr.
    model = Detr(classes=o.classes, backbone=(16, 32, 64), dim=o.dim, heads=o.heads, encoder=o.encoder, decoder=o.decoder, hidden=o.hidden, queries=o.queries, pre=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4, fused=True)
    images = torch.randn(o.batch, 3, o.image, o.image)
    targets = []
    for _ in range(o.batch):
        centres = 0.1 + 0.8 * torch.rand(o.objects, 2)
        targets.append(dict(labels=torch.randint(0, o.classes, (o.objects,)), boxes=torch.cat([centres, torch.full((o.objects, 2), 0.2)], 1)))
    weights = torch.ones(o.classes + 1)
    weights[-1] = 0.1
    run = torch.compile(model) if o.mode == "compile" else model
    seconds = []
    for step in range(o.warmup + o.steps):
        start = time.perf_counter()
        logits, boxes = run(images)
        loss = sum(loss_of_layer(each, box, targets, weights) for each, box in zip(logits, boxes))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step >= o.warmup:
            seconds.append(time.perf_counter() - start)
    seconds.sort()
    median = seconds[len(seconds) // 2]
    measured = dict(
        torch=torch.__version__,
        min_s=seconds[0],
        median_s=median,
        images_per_s=o.batch / median,
        loss=loss.item(),
        base_bytes=base_bytes,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        # As in Plumb, the statistics of batch norm count.
        parameters=sum(p.numel() for p in [*model.parameters(), *(b for b in model.buffers() if b.dim() > 0)]),
    )
    print(json.dumps(vars(o) | measured))


if __name__ == "__main__":
    main()
