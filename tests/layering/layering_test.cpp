// Who may include whom: backends -> core and what they share; autograd -> core; nn -> autograd, core; experiments -> nn
// and below; nobody includes experiments or tests.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "tests/support/catch.h"

namespace fs = std::filesystem;

namespace {

const std::map<std::string, std::set<std::string>> allowed{
    {"core", {"core"}},
    {"autograd", {"core", "autograd"}},
    {"backends/reference", {"core", "backends/reference"}},
    {"backends/cpu", {"core", "backends", "backends/cpu"}},
    {"backends/cuda",
     {"core", "backends", "backends/cuda", "tests/cuda_emulator"}},  // the emulator: launch.h alone, see below
    {"nn", {"core", "autograd", "nn"}},
    {"experiments", {"core", "autograd", "nn", "experiments"}},
};

// "nn/gates/pre.cpp" -> "nn"; backends are layers of their own, and what lies beside them, "backends", is shared. ""
// for a path outside them.
std::string layer_of(const std::string& path) {
  for (const auto& [layer, may] : allowed)
    if (path.starts_with(layer + "/")) return layer;
  if (path.starts_with("backends/") && path.find('/', 9) == path.npos) return "backends";
  return path.starts_with("backends/") || path.starts_with("tests/") ? path.substr(0, path.find('/', 9)) : "";
}

// The files that a source includes in quotes.
std::vector<std::string> includes_of(const fs::path& file) {
  std::vector<std::string> found;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (const std::size_t at = line.find("#include \""); at != std::string::npos)
      found.push_back(line.substr(at + 10, line.find('"', at + 10) - at - 10));
  return found;
}

struct Violation {
  std::string file, include;
};

std::vector<Violation> violations(const fs::path& root) {
  std::vector<Violation> found;
  for (const auto& [layer, may] : allowed)
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / layer)) {
      if (!std::set<std::string>{".h", ".cpp", ".cu", ".cuh"}.contains(entry.path().extension().string())) continue;
      const std::string file = fs::relative(entry.path(), root).string();
      for (const std::string& include : includes_of(entry.path()))
        if (const std::string target = layer_of(include); !target.empty() && !may.contains(target))
          found.push_back({file, include});
    }
  return found;
}

// The rooms of the laboratory, lowest first: a room includes only rooms below it. Files that lie loose in it are for
// all.
const std::vector<std::string> rooms{"data", "record", "cli",     "plot",   "options", "stats",
                                     "run",  "train",  "signals", "report", "study"};
const std::string lab = "experiments/lab/";

// "experiments/lab/data/idx.h" -> "data"; "" for a loose file, and for one outside the laboratory.
std::string room_of(const std::string& path) {
  if (!path.starts_with(lab)) return "";
  const std::size_t end = path.find('/', lab.size());
  return end == path.npos ? "" : path.substr(lab.size(), end - lab.size());
}

// Includes of a higher room, and files in rooms that have no place in the order (with an empty include).
std::vector<Violation> room_violations(const fs::path& root) {
  const auto height = [](const std::string& room) { return std::ranges::find(rooms, room) - rooms.begin(); };
  std::vector<Violation> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / lab)) {
    if (!entry.is_regular_file()) continue;
    const std::string file = fs::relative(entry.path(), root).string(), room = room_of(file);
    if (!room.empty() && height(room) == std::ssize(rooms)) found.push_back({file, ""});
    for (const std::string& include : includes_of(entry.path()))
      if (const std::string other = room_of(include); !other.empty() && (room.empty() || height(other) > height(room)))
        found.push_back({file, include});
  }
  return found;
}

// Files that mention a text in an #include line.
std::set<std::string> users_of(const fs::path& root, const std::string& header) {
  std::set<std::string> found;
  for (const auto& [layer, may] : allowed)
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / layer)) {
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);)
        if (line.starts_with("#include") && line.find(header) != std::string::npos)
          found.insert(fs::relative(entry.path(), root).string());
    }
  return found;
}

}  // namespace

