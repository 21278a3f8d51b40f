#include "experiments/vision/data/coco.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json_text.h"
#include "experiments/vision/data/image_file.h"

namespace plumb::vision {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_faults = 20;
constexpr double tolerance = 0.5;  // in pixels: COCO's own boxes are rounded and leave their images by up to this much

// Collects the faults of a file, one line each.
class Faults {
 public:
  void add(std::string line) {
    if (lines_.size() < most_faults) lines_.push_back(std::move(line));
    ++count_;
  }
  // Throws Error if there are faults.
  void throw_any(const std::string& path) const {
    if (count_ == 0) return;
    std::string text =
        fmt::format("{}: {} fault{}\n  {}", path, count_, count_ == 1 ? "" : "s", fmt::join(lines_, "\n  "));
    if (count_ > lines_.size()) text += fmt::format("\n  and {} more", count_ - lines_.size());
    fail(text);
  }

 private:
  std::vector<std::string> lines_;
  std::size_t count_ = 0;
};

// An entry of a list, whose fields are read with messages about the entry.
class Entry {
 public:
  Entry(const Json& json, std::string name, Faults& faults) : json_(json), name_(std::move(name)), faults_(faults) {}

  bool is_object() const {
    if (!json_.is_object()) fault("expected an object {..}");
    return json_.is_object();
  }
  void fault(const std::string& what) const { faults_.add(fmt::format("{}: {}", name_, what)); }
  std::int64_t integer(const char* field) const {
    const auto at = json_.find(field);
    const bool too_large = at != json_.end() && at->is_number_unsigned() && at->get<std::uint64_t>() >> 63 != 0;
    if (at != json_.end() && at->is_number_integer() && !too_large) return at->get<std::int64_t>();
    fault(fmt::format("expected an integer \"{}\"{}", field, found(at)));
    return 0;
  }
  std::string text(const char* field) const {
    const auto at = json_.find(field);
    if (at != json_.end() && at->is_string()) return at->get<std::string>();
    fault(fmt::format("expected a text \"{}\"{}", field, found(at)));
    return "";
  }
  double number(const char* field) const {
    const auto at = json_.find(field);
    if (at != json_.end() && at->is_number()) return at->get<double>();
    fault(fmt::format("expected a number \"{}\"{}", field, found(at)));
    return 0;
  }
  double number_or(const char* field, double otherwise) const {
    return json_.contains(field) ? number(field) : otherwise;
  }
  CocoBox box() const {
    const auto at = json_.find("bbox");
    if (at != json_.end() && at->is_array() && at->size() == 4 &&
        std::ranges::all_of(*at, [](const Json& n) { return n.is_number(); }))
      return {(*at)[0].get<double>(), (*at)[1].get<double>(), (*at)[2].get<double>(), (*at)[3].get<double>()};
    fault(fmt::format("expected a \"bbox\" of four numbers [x, y, width, height]{}", found(at)));
    return {0, 0, 1, 1};
  }

 private:
  std::string found(Json::const_iterator at) const {
    if (at == json_.end()) return ", found none";
    std::string value = at->dump();
    if (value.size() > 40) value = value.substr(0, 40) + " ..";
    return ", found " + value;
  }

  const Json& json_;
  std::string name_;
  Faults& faults_;
};

// Calls f for each object of the list `name` of the file.
template <class F>
void each(const Json& file, const char* name, const char* one, Faults& faults, const F& f) {
  const auto list = file.find(name);
  if (list == file.end() || !list->is_array()) return faults.add(fmt::format("expected a list \"{}\"", name));
  for (const Json& json : *list) {
    const auto id = json.is_object() ? json.find("id") : json.end();
    const std::string which =
        json.is_object() && id != json.end() ? id->dump() : fmt::format("at index {}", &json - &list->front());
    const Entry entry(json, fmt::format("{} {}", one, which), faults);
    if (entry.is_object()) f(entry);
  }
}

// The content of a JSON file.
Json parsed(const std::string& path, const char* what) {
  try {
    std::error_code none;  // a pipe or a device would never end
    check(!std::filesystem::exists(path, none) || std::filesystem::is_regular_file(path, none),
          "{}: expected a JSON file of {}, got no file", path, what);
    const std::string text = read_file(path);
    return Json::parse(shallow_json(text, path));
  } catch (const Json::exception& e) {
    fail(fmt::format("{}: expected a JSON file of {} in COCO's format: {}", path, what, e.what()));
  }
}

template <class Id>
void expect_new(std::set<Id>& seen, Id id, const Entry& entry) {
  if (!seen.insert(id).second) entry.fault("the id occurs twice");
}

}  // namespace

