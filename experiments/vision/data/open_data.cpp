#include "experiments/vision/data/open_data.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/nearest.h"
#include "experiments/lab/data/input_file.h"
#include "experiments/vision/data/cifar.h"
#include "experiments/vision/data/glyphs.h"
#include "experiments/vision/data/idx.h"

namespace plumb::vision {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<std::string>;

struct FileSet {
  std::string name;
  std::vector<std::string> folders;            // possible names of the published folder in the folder --data-dir
  std::vector<std::string> train, validation;  // names of the training and validation files
  bool all_train_files;  // true: all training files are needed; false: at least one training file is needed
  ImageSet (*read)(const Paths&);
};

ImageSet read_idx_pair(const Paths& paths) { return read_idx(paths[0], paths[1]); }

// A data set that the library generates.
struct GeneratedSet {
  std::string name;
  ImageData (*make)();
};

const std::vector<GeneratedSet>& generated_sets() {
  static const std::vector<GeneratedSet> sets{
      {"glyphs", [] { return glyphs(); }}, {"glyphs-clutter", glyphs_clutter}, {"glyphs-few", glyphs_few}};
  return sets;
}

const std::vector<FileSet>& file_sets() {
  static const std::vector<std::string> train{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
  static const std::vector<std::string> test{"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  static const std::vector<std::string> batches{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                                "data_batch_4.bin", "data_batch_5.bin"};
  static const std::vector<FileSet> sets{
      {"fashion-mnist", {"fashion-mnist", "FashionMNIST/raw"}, train, test, true, read_idx_pair},
      {"mnist", {"mnist", "MNIST/raw"}, train, test, true, read_idx_pair},
      {"cifar-10", {"cifar-10-batches-bin", "cifar-10"}, batches, {"test_batch.bin"}, false, read_cifar10},
      {"cifar-100", {"cifar-100-binary", "cifar-100"}, {"train.bin"}, {"test.bin"}, true, read_cifar100},
  };
  return sets;
}

std::string files_of(const FileSet& set) {
  const std::string first = set.all_train_files ? fmt::format("{}", fmt::join(set.train, ", "))
                                                : set.train.front() + " ... " + set.train.back();
  return fmt::format("{}, {} (plain or .gz)", first, fmt::join(set.validation, ", "));
}

Paths existing(const std::string& folder, const std::vector<std::string>& names) {
  Paths paths;
  for (const std::string& name : names)
    if (const auto path = find_data_file(folder, name)) paths.push_back(*path);
  return paths;
}

// The first folder that contains a file of the set. The published folders in `dir` are searched before `dir`, because
// the files of MNIST and Fashion-MNIST have the same names.
std::string folder_of(const FileSet& set, const std::string& dir) {
  std::error_code ignored;
  check(fs::exists(dir, ignored), "{}: no such folder; --data-dir expects the folder of {} with {}, or its parent", dir,
        set.name, files_of(set));
  check(fs::is_directory(dir, ignored),
        "{}: expected a folder, got a file; --data-dir expects the folder of {} with {}, or its parent", dir, set.name,
        files_of(set));
  std::vector<std::string> folders;
  for (const std::string& folder : set.folders) folders.push_back((fs::path(dir) / folder).string());
  folders.push_back(dir);
  for (const std::string& folder : folders)
    if (!existing(folder, set.train).empty() || !existing(folder, set.validation).empty()) return folder;
  fail(fmt::format(
      "{}: expected files of {} here or in the subfolder {}/, got none; --data-dir expects the folder with {}, or its "
      "parent",
      dir, set.name, fmt::join(set.folders, "/ or "), files_of(set)));
}

ImageSet read_part(const FileSet& set, const std::string& folder, const std::vector<std::string>& names, bool all) {
  const Paths paths = existing(folder, names);
  if (all ? paths.size() < names.size() : paths.empty())
    for (const std::string& name : names)
      check(find_data_file(folder, name).has_value(), "{}: {} is missing; {} needs {}", folder, name, set.name,
            files_of(set));
  return set.read(paths);
}

}  // namespace

const std::vector<std::string>& data_set_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const GeneratedSet& set : generated_sets()) list.push_back(set.name);
    for (const FileSet& set : file_sets()) list.push_back(set.name);
    list.emplace_back("image-folder");
    return list;
  }();
  return names;
}

bool mirrors_keep_class(const std::string& name) {
  return name != "mnist" && std::ranges::find(generated_sets(), name, &GeneratedSet::name) == generated_sets().end();
}

ImageData open_data(const std::string& name, const std::string& dir, const FolderOptions& of_image_folder) {
  for (const GeneratedSet& set : generated_sets())
    if (set.name == name) return set.make();
  if (name == "image-folder") {
    if (dir.empty())
      throw UsageError(
          "image-folder needs --image-folder DIR, a folder with train/CLASS/FILE and val/CLASS/FILE, or with "
          "CLASS/FILE");
    return open_image_folder(dir, of_image_folder);
  }
  for (const FileSet& set : file_sets()) {
    if (set.name != name) continue;
    if (dir.empty())
      throw UsageError(fmt::format("{} needs --data-dir: the folder with {}, or its parent (glyphs needs no files)",
                                   name, files_of(set)));
    const std::string folder = folder_of(set, dir);
    ImageData data{.name = name,
                   .train = read_part(set, folder, set.train, set.all_train_files),
                   .validation = read_part(set, folder, set.validation, true)};
    check(data.train.image_bytes() == data.validation.image_bytes() && data.train.height == data.validation.height,
          "{}: expected training and validation images of one size, got {}x{} and {}x{}", folder, data.train.height,
          data.train.width, data.validation.height, data.validation.width);
    return data;
  }
  throw UsageError(fmt::format("unknown data set '{}'; {}", name, suggest_name(name, data_set_names())));
}

}  // namespace plumb::vision
