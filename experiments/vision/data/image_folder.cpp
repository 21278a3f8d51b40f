#include "experiments/vision/data/image_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <set>

#include "core/error.h"
#include "experiments/lab/console.h"
#include "experiments/vision/data/image_file.h"

namespace plumb::vision {
namespace {

namespace fs = std::filesystem;

// Whether a file or folder is hidden, such as the copies in .ipynb_checkpoints and in the folder __MACOSX of an
// archive.
bool is_hidden(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with('.') || name == "__MACOSX";
}

std::string ending_of(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

// Whether `folder` is `path` or contains it. Both are canonical.
bool contains(const fs::path& folder, const fs::path& path) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

// Whether `link` is a link to `folder` or to a folder around it.
bool leads_around(const fs::path& link, const fs::path& folder) {
  std::error_code none;
  return fs::is_symlink(link, none) && contains(fs::canonical(link, none), fs::canonical(folder, none));
}

// Finds the image files of folders, and counts the files and folders that it leaves out.
class ImageFinder {
 public:
  // The sorted paths of the image files at any depth in `folder`, which is `around` or in it. Links are followed. A
  // folder that several links lead to is read once. A link is left out if it leads to `around`, or to a folder that
  // contains `around` or the link, so that circles end.
  std::vector<std::string> files_in(const fs::path& folder, const fs::path& around) {
    std::vector<std::string> files;
    std::set<fs::path> read;
    add(folder, fs::is_symlink(folder), fs::canonical(around), read, files);
    std::ranges::sort(files);
    return files;
  }

  void leave_out(std::int64_t count, const std::string& what) {
    if (count > 0) left_out_[what] += count;
  }

  // Writes a line about the folder `path` to stderr, if files are left out or lie behind links.
  void note(const std::string& path) const {
    constexpr std::ptrdiff_t most = 6;
    std::vector<std::pair<std::int64_t, std::string>> counts;
    for (const auto& [what, count] : left_out_) counts.emplace_back(-count, fmt::format("{} ({})", what, count));
    std::ranges::sort(counts);
    std::vector<std::string> parts;
    for (std::ptrdiff_t i = 0; i < std::min(most, std::ssize(counts)); ++i)
      parts.push_back(counts[static_cast<std::size_t>(i)].second);
    if (std::ssize(counts) > most) parts.push_back(fmt::format("{} more kinds", std::ssize(counts) - most));
    std::vector<std::string> notes;
    if (!parts.empty())
      notes.push_back(fmt::format("images are .png, .jpg and .jpeg files; left out: {}", fmt::join(parts, ", ")));
    if (behind_links_ > 0) notes.push_back(fmt::format("images behind links: {}", behind_links_));
    if (!notes.empty()) note_error(fmt::format("{}: {}\n", path, fmt::join(notes, "; ")));
  }

 private:
  void add(const fs::path& folder, bool linked, const fs::path& around, std::set<fs::path>& read,
           std::vector<std::string>& files) {
    std::error_code error;
    const fs::path here = fs::canonical(folder, error);
    check(!error, "{}: cannot be read: {}", folder.string(), error.message());
    if (!read.insert(here).second) return leave_out(1, "folders that are read already");
    std::vector<fs::directory_entry> entries;
    for (auto it = fs::directory_iterator(folder, error); !error && it != fs::end(it); it.increment(error))
      entries.push_back(*it);
    check(!error, "{}: cannot be read: {}", folder.string(), error.message());
    std::ranges::sort(entries);
    for (const fs::directory_entry& entry : entries) {
      const bool link = entry.is_symlink(error);
      if (entry.is_directory(error)) {
        if (is_hidden(entry.path())) {
          leave_out(1, "hidden folders");
        } else if (leads_around(entry.path(), here) || leads_around(entry.path(), around)) {
          leave_out(1, "links to folders around them");
        } else {
          add(entry.path(), linked || link, around, read, files);
        }
      } else if (link && !entry.exists(error)) {
        leave_out(1, "broken links");
      } else if (entry.is_regular_file(error) && !is_hidden(entry.path())) {
        add_file(entry.path(), linked || link, files);
      }
    }
  }

  void add_file(const fs::path& path, bool linked, std::vector<std::string>& files) {
    const std::string ending = ending_of(path);
    if (ending == ".png" || ending == ".jpg" || ending == ".jpeg") {
      files.push_back(path.string());
      behind_links_ += linked;
      return;
    }
    const bool plain = ending.size() >= 2 && ending.size() <= 8 &&
                       std::all_of(ending.begin() + 1, ending.end(), [](unsigned char c) { return std::isalnum(c); });
    leave_out(1, plain ? ending : "files without a known ending");
  }

  std::map<std::string, std::int64_t> left_out_;
  std::int64_t behind_links_ = 0;
};

std::int64_t shorter_side(const std::string& file) {
  const Pixels image = read_image(file);
  return std::min(image.height, image.width);
}

ImageSet read_classes(const fs::path& folder, const FolderOptions& options, ImageFinder& finder) {
  ImageSet set{.channels = 3, .crop = options.crop, .class_names = class_folders(folder.string())};
  check(!set.class_names.empty(), "{}: expected a folder for each class, got none", folder.string());
  set.classes = static_cast<std::int64_t>(set.class_names.size());
  for (std::size_t label = 0; label < set.class_names.size(); ++label) {
    const fs::path of_class = folder / set.class_names[label];
    const std::vector<std::string> files = finder.files_in(of_class, folder);
    if (files.empty()) finder.note(folder.string());
    check(!files.empty(), "{}: expected PNG or JPEG files of the class {}, got none", of_class.string(),
          set.class_names[label]);
    set.files.insert(set.files.end(), files.begin(), files.end());
    set.labels.insert(set.labels.end(), files.size(), static_cast<std::int32_t>(label));
  }
  finder.leave_out(std::ranges::count_if(fs::directory_iterator(folder),
                                         [](const auto& e) {
                                           std::error_code none;
                                           return e.is_regular_file(none) && !is_hidden(e.path());
                                         }),
                   "files beside the folders of classes");
  set.height = set.width = options.side ? *options.side : shorter_side(set.files.front());
  return set;
}

}  // namespace

std::vector<std::string> class_folders(const std::string& path) {
  std::vector<std::string> names;
  std::error_code none;  // a link may lead nowhere or to itself
  if (fs::is_directory(path, none))
    for (const fs::directory_entry& entry : fs::directory_iterator(path))
      if (entry.is_directory(none) && !is_hidden(entry.path()) && !leads_around(entry.path(), path))
        names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> image_files(const std::string& path) {
  std::error_code error;
  check(fs::exists(path, error), "{}: no such file or folder", path);
  if (!fs::is_directory(path, error)) return {path};
  ImageFinder finder;
  std::vector<std::string> files = finder.files_in(path, path);
  finder.note(path);
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
  ImageData data{.name = "image-folder", .train = {}, .validation = {}, .validation_is = "none"};
  ImageFinder finder;
  if (!fs::is_directory(root / "train", error)) {
    data.train = read_classes(root, options, finder);
    finder.note(dir);
    return data;
  }
  data.train = read_classes(root / "train", options, finder);
  const FolderOptions as_there{data.train.height, options.crop};
  for (const char* name : {"val", "validation", "test"}) {
    if (!fs::is_directory(root / name, error)) continue;
    data.validation = read_classes(root / name, as_there, finder);
    data.validation_is = fmt::format("the images in {}/", name);
    check(data.validation.class_names == data.train.class_names, "{}: expected the classes of train/ ({}), got {}",
          (root / name).string(), fmt::join(data.train.class_names, ", "),
          fmt::join(data.validation.class_names, ", "));
    break;
  }
  finder.note(dir);
  return data;
}

}  // namespace plumb::vision
