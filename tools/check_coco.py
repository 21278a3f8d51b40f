"""check_coco.py COCO_AP: compares the program with pycocotools on random results. Exits with 1 if a number differs by 1e-6."""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from coco_cases import coco_case

worst, cases = 0.0, 0
with tempfile.TemporaryDirectory() as folder:
    truth, results = pathlib.Path(folder) / "truth.json", pathlib.Path(folder) / "results.json"
    for seed in range(40):
        random = np.random.default_rng(seed)
        case = coco_case(random, int(random.integers(1, 60)), int(random.integers(1, 20)), int(random.integers(1, 15)),
                         int(random.choice([5, 30, 150])), int(random.choice([64, 300, 640])), float(random.choice([0, 0.1, 0.5])))
        if not case["detections"]:
            continue
        truth.write_text(json.dumps(case["truth"]))
        results.write_text(json.dumps(case["detections"]))
        ours = json.loads(subprocess.run([sys.argv[1], truth, results], check=True, capture_output=True, text=True).stdout)
        worst = max(worst, float(np.max(np.abs(np.array(ours) - np.array(case["stats"])))))
        cases += 1
print(f"{cases} cases of 12 numbers, largest difference {worst:.1e}")
sys.exit(worst > 1e-6)
