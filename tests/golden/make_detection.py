#!/usr/bin/env python3
"""Writes tests/golden/detection: answers of SciPy, PyTorch (float64) and pycocotools about sets of boxes, and of a small DETR.

Usage: make_detection.py OUT_DIR      Needs: pip install torch safetensors scipy pycocotools numpy

  assignments.json        costs and the pairs of scipy.optimize.linear_sum_assignment
  boxes.json              pairs of boxes (corners), their generalised IoU and its gradients
  set_loss.json           predictions, targets, and DETR's loss with its terms and gradients
  average_precision.json  truth and detections in COCO's formats, and the twelve numbers of COCOeval
  detr_post.safetensors, detr_pre.safetensors
                          a DETR (tools/detr_pytorch.py) under facebookresearch/detr's names, images with padding, the predictions in
                          training mode and in evaluation mode, and gradients
"""
import json
import pathlib
import sys

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from coco_cases import coco_case  # noqa: E402
from detr_pytorch import Detr  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

torch.set_default_dtype(torch.float64)
CLASS_WEIGHT, L1_WEIGHT, GIOU_WEIGHT, NO_OBJECT = 1.0, 5.0, 2.0, 0.1


def assignments(random):
    cases = []
    for rows, columns in [(1, 1), (3, 3), (4, 7), (7, 4), (10, 3), (20, 20), (1, 6), (100, 30)]:
        for kind in ("normal", "integers"):
            costs = random.normal(size=(rows, columns)) if kind == "normal" else random.integers(0, 4, (rows, columns)).astype(float)
            r, c = linear_sum_assignment(costs)
            cases.append({"rows": rows, "columns": columns, "costs": costs.ravel().tolist(),
                          "pairs": [[int(a), int(b)] for a, b in zip(r, c)], "total": float(costs[r, c].sum()),
                          "unique": kind == "normal"})
    return cases


def corners(centres):
    x, y, w, h = centres.unbind(-1)
    return torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1)


def generalized_iou(a, b):
    def area(box):
        return (box[..., 2] - box[..., 0]) * (box[..., 3] - box[..., 1])

    inner = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    outer = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).prod(-1)
    union = area(a) + area(b) - inner
    return inner / union - (outer - union) / outer


def boxes(random):
    first = corners(torch.tensor(random.uniform(0.1, 0.9, (40, 4)))).requires_grad_()
    second = corners(torch.tensor(random.uniform(0.1, 0.9, (40, 4)))).requires_grad_()
    cotangent = torch.tensor(random.normal(size=40))
    value = generalized_iou(first, second)
    grads = torch.autograd.grad((value * cotangent).sum(), [first, second])
    return {"first": first.flatten().tolist(), "second": second.flatten().tolist(), "cotangent": cotangent.tolist(),
            "giou": value.tolist(), "d_first": grads[0].flatten().tolist(), "d_second": grads[1].flatten().tolist()}


def set_loss(logits, centres, targets):
    """DETR's loss: each layer is matched by itself; the classes are a weighted mean, boxes count by the batch's objects."""
    classes = logits.shape[-1] - 1
    objects = max(1, sum(len(t) for t in targets))
    weights = torch.ones(classes + 1)
    weights[-1] = NO_OBJECT
    terms = {"classes": 0, "l1": 0, "giou": 0}
    for layer_logits, layer_boxes in zip(logits, centres):
        labels = torch.full(layer_logits.shape[:2], classes)
        for image, objects_of_image in enumerate(targets):
            if not objects_of_image:
                continue
            wanted = torch.tensor([o["box"] for o in objects_of_image])
            names = torch.tensor([o["label"] for o in objects_of_image])
            with torch.no_grad():
                p = layer_logits[image].softmax(-1)[:, names]
                distance = torch.cdist(layer_boxes[image], wanted, p=1)
                overlap = generalized_iou(corners(layer_boxes[image])[:, None], corners(wanted)[None])
                rows, columns = linear_sum_assignment((-CLASS_WEIGHT * p + L1_WEIGHT * distance - GIOU_WEIGHT * overlap).numpy())
            labels[image, rows] = names[columns]
            found, wanted = layer_boxes[image][rows], wanted[columns]
            terms["l1"] += (found - wanted).abs().sum() / objects * L1_WEIGHT
            terms["giou"] += (1 - generalized_iou(corners(found), corners(wanted))).sum() / objects * GIOU_WEIGHT
        terms["classes"] += torch.nn.functional.cross_entropy(layer_logits.flatten(0, 1), labels.flatten(), weights)
    return terms


