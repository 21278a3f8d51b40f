// coco_ap TRUTH RESULTS: prints the twelve numbers of COCO's evaluation of boxes as a JSON list. TRUTH is a file of
// annotations and RESULTS a results file, both in COCO's format. tools/check_coco.sh compares the numbers with those of
// pycocotools.
#include <cstdio>
#include <exception>
#include <vector>

#include <fmt/ranges.h>

#include "experiments/lab/problem/average_precision.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: coco_ap TRUTH RESULTS, two JSON files in COCO's format\n");
    return 2;
  }
  try {
    const plumb::lab::AveragePrecision a =
        plumb::lab::average_precision(plumb::lab::read_coco(argv[1]), plumb::lab::read_coco_detections(argv[2]));
    std::vector<double> numbers;
    for (const plumb::lab::ApNumber& number : plumb::lab::ap_numbers) numbers.push_back(a.*number.value);
    fmt::print("[{}]\n", fmt::join(numbers, ", "));
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
  return 0;
}
