#include "experiments/lab/data/image_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>

#include "core/error.h"
#include "experiments/lab/data/image_file.h"

namespace plumb::lab {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& path) {
  if (path.filename().string().starts_with('.')) return false;
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

// The sorted paths of the image files at any depth in `folder`.
std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error); it != fs::end(it); it.increment(error)) {
    check(!error, "{}: cannot be read: {}", folder.string(), error.message());
    if (it->is_regular_file(error) && is_image(it->path())) files.push_back(it->path().string());
  }
  check(!error, "{}: cannot be read: {}", folder.string(), error.message());
  std::ranges::sort(files);
  return files;
}

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !entry.path().filename().string().starts_with('.'))
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::int64_t shorter_side(const std::string& file) {
  const Pixels image = read_image(file);
  return std::min(image.height, image.width);
}

ImageSet read_classes(const fs::path& folder, const FolderOptions& options) {
  ImageSet set{.channels = 3, .crop = options.crop, .class_names = folders_in(folder)};
  check(!set.class_names.empty(), "{}: expected a folder for each class, got none", folder.string());
  set.classes = static_cast<std::int64_t>(set.class_names.size());
  for (std::size_t label = 0; label < set.class_names.size(); ++label) {
    const fs::path of_class = folder / set.class_names[label];
    const std::vector<std::string> files = files_below(of_class);
    check(!files.empty(), "{}: expected PNG or JPEG files of the class {}, got none", of_class.string(),
          set.class_names[label]);
    set.files.insert(set.files.end(), files.begin(), files.end());
    set.labels.insert(set.labels.end(), files.size(), static_cast<std::int32_t>(label));
  }
  set.height = set.width = options.side ? *options.side : shorter_side(set.files.front());
  return set;
}

}  // namespace

std::vector<std::string> image_files(const std::string& path) {
  std::error_code error;
  check(fs::exists(path, error), "{}: no such file or folder", path);
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files = files_below(path);
  check(!files.empty(), "{}: expected PNG or JPEG files in it, got none", path);
  return files;
}

std::string enlargement(const ImageSet& set) {
  if (!set.in_files()) return "";
  try {
    const Pixels first = original(set, 0);
    if (std::min(first.height, first.width) >= std::min(set.height, set.width)) return "";
    return fmt::format("images of {} x {} pixels ({}) are enlarged to {} x {}", first.height, first.width,
                       set.files.front(), set.height, set.width);
  } catch (const Error&) {
    return "";
  }
}

ImageData open_image_folder(const std::string& dir, const FolderOptions& options) {
  const fs::path root = dir;
  std::error_code error;
  check(fs::exists(root, error), "{}: no such folder", dir);
  check(fs::is_directory(root, error), "{}: expected a folder of images, got a file", dir);
  ImageData data{.name = "image-folder", .train = {}, .validation = {}};
  if (!fs::is_directory(root / "train", error)) {
    data.train = read_classes(root, options);
    data.validation_is = "none";
    return data;
  }
  data.train = read_classes(root / "train", options);
  const FolderOptions as_there{data.train.height, options.crop};
  for (const char* name : {"val", "validation", "test"}) {
    if (!fs::is_directory(root / name, error)) continue;
    data.validation = read_classes(root / name, as_there);
    data.validation_is = fmt::format("the images in {}/", name);
    check(data.validation.class_names == data.train.class_names, "{}: expected the classes of train/ ({}), got {}",
          (root / name).string(), fmt::join(data.train.class_names, ", "),
          fmt::join(data.validation.class_names, ", "));
    return data;
  }
  data.validation_is = "none";
  return data;
}

}  // namespace plumb::lab
