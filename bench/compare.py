"""Runs bench_step and bench_detr in turn with their peers, and prints a table of times and memory. compare.sh runs this
script after it has found Python and built both."""
import argparse
import csv
import datetime
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

BENCH = pathlib.Path(__file__).resolve().parent
BIN = BENCH.parent / "build/release/bin"
STEP = BIN / "bench_step"
MODELS = {
    "dim192": dict(dim=192, depth=12, heads=3, patch=4, batch=64),
    "dim64": dict(dim=64, depth=48, heads=2, patch=8, batch=64),
    "dim384": dict(dim=384, depth=12, heads=6, patch=4, batch=32),
    "detr": dict(dim=64, encoder=2, decoder=2, heads=4, hidden=128, queries=10, image=64, batch=32, objects=3),
}
DETR = "detr"  # the model that bench_detr and peer_detr.py train; bench_step and its peers train the others
TORCH = ["torch eager", "torch compile"]


def arguments():
    def names(known):
        def parse(text):
            chosen = known if text == "all" else text.split(",")
            for name in chosen:
                if name not in known:
                    raise argparse.ArgumentTypeError(f"unknown '{name}'; known: {', '.join(known)}, all")
            return list(chosen)

        return parse

    p = argparse.ArgumentParser(prog="bench/compare.sh", description="Compares the time and memory of a training step of Plumb with PyTorch's.", allow_abbrev=False)
    p.add_argument("--rounds", type=int, default=3, help="runs of each program; the programs take turns, and the best run counts [3]")
    p.add_argument("--models", type=names(list(MODELS)), default=[m for m in MODELS if m != DETR], help="comma-separated list of dim192, dim64, dim384, and detr, a detector in fp32, which needs scipy [dim192,dim64,dim384]")
    p.add_argument("--dtype", type=names(["fp32", "bf16"]), default="fp32", help="comma-separated list of fp32, bf16 [fp32]")
    p.add_argument("--gate", choices=["none", "layerscale"], default="layerscale", help="residual method of the ViTs [layerscale]")
    p.add_argument("--dropkey", type=float, default=0.1, help="probability that a query of a ViT loses a key [0.1]")
    p.add_argument("--threads", type=int, default=2, help="CPU threads [2]")
    p.add_argument("--steps", type=int, default=10, help="measured steps per run; the fastest counts [10]")
    p.add_argument("--warmup", type=int, default=3, help="steps before the measured ones [3]")
    p.add_argument("--jax", action="store_true", help="also time peer_jax.py; needs pip install jax")
    p.add_argument("--quick", action="store_true", help="run one round of two steps, to check that everything runs; the times are not comparable")
    p.add_argument("--csv", help="also write the table to FILE", metavar="FILE")
    p.add_argument("--program", default=str(STEP), help="the bench_step to run, if not the release build")
    p.add_argument("--python", help="a Python with torch and numpy [$PYTHON, .venv/bin/python, python3]", metavar="PATH")  # compare.sh handles this option
    o = p.parse_args()
    if o.quick:
        o.rounds, o.steps, o.warmup = 1, 2, 1
    for name, least in [("rounds", 1), ("steps", 1), ("threads", 1), ("warmup", 0)]:
        if getattr(o, name) < least:
            p.error(f"--{name} expects an integer of at least {least}, got {getattr(o, name)}")
    if not 0 <= o.dropkey < 1:
        p.error(f"--dropkey expects a probability in [0, 1), got {o.dropkey}")
    if not os.access(o.program, os.X_OK) or os.path.isdir(o.program):
        p.error(f"--program expects an executable file (a build of bench_step), got '{o.program}'")
    if DETR in o.models:
        if "fp32" not in o.dtype:
            p.error("--models detr is measured in fp32 only; add fp32 to --dtype, or leave detr out")
        if not importlib.util.find_spec("scipy"):
            p.error(f"--models detr needs scipy, which {sys.executable} does not have: {sys.executable} -m pip install scipy")
        if not os.access(BIN / "bench_detr", os.X_OK):
            p.error(f"--models detr needs {BIN / 'bench_detr'}; leave --program out, so that it is built")
    if o.csv:
        try:
            open(o.csv, "a").close()
        except OSError as e:
            p.error(f"--csv {o.csv}: cannot be written: {e.strerror}")
    return o


def programs(o, model):
    ours, theirs = (str(BIN / "bench_detr"), "peer_detr.py") if model == DETR else (o.program, "peer_torch.py")
    peer = [sys.executable, str(BENCH / theirs)]
    commands = {"plumb": [ours], "torch eager": peer + ["--mode", "eager"], "torch compile": peer + ["--mode", "compile"]}
    if o.jax and model != DETR:
        commands["jax"] = [sys.executable, str(BENCH / "peer_jax.py")]
    return commands


def run(command):
    """Returns a program's result, the JSON object in its last line, or None and the reason why there is no result."""
    finished = subprocess.run(command, capture_output=True, text=True)
    if finished.returncode == 0:
        try:
            return json.loads(finished.stdout.strip().split("\n")[-1]), ""
        except ValueError as e:
            return None, f"its last line is not JSON: {e}"
    said = [line for line in finished.stderr.strip().split("\n") if line.strip()]
    errors = [line for line in said if re.search(r"\w*Error\b|error:", line)]
    return None, f"exit status {finished.returncode}: {(errors or said or ['no error output'])[-1]}"


