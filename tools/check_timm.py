"""Exchanges weights with timm. check_timm.sh calls it with the folder of the programs and a temporary folder."""

import json
import os
import subprocess
import sys

import numpy as np
import timm
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from timm.models.cait import Cait
from timm.models.vision_transformer import VisionTransformer

programs, work = sys.argv[1:]
tool = f"{programs}/weights_tool"
TOLERANCE = 1e-5  # largest allowed difference of logits, relative to the largest logit (f32)


SHAPE = dict(img_size=32, patch_size=8, num_classes=10, embed_dim=48, depth=4, num_heads=4)


# The models of tests/weights_tool.cpp, but built with timm.
MODELS = {
    "vit": lambda: VisionTransformer(**SHAPE),
    "vit_layerscale": lambda: VisionTransformer(**SHAPE, init_values=1e-5),
    "vit_mean": lambda: VisionTransformer(**SHAPE, global_pool="avg", class_token=False, fc_norm=False),
    "cait": lambda: Cait(**SHAPE),
}


def plumb(*arguments):
    subprocess.run([tool, *arguments], check=True)


def shake(model):
    """Moves every parameter off its initial value, so that no 0, 1 or small gate hides a term."""
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn(p.shape))


def compare(what, model, weights, name):
    with torch.no_grad():
        theirs = model.eval()(load_file(images)["images"])
    plumb("logits", name, weights, images, f"{work}/logits")
    ours = load_file(f"{work}/logits")["logits"]
    error = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    print(f"{name:16} {what:24} {'ok' if error < TOLERANCE else 'FAILED'}  relative error {error:.1e}, largest logit {theirs.abs().max():.2f}")
    return error < TOLERANCE


torch.manual_seed(0)
images = f"{work}/images"
save_file({"images": torch.randn(8, 3, 32, 32)}, images)
good = True
for name, make in MODELS.items():
    weights = f"{work}/{name}"
    plumb("save", name, weights)
    model = make()
    with safe_open(weights, framework="pt") as file:
        ours, theirs = set(file.keys()), set(model.state_dict())
    if ours == theirs:
        model.load_state_dict(load_file(weights), strict=True)
        good &= compare("written by Plumb", model, weights, name)
    else:
        print(f"{name:16} {'written by Plumb':24} FAILED  names only in Plumb: {sorted(ours - theirs)}, only in timm: {sorted(theirs - ours)}")
        good = False

    model = make()
    shake(model)
    save_file(model.state_dict(), weights)
    good &= compare("written by timm", model, weights, name)

def photos(folder, count=3):
    """Writes JPEG files with smooth colours and edges, whose sizes differ from the networks' image size."""
    os.makedirs(folder)
    for i in range(count):
        rng = np.random.default_rng(i)
        height, width = (300, 420) if i % 2 else (380, 260)
        y, x = np.mgrid[0:height, 0:width] / 100
        planes = [128 + 100 * np.sin(rng.uniform(1, 5) * x + rng.uniform(0, 6)) * np.cos(rng.uniform(1, 5) * y) for _ in range(3)]
        image = np.stack(planes, -1)
        top, left = rng.integers(0, 150, 2)
        image[top : top + 90, left : left + 90] = rng.uniform(0, 255, 3)
        Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(f"{folder}/{i}.jpg", quality=95)


def compare_files(name, more):
    """Compares a model of a published size with random weights. The comparison covers the logits for
    tensors, and the five most probable classes for image files. Plumb and timm each read and resize the image files."""
    torch.manual_seed(1)
    model = timm.create_model(name, pretrained=False).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.ndim > 1 or "gamma" in key:
                p.mul_(1.5).add_(0.02 * torch.randn(p.shape))
    weights = f"{work}/{name}"
    save_file(model.state_dict(), weights)
    config = timm.data.resolve_data_config({}, model=model)
    transform = timm.data.create_transform(**config, is_training=False)
    files = [f"{work}/photos/{f}" for f in sorted(os.listdir(f"{work}/photos"))]
    inputs = torch.stack([transform(Image.open(f).convert("RGB")) for f in files])
    with torch.no_grad():
        theirs = model(inputs)
    save_file({"images": inputs}, f"{work}/inputs")
    plumb("logits", "any", weights, f"{work}/inputs", f"{work}/logits")
    ours = load_file(f"{work}/logits")["logits"]
    error = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    command = [f"{programs}/vit", "--weights", weights, "--image-folder", f"{work}/photos", "--evaluate", "--json", "--out", f"{work}/{name}-pictures", *more]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    same = all([t["class"] for t in f["top"]] == theirs[i].topk(5).indices.tolist() for i, f in enumerate(found)) and len(found) == len(files)
    apart = max(abs(t["probability"] - theirs[i].softmax(-1)[t["class"]].item()) for i, f in enumerate(found) for t in f["top"])
    ok = error < TOLERANCE and same
    print(f"{name:16} {'from files':24} {'ok' if ok else 'FAILED'}  relative error {error:.1e}; the five most probable classes: "
          f"{'equal' if same else 'different'}, probabilities differ by {apart:.1e}")
    return ok


photos(f"{work}/photos")
good &= compare_files("cait_xxs24_224", ["--model", "cait"])
good &= compare_files("vit_tiny_patch16_224", ["--normalization", "half", "--image-crop", "0.9"])
good &= compare_files("test_vit", ["--normalization", "half", "--image-crop", "0.95"])  # 64 channels in 2 heads
sys.exit(not good)
