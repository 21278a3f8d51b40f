"""Weights exchanged with timm: called by check_timm.sh with the path of weights_tool and a folder to work in."""

import subprocess
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from timm.models.cait import Cait
from timm.models.vision_transformer import VisionTransformer

tool, work = sys.argv[1:]
TOLERANCE = 1e-5  # largest difference of logits, relative to the largest logit (f32)


SHAPE = dict(img_size=32, patch_size=8, num_classes=10, embed_dim=48, depth=4, num_heads=4)


# The models of tests/weights_tool.cpp, in timm's terms.
MODELS = {
    "vit": lambda: VisionTransformer(**SHAPE),
    "vit_layerscale": lambda: VisionTransformer(**SHAPE, init_values=1e-5),
    "vit_mean": lambda: VisionTransformer(**SHAPE, global_pool="avg", class_token=False, fc_norm=False),
    "cait": lambda: Cait(**SHAPE),
}


def plumb(*arguments):
    subprocess.run([tool, *arguments], check=True)


def shake(model):
    """Moves every parameter off its initial value, so that no term is hidden by a 0, a 1 or a small gate."""
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
        print(f"{name:16} {'written by Plumb':24} FAILED  only Plumb's: {sorted(ours - theirs)}, only timm's: {sorted(theirs - ours)}")
        good = False

    model = make()
    shake(model)
    save_file(model.state_dict(), weights)
    good &= compare("written by timm", model, weights, name)
sys.exit(not good)