def measure(o, model, dtype, failures):
    """Returns the results of all rounds for each program."""
    settings = dict(MODELS[model], threads=o.threads, steps=o.steps, warmup=o.warmup)
    if model != DETR:
        settings |= dict(gate=o.gate, dropkey=o.dropkey, dtype=dtype, image=32, classes=100)
    flags = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    results = {name: [] for name in programs(o, model)}
    for turn in range(o.rounds):
        for name, command in programs(o, model).items():
            result, why = run(command + flags)
            what = f"{model} {dtype}, round {turn + 1} of {o.rounds}, {name}"
            print(f"{what}: {result['min_s']:.4f} s" if result else f"{what}: FAILED, {why}", file=sys.stderr, flush=True)
            if result:
                results[name].append(result)
            else:
                failures.append(f"{what}: {why}")
    counts = {r["parameters"] for each in results.values() for r in each}
    if len(counts) > 1:
        sys.exit(f"error: the programs train different models: {sorted(counts)} parameters")
    return results


def row(o, model, dtype, results):
    """Returns one line of the table. Times are the best of all rounds. If no run of a program succeeded, the time is None."""

    def best(names, key):
        values = [r[key] for name in names for r in results.get(name, [])]
        return min(values) if values else None

    def ratio(a, b):
        return a / b if a and b else None

    ours, torch = ["plumb"], TORCH
    line = dict(model=model, dtype=dtype, plumb_s=best(ours, "min_s"))
    line |= {name.replace(" ", "_") + "_s": best([name], "min_s") for name in results if name != "plumb"}
    line["ratio"] = ratio(best(torch, "min_s"), line["plumb_s"])
    if o.jax:
        line["jax_s"] = best(["jax"], "min_s")
        line["jax_ratio"] = ratio(line["jax_s"], line["plumb_s"])
    line |= dict(plumb_bytes=best(ours, "peak_bytes"), torch_bytes=best(torch, "peak_bytes"))
    line["memory_ratio"] = ratio(line["plumb_bytes"], line["torch_bytes"])
    return line


def text(value, key):
    if value is None:
        return "-"
    if key.endswith("_bytes"):
        return f"{value / 2**20:.0f} MiB"
    return value if isinstance(value, str) else f"{value:.4f}" if key.endswith("_s") else f"{value:.2f}"


def print_table(lines):
    keys = list(lines[0])
    titles = [k.replace("_bytes", " peak").replace("_ratio", " ratio").replace("_s", " s").replace("_", " ") for k in keys]
    cells = [titles] + [[text(line[k], k) for k in keys] for line in lines]
    widths = [max(len(c[i]) for c in cells) for i in range(len(keys))]
    for c in cells:
        print("  ".join(value.ljust(w) if i < 2 else value.rjust(w) for i, (value, w) in enumerate(zip(c, widths))))


def write_csv(path, lines, o, common):
    def drops(line):
        return dict(gate="pre", dropkey=0) if line["model"] == DETR else dict(gate=o.gate, dropkey=o.dropkey)

    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, [*lines[0], "gate", "dropkey", *common])
        writer.writeheader()
        writer.writerows(line | drops(line) | common for line in lines)


def main():
    o = arguments()
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")) or not shutil.which("g++"):
        print("warning: torch.compile will fail, because g++ or Python's headers are missing; install them (Debian: apt-get install g++ python3-dev)", file=sys.stderr)
    failures, lines, facts = [], [], {}
    date = datetime.date.today().isoformat()
    for model in o.models:
        for dtype in ["fp32"] if model == DETR else o.dtype:
            results = measure(o, model, dtype, failures)
            lines.append(row(o, model, dtype, results))
            for result in (r for each in results.values() for r in each):
                facts |= {k: result[k] for k in ["machine", "commit", "build", "torch", "jax", "base_bytes"] if k in result}
            if o.csv:
                settings = dict(date=date, threads=o.threads, rounds=o.rounds, steps=o.steps)
                write_csv(o.csv, lines, o, facts | settings | dict(failures="; ".join(failures)))

    peers = ", ".join(f"{title} {facts[k]}" for k, title in [("torch", "PyTorch"), ("jax", "JAX")] if k in facts)
    print(f"\nmachine: {facts.get('machine', 'unknown')}\nplumb {facts.get('commit', '?')} ({facts.get('build', '?')}), {peers}; {date}")
    for model in o.models:
        sizes = ", ".join(f"{k} {v}" for k, v in MODELS[model].items())
        print(f"{model}: DETR {sizes}, gate pre" if model == DETR else f"{model}: ViT {sizes}, gate {o.gate}, DropKey {o.dropkey}")
    print(f"s: seconds per training step, the fastest of {o.steps} steps in each of {o.rounds} runs that took turns; peak: peak memory of the whole process")
    if "base_bytes" in facts:
        print(f"(PyTorch's peak includes {facts['base_bytes'] / 2**20:.0f} MiB for Python and its libraries, before a model exists)")
    print("ratio: time of the faster torch / time of plumb, above 1 if plumb is faster; memory ratio: plumb / the smaller torch, below 1 if plumb needs less\n")
    print_table(lines)
    if failures:
        print("\nfailed runs, left out of the table:", *failures, sep="\n  ")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
