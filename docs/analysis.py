"""Reads a study's folder with pandas and matplotlib: python3 docs/analysis.py runs/FOLDER [picture.png]

Prints the mean training loss of each method with its 95 % interval and the comparisons of comparisons.csv, and draws
the losses over the steps. docs/files.md explains the columns.
"""

import json
import pathlib
import sys

import matplotlib
import pandas as pd

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# The 0.975 quantiles of Student's t for 1 to 10 degrees of freedom. Above 10, 1.96 is used.
T = dict(enumerate([12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23], start=1))

folder = pathlib.Path(sys.argv[1])
picture = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "losses.png")


def table_of(name):
    """Reads a table as text, so that methods named nan, null, 1e5 or 007 keep their names."""
    return pd.read_csv(folder / name, dtype=str, keep_default_na=False)


results = table_of("results.csv")
axes = list(results.columns[: results.columns.get_loc("seed")])  # the columns before the seed
results["train_loss"] = pd.to_numeric(results["train_loss"])  # an empty cell becomes NaN

# One row for each combination of the axes. Diverged trials are counted, and enter no mean.
ok = results[results.status == "ok"]
by = axes or ["status"]
table = ok.groupby(by, sort=False).train_loss.agg(["mean", "sem", "count"])
table["half_width"] = table["sem"] * (table["count"] - 1).map(lambda n: T.get(n, 1.96))
table["diverged"] = results[results.status == "diverged"].groupby(by).size().reindex(table.index, fill_value=0)
print(table[["mean", "half_width", "count", "diverged"]].to_string(float_format="%.6f"))

if (folder / "comparisons.csv").exists():
    comparisons = table_of("comparisons.csv")
    # A study without a control has the comparisons of all pairs only.
    family = "control" if (comparisons.family == "control").any() else "pairs"
    shown = comparisons[comparisons.family == family].copy()
    for number in ["difference", "low", "high"]:
        shown[number] = pd.to_numeric(shown[number])
    title = {"control": "against the control", "pairs": "all pairs"}[family]
    print(f"\n{title}: {(shown.order != 'undecided').sum()} of {len(shown)} decided")
    print(shown[["depth", "lr", "first", "order", "second", "difference", "low", "high"]].to_string(index=False))

# One row for each logged step. The axes and the seed identify the trial.
with open(folder / "metrics.jsonl") as lines:
    steps = pd.DataFrame(map(json.loads, lines))
curves = steps.groupby([*axes, "step"]).loss.mean().unstack("step").T if axes else steps.groupby("step").loss.mean()
axis = curves.plot(figsize=(8, 5), xlabel="step", ylabel="training loss, mean over seeds")
axis.figure.tight_layout()
axis.figure.savefig(picture, dpi=120)
print(f"\n{picture}")
