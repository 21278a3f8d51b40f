"""Reads the event files of a study folder with TensorBoard's reader, and compares them with metrics.jsonl and results.csv.

Usage: check_tensorboard.py RUN_FOLDER
"""

import csv
import json
import math
import pathlib
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util


def same(a, b):
    return math.isnan(a) and math.isnan(b) or math.isclose(a, b, rel_tol=1e-6)


def scalars(folder):
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0, "scalars": 0})
    events.Reload()
    found = {}
    for tag in events.Tags()["scalars"]:
        for e in events.Scalars(tag):
            found[e.step, tag] = e.value
    for tag in events.Tags()["tensors"]:  # newer readers return scalars as tensors
        for e in events.Tensors(tag):
            found[e.step, tag] = float(tensor_util.make_ndarray(e.tensor_proto))
    return found


run = pathlib.Path(sys.argv[1])
axes = ["gate", "depth", "lr", "seed"]
compared = 0
of_trial = {}
for line in (run / "metrics.jsonl").read_text().splitlines():
    entry = json.loads(line)
    trial = tuple(str(entry.pop(a)) for a in axes)
    of_trial.setdefault(trial, []).append(entry)
rows = {tuple(row[a] for a in axes): row for row in csv.DictReader(open(run / "results.csv"))}
folders = sorted(p for p in (run / "tensorboard").iterdir())
if len(folders) != len(rows):
    sys.exit(f"error: expected {len(rows)} folders, got {len(folders)}")
for trial, entries in of_trial.items():
    folder = run / "tensorboard" / "{}-depth-{}-lr-{}-seed-{}".format(*trial)
    found = scalars(folder)
    expected = {}
    for entry in entries:
        step = entry.pop("step")
        for name, value in entry.items():
            if value is None or isinstance(value, (int, float)):
                expected[step, name] = math.nan if value is None else value
    steps = int(rows[trial]["steps"])
    for name in ("train_loss", "val_loss", "val_accuracy"):
        if rows[trial][name]:
            expected[steps, "final/" + name] = float(rows[trial][name])
    for at, value in expected.items():
        if at not in found or not same(found[at], value):
            sys.exit(f"error: {folder}: {at}: expected {value}, got {found.get(at)}")
        compared += 1
    extra = set(found) - set(expected) - {at for at in found if at[1].startswith("final/")}
    if extra:
        sys.exit(f"error: {folder}: values that were not logged: {sorted(extra)[:5]}")
if compared == 0 or set(of_trial) != set(rows):
    sys.exit(f"error: expected the steps of {len(rows)} trials, got those of {len(of_trial)}, {compared} values")
print(f"{len(folders)} trials, {compared} values: TensorBoard reads all logged values")
