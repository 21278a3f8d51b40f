"""Random truth and detections in COCO's formats, with the twelve numbers that pycocotools gives for them."""
import contextlib
import io
import json

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def coco_case(random, images, categories, objects, detections, side, crowd):
    """`objects` and `detections` are the largest numbers in an image; `crowd` is the probability that an object is a crowd."""
    truth = {"images": [{"id": 10 * i + 1, "file_name": f"{i}.png", "width": side, "height": side} for i in range(images)],
             "categories": [{"id": 3 * k + 2, "name": f"class {k}"} for k in range(categories)], "annotations": []}
    found = []

    def box():
        w, h = np.exp(random.uniform(np.log(4), np.log(0.9 * side), 2))
        return [random.uniform(0, side - w), random.uniform(0, side - h), w, h]

    for image in truth["images"]:
        boxes = []
        for _ in range(random.integers(0, objects + 1)):
            b, category = box(), 3 * int(random.integers(categories)) + 2
            boxes.append((b, category))
            truth["annotations"].append({"id": len(truth["annotations"]) + 1, "image_id": image["id"], "category_id": category,
                                         "bbox": b, "area": b[2] * b[3] * random.uniform(0.5, 1),
                                         "iscrowd": int(random.uniform() < crowd)})
        for _ in range(random.integers(0, detections + 1)):
            if boxes and random.uniform() < 0.7:  # near an object
                b, category = boxes[random.integers(len(boxes))]
                b = [b[0] + random.normal() * 0.1 * b[2], b[1] + random.normal() * 0.1 * b[3], b[2] * random.uniform(0.8, 1.2),
                     b[3] * random.uniform(0.8, 1.2)]
            else:
                b, category = box(), 3 * int(random.integers(categories)) + 2
            found.append({"image_id": image["id"], "category_id": category, "bbox": b,
                          "score": float(np.round(random.uniform(), 2))})  # rounded, so that scores are often equal
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = truth
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(json.loads(json.dumps(found))) if found else COCO(), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return {"truth": truth, "detections": found, "stats": evaluation.stats.tolist()}