def set_losses(random):
    cases = []
    for counts in [(2, 0, 3), (0, 0, 0), (7, 1, 5)]:  # of objects; with 5 queries, the last case has more objects than queries
        layers, queries, classes = 2, 5, 3
        logits = torch.tensor(random.normal(size=(layers, len(counts), queries, classes + 1))).requires_grad_()
        centres = torch.tensor(random.uniform(0.1, 0.9, (layers, len(counts), queries, 4))).requires_grad_()
        targets = [[{"label": int(random.integers(classes)), "box": random.uniform(0.1, 0.9, 4).tolist()} for _ in range(n)]
                   for n in counts]
        terms = set_loss(logits, centres, targets)
        total = sum(terms.values())
        d_logits, d_boxes = torch.autograd.grad(total, [logits, centres], allow_unused=True)
        cases.append({"layers": layers, "images": len(counts), "queries": queries, "classes": classes,
                      "logits": logits.flatten().tolist(), "boxes": centres.flatten().tolist(), "targets": targets,
                      "terms": {k: float(torch.as_tensor(v).detach()) for k, v in terms.items()}, "d_logits": d_logits.flatten().tolist(),
                      "d_boxes": (torch.zeros_like(centres) if d_boxes is None else d_boxes).flatten().tolist()})
    return cases


def average_precisions(random):
    return [coco_case(random, 12, 3, 5, 12, 300, 0.15), coco_case(random, 6, 2, 4, 8, 64, 0),
            coco_case(random, 3, 5, 2, 130, 120, 0.3), coco_case(random, 20, 1, 3, 3, 500, 0.5)]


def detr(pre):
    torch.manual_seed(7)
    model = Detr(channels=2, classes=3, backbone=(4, 6), dim=8, heads=2, encoder=1, decoder=2, hidden=12, queries=3, pre=pre)
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(torch.randn_like(value) * (0.3 if value.dim() > 1 else 0.2) + (1.0 if "norm" in name and "weight" in name else 0.0))
    images, keep = torch.randn(3, 2, 13, 16), torch.ones(3, 13, 16)
    keep[1, 9:], keep[1, :, 12:], keep[2, :, 7:] = 0, 0, 0
    images = images * keep[:, None]
    tensors = {f"model.{k}": v.clone() for k, v in model.state_dict().items() if "num_batches" not in k}
    logits, boxes = model(images, keep)
    cotangents = torch.randn_like(logits), torch.randn_like(boxes)
    names, values = zip(*model.named_parameters())
    gradients = torch.autograd.grad((logits * cotangents[0]).sum() + (boxes * cotangents[1]).sum(), values)
    tensors |= {"images": images, "keep": keep.to(torch.uint8), "logits": logits, "boxes": boxes, "cotangent.logits": cotangents[0],
                "cotangent.boxes": cotangents[1]} | {f"gradient.{k}": g for k, g in zip(names, gradients)}
    model.eval()
    logits, boxes = model(images)
    tensors |= {"eval.logits": logits, "eval.boxes": boxes}
    tensors |= {f"after.{k}": v for k, v in model.state_dict().items() if "running" in k}
    return {k: v.detach().contiguous() for k, v in tensors.items()}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in [("assignments", assignments), ("boxes", boxes), ("set_loss", set_losses),
                       ("average_precision", average_precisions)]:
        text = json.dumps(make(np.random.default_rng(7)), separators=(",", ":"))
        (folder / f"{name}.json").write_text(text + "\n")
    for pre in (False, True):
        save_file(detr(pre), str(folder / f"detr_{'pre' if pre else 'post'}.safetensors"))


if __name__ == "__main__":
    main()
