"""check_detr.py BIN_DIR WORK_DIR: exchanges weights of small DETRs with tools/detr_pytorch.py and compares the predictions.

The names are those of facebookresearch/detr, and loading is strict in both directions. Fails if a prediction differs by 1e-4.
"""
import subprocess
import sys

import torch
from detr_pytorch import Detr
from safetensors.torch import load_file, save_file

bin_dir, work = sys.argv[1:3]
torch.manual_seed(0)
worst = 0.0
for name, pre in (("detr_post", False), ("detr_pre", True)):
    make = lambda: Detr(classes=5, backbone=(8, 16), dim=32, heads=4, encoder=2, decoder=3, hidden=48, queries=7, pre=pre).eval()  # noqa: E731
    images, keep = torch.randn(3, 3, 40, 52), torch.ones(3, 40, 52, dtype=torch.uint8)
    keep[1, 30:], keep[2, :, 21:] = 0, 0

    def compare(weights, model, masked):
        global worst
        inputs = {"images": images} | ({"keep": keep} if masked else {})
        save_file(inputs, f"{work}/images.safetensors")
        subprocess.run([f"{bin_dir}/weights_tool", "logits", name, weights, f"{work}/images.safetensors", f"{work}/out.safetensors"],
                       check=True)
        ours = load_file(f"{work}/out.safetensors")
        with torch.no_grad():
            logits, boxes = model(images, keep if masked else None)
        difference = max((ours["logits"] - logits).abs().max().item(), (ours["boxes"] - boxes).abs().max().item())
        assert difference <= 1e-4, difference  # also refuses NaN
        worst = max(worst, difference)
        return difference

    subprocess.run([f"{bin_dir}/weights_tool", "save", name, f"{work}/ours.safetensors"], check=True)
    theirs = make()
    missing, unexpected = theirs.load_state_dict(load_file(f"{work}/ours.safetensors"), strict=False)
    assert not unexpected and all(k.endswith("num_batches_tracked") for k in missing), (missing, unexpected)
    to_theirs = [compare(f"{work}/ours.safetensors", theirs, masked) for masked in (False, True)]
    other = make()
    for module in other.modules():  # statistics other than 0 and 1
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(), module.running_var.uniform_(0.5, 2)
    save_file({k: v.contiguous() for k, v in other.state_dict().items() if not k.endswith("num_batches_tracked")},
              f"{work}/theirs.safetensors")
    to_ours = [compare(f"{work}/theirs.safetensors", other, masked) for masked in (False, True)]
    print(f"{name}: largest difference {max(to_theirs):.1e} with our weights, {max(to_ours):.1e} with PyTorch's")
print(f"largest difference of all: {worst:.1e}")
