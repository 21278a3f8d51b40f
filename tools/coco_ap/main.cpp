// coco_ap TRUTH RESULTS: prints the twelve numbers of COCO's evaluation of boxes as a JSON list. TRUTH is a file of
// annotations and RESULTS a results file, both in COCO's format. tools/check_coco.sh compares the numbers with those of
// pycocotools.
#include <vector>

#include <fmt/ranges.h>

#include "experiments/lab/console.h"
#include "experiments/vision/problem/average_precision.h"

int main(int argc, char** argv) {
  return plumb::lab::exit_status([&] {
    plumb::lab::usage_check(argc == 3, "usage: coco_ap TRUTH RESULTS, two JSON files in COCO's format");
    const plumb::vision::AveragePrecision a = plumb::vision::average_precision(
        plumb::vision::read_coco(argv[1]), plumb::vision::read_coco_detections(argv[2]));
    std::vector<double> numbers;
    for (const plumb::vision::ApNumber& number : plumb::vision::ap_numbers) numbers.push_back(a.*number.value);
    plumb::lab::write_result(fmt::format("[{}]\n", fmt::join(numbers, ", ")));
    return 0;
  });
}