Coco read_coco(const std::string& path) {
  const Json file = parsed(path, "annotations");
  check(file.is_object(), "{}: expected a JSON object with the lists images, categories and annotations", path);
  Coco c;
  Faults faults;
  std::map<std::int64_t, CocoImage> images;
  std::set<std::int64_t> image_ids, category_ids, annotation_ids;
  each(file, "images", "image", faults, [&](const Entry& e) {
    const CocoImage image{e.integer("id"), e.text("file_name"), e.integer("width"), e.integer("height")};
    expect_new(image_ids, image.id, e);
    if (image.width < 1 || image.height < 1)
      e.fault(fmt::format("expected sides of at least 1 pixel, found {} x {}", image.width, image.height));
    else if (image.width > most_pixels / image.height)
      e.fault(fmt::format("expected at most {} pixels, found {} x {}", most_pixels, image.width, image.height));
    images[image.id] = image;
    c.images.push_back(image);
  });
  each(file, "categories", "category", faults, [&](const Entry& e) {
    c.categories.push_back({e.integer("id"), e.text("name")});
    expect_new(category_ids, c.categories.back().id, e);
  });
  each(file, "annotations", "annotation", faults, [&](const Entry& e) {
    CocoAnnotation a{
        .id = e.integer("id"), .image = e.integer("image_id"), .category = e.integer("category_id"), .box = e.box()};
    a.area = e.number_or("area", a.box.area());
    a.crowd = e.number_or("iscrowd", 0) != 0;
    expect_new(annotation_ids, a.id, e);
    const auto image = images.find(a.image);
    const auto fault = [&](const std::string& what) { e.fault(fmt::format("image {}: {}", a.image, what)); };
    if (image == images.end()) return fault("no entry of \"images\" has this id");
    if (!category_ids.contains(a.category)) fault(fmt::format("no entry of \"categories\" has the id {}", a.category));
    const auto& [x, y, w, h] = a.box;
    const auto width = static_cast<double>(image->second.width), height = static_cast<double>(image->second.height);
    if (!(w >= 0 && h >= 0))
      fault(fmt::format("expected a box with sides of at least 0, found {:g} x {:g}", w, h));
    else if (x < -tolerance || y < -tolerance || x + w > width + tolerance || y + h > height + tolerance)
      fault(fmt::format("expected a box inside the image of {} x {} pixels, found x {:g} to {:g}, y {:g} to {:g}",
                        image->second.width, image->second.height, x, x + w, y, y + h));
    if (a.area < 0) fault(fmt::format("expected an area of at least 0, found {:g}", a.area));
    c.annotations.push_back(a);
  });
  faults.throw_any(path);
  return c;
}

std::vector<CocoDetection> read_coco_detections(const std::string& path) {
  const Json file = parsed(path, "a list of detections");
  check(file.is_array(), "{}: expected a list of detections [{{\"image_id\": .., ..}}, ..]", path);
  std::vector<CocoDetection> all;
  Faults faults;
  for (const Json& json : file) {
    const Entry entry(json, fmt::format("detection at index {}", &json - &file.front()), faults);
    if (!entry.is_object()) continue;
    CocoDetection& d = all.emplace_back(CocoDetection{
        .image = entry.integer("image_id"), .category = entry.integer("category_id"), .box = entry.box()});
    d.score = entry.number("score");
  }
  faults.throw_any(path);
  return all;
}

std::string coco_json(const Coco& c) {
  Json images = Json::array(), categories = Json::array(), annotations = Json::array();
  for (const CocoImage& i : c.images)
    images.push_back({{"id", i.id}, {"file_name", i.file}, {"width", i.width}, {"height", i.height}});
  for (const CocoCategory& k : c.categories) categories.push_back({{"id", k.id}, {"name", k.name}});
  for (const CocoAnnotation& a : c.annotations)
    annotations.push_back({{"id", a.id},
                           {"image_id", a.image},
                           {"category_id", a.category},
                           {"bbox", {a.box.x, a.box.y, a.box.width, a.box.height}},
                           {"area", a.area},
                           {"iscrowd", a.crowd ? 1 : 0}});
  return Json{{"images", images}, {"categories", categories}, {"annotations", annotations}}.dump(1) + "\n";
}

std::string coco_json(const std::vector<CocoDetection>& detections) {
  Json list = Json::array();
  for (const CocoDetection& d : detections)
    list.push_back({{"image_id", d.image},
                    {"category_id", d.category},
                    {"bbox", {d.box.x, d.box.y, d.box.width, d.box.height}},
                    {"score", d.score}});
  return list.dump(1) + "\n";
}

}  // namespace plumb::vision
