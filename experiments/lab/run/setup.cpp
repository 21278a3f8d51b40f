#include "experiments/lab/run/setup.h"

#include <algorithm>
#include <filesystem>

#include "core/backend.h"
#include "experiments/lab/cli/cli.h"
#include "experiments/lab/data/open_data.h"
#include "experiments/lab/data/split.h"
#include "experiments/lab/hash.h"
#include "experiments/lab/options/device.h"

namespace plumb::lab {
namespace {

ImageData data_of(const StudyOptions& o) {
  ImageData data = open_data(o.data, o.data_dir, {o.image_size, o.image_crop});
  if (o.validation_split > 0) data = with_validation_split(std::move(data), o.validation_split);
  const bool has_train = std::filesystem::is_directory(std::filesystem::path(o.data_dir) / "train");
  check(data.validation.size() > 0, "{}: there are no validation images ({}); give --validation-split 0.1", o.data_dir,
        has_train ? "it has train/ but no val/" : "it has no train/ and val/, so its folders are read as classes");
  if (o.train_images > 0) data = with_few_training_images(std::move(data), o.train_images);
  check(o.batch <= data.train.size(), "--batch {} is more than the {} training images of {}{}", o.batch,
        data.train.size(), data.name,
        o.validation_split > 0 ? fmt::format(" that --validation-split {:g} leaves", o.validation_split) : "");
  return data;
}

Machine machine_of(const StudyOptions& o) {
  set_num_threads(static_cast<int>(o.threads.value_or(0)));
  set_strict_determinism(o.deterministic == Determinism::strict);
  // The device text of run.json includes the instructions that compute bf16 products.
  return {.device = (in_host_memory(defaults().device) ? "" : cuda_description() + ", host: ") + cpu_description() +
                    (o.dtype == NumberFormat::bf16
                         ? fmt::format(", products in bf16{}", defaults().device == Device::cpu
                                                                   ? fmt::format(" by {}", bf16_products().instructions)
                                                                   : "")
                         : ""),
          .threads = num_threads()};
}

// Removes the number of threads from a device text: "AMD EPYC, AVX-512, 2 threads, oneDNN 2.6.3" becomes "AMD EPYC,
// AVX-512, oneDNN 2.6.3".
std::string without_threads(std::string device) {
  const std::size_t end = device.find(" threads, "), begin = device.rfind(", ", end);
  return end == device.npos ? device : device.erase(begin + 2, end + 10 - begin - 2);
}

// A hash of all data that training and evaluation read from the images.
std::string hash_of_images(const ImageData& data) {
  Hash hash;
  for (const ImageSet* set : {&data.train, &data.validation}) {
    hash.add(fmt::format("{} {} {} {};", set->channels, set->height, set->width, set->classes));
    hash.add({reinterpret_cast<const char*>(set->pixels.data()), set->pixels.size()});
    hash.add({reinterpret_cast<const char*>(set->labels.data()), set->labels.size() * sizeof set->labels[0]});
    if (!set->in_files()) continue;
    hash.add(fmt::format("{:g};", set->crop));
    // For images in files, the hash is computed from class folder, name and size, because reading all pixels would take
    // hours.
    for (const std::string& file : set->files) {
      std::error_code error;
      const std::filesystem::path path = file;
      hash.add(fmt::format("{}/{} {};", path.parent_path().filename().string(), path.filename().string(),
                           std::filesystem::file_size(path, error)));
    }
  }
  return hash.text();
}

DataFacts facts_of(const ImageData& data, std::int64_t eval_images) {
  const std::int64_t validation = data.validation.size();
  return {.name = data.name,
          .text = fmt::format("{}, {} training images, {} validation images: {}; {} classes", data.name,
                              data.train.size(), validation, data.validation_is, data.train.classes),
          .validation_is = data.validation_is,
          .hash = hash_of_images(data),
          .images = {.channels = data.train.channels,
                     .height = data.train.height,
                     .width = data.train.width,
                     .classes = data.train.classes},
          .validation_images = eval_images > 0 ? std::min(eval_images, validation) : validation};
}

}  // namespace

Defaults defaults_for(const StudyOptions& o) {
  return {.dtype = o.dtype == NumberFormat::fp64 ? DType::f64 : DType::f32, .device = device_of(o.device)};
}

Setup::Setup(const StudyOptions& o)
    : defaults_(defaults_for(o)),
      precision_(precision_for(o.dtype, defaults().device)),
      data(data_of(o)),
      normalization(normalization_of(data.train, o.normalization)),
      machine(machine_of(o)),
      arithmetic(without_threads(machine.device)),
      facts(facts_of(data, o.eval_images)) {}

}  // namespace plumb::lab