TEST_CASE("every include points down the layers") {
  for (const Violation& v : violations(PLUMB_SOURCE_DIR)) FAIL_CHECK(v.file << " includes " << v.include);
  SUCCEED();
}

TEST_CASE("the cuda backend knows of the emulator where threads start and meet, and nowhere else") {
  CHECK(users_of(PLUMB_SOURCE_DIR, "tests/cuda_emulator") == std::set<std::string>{"backends/cuda/launch.h"});
  std::set<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(PLUMB_SOURCE_DIR) / "backends/cuda")) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);)
      if (line.find("PLUMB_CUDA_EMULATED") != line.npos) found.insert(entry.path().filename().string());
  }
  CHECK(found == std::set<std::string>{"launch.h", "warp.cuh"});
}

TEST_CASE("every include of the laboratory points down its rooms, and each room is known") {
  for (const Violation& v : room_violations(PLUMB_SOURCE_DIR))
    FAIL_CHECK(v.file << (v.include.empty() ? " is in a room without a place in the order" : " includes " + v.include));
  std::size_t loose = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(PLUMB_SOURCE_DIR) / lab))
    loose += entry.is_regular_file();
  CHECK(loose <= 6);
  for (const char* room : {"plot", "report", "study"})
    CHECK(fs::is_directory(fs::path(PLUMB_SOURCE_DIR) / "tests/lab" / room));
}

TEST_CASE("the check sees a room that includes a higher one, and a room that it does not know") {
  const fs::path root = fs::path(PLUMB_BINARY_DIR) / "tests" / "layering_rooms";
  fs::remove_all(root);
  for (const char* room : {"data", "report", "attic"}) fs::create_directories(root / lab / room);
  std::ofstream(root / lab / "data" / "bad.h")
      << "#include \"experiments/lab/report/page.h\"\n#include \"core/shape.h\"\n";
  std::ofstream(root / lab / "report" / "good.h")
      << "#include \"experiments/lab/data/idx.h\"\n#include \"experiments/lab/hash.h\"\n";
  std::ofstream(root / lab / "attic" / "lost.h") << "#pragma once\n";
  std::ofstream(root / lab / "loose.h") << "#include \"experiments/lab/data/idx.h\"\n";
  std::vector<std::string> files;
  for (const Violation& v : room_violations(root)) files.push_back(v.file);
  std::ranges::sort(files);
  CHECK(files == std::vector<std::string>{lab + "attic/lost.h", lab + "data/bad.h", lab + "loose.h"});
}

TEST_CASE("the check sees an include that points up") {
  const fs::path root = fs::path(PLUMB_BINARY_DIR) / "tests" / "layering";
  fs::remove_all(root);
  for (const auto& [layer, may] : allowed) fs::create_directories(root / layer);
  std::ofstream(root / "core" / "bad.h") << "#pragma once\n#include \"nn/module.h\"\n#include \"core/shape.h\"\n";
  std::ofstream(root / "autograd" / "bad.cpp") << "#include \"backends/cpu/kernels.h\"\n#include <vector>\n";
  CHECK(violations(root).size() == 2);
}

TEST_CASE("heavy or replaceable dependencies have one user each") {
  const fs::path root = PLUMB_SOURCE_DIR;
  CHECK(users_of(root, "dnnl") == std::set<std::string>{"backends/cpu/onednn_primitives.h"});
  CHECK(users_of(root, "onednn_primitives.h") == std::set<std::string>{"backends/cpu/onednn_bf16.cpp",
                                                                       "backends/cpu/onednn_convolution.cpp",
                                                                       "backends/cpu/onednn_products.cpp"});
  CHECK(users_of(root, "<omp.h>").size() <= 1);
  CHECK(users_of(root, "zlib.h") == std::set<std::string>{"experiments/lab/data/input_file.cpp"});
  CHECK(users_of(root, "<boost/") == std::set<std::string>{"experiments/lab/stats/distributions.cpp"});
  for (const std::string& file : users_of(root, "nlohmann/")) CHECK(file.ends_with(".cpp"));
}
