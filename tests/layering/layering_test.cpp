// Checks which layer may include which other layer. Backends include core and shared backend code. autograd includes
// core. nn includes autograd and core. experiments include nn and the layers below nn. No layer includes experiments or
// tests. Also checks the order of the folders in a layer, and that includes form no circles.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <vector>

#include "tests/support/catch.h"

namespace fs = std::filesystem;

namespace {

const std::map<std::string, std::set<std::string>> allowed{
    {"core", {"core"}},
    {"autograd", {"core", "autograd"}},
    {"backends/reference", {"core", "backends", "backends/reference"}},
    {"backends/cpu", {"core", "backends", "backends/cpu"}},
    {"backends/cuda", {"core", "backends", "backends/cuda"}},
    {"nn", {"core", "autograd", "nn"}},
    {"experiments", {"core", "autograd", "nn", "experiments"}},
};

// The layer of a file: "nn" for "nn/gates/pre.cpp". Each backend is a layer. The shared files directly in backends/ are
// the layer "backends". Returns "" for other paths.
std::string layer_of(const std::string& path) {
  for (const auto& [layer, may] : allowed)
    if (path.starts_with(layer + "/")) return layer;
  if (path.starts_with("backends/") && path.find('/', 9) == path.npos) return "backends";
  if (path.starts_with("plumb/") && path != "plumb/build_info.h") return "plumb";
  return path.starts_with("backends/") || path.starts_with("tests/") ? path.substr(0, path.find('/', 9)) : "";
}

// The source files below a folder, relative to `root`.
std::vector<std::string> sources_of(const fs::path& root, const std::string& folder) {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder))
    if (std::set<std::string>{".h", ".cpp", ".cu", ".cuh"}.contains(entry.path().extension().string()))
      found.push_back(fs::relative(entry.path(), root).string());
  return found;
}

// The files that a source file includes with quotes.
std::vector<std::string> includes_of(const fs::path& file) {
  std::vector<std::string> found;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (const std::size_t at = line.find("#include \""); at != std::string::npos)
      found.push_back(line.substr(at + 10, line.find('"', at + 10) - at - 10));
  return found;
}

// Adds the files of the repository that a file includes, directly or through other files.
void add_reached(const fs::path& root, const fs::path& file, std::set<std::string>& reached) {
  for (const std::string& include : includes_of(file))
    if (fs::exists(root / include) && reached.insert(include).second) add_reached(root, root / include, reached);
}

struct Violation {
  std::string file, include;
};

// Whether a file belongs to a program, which may include the headers of users as an outside project does.
bool in_program(const std::string& file) {
  return file.starts_with("experiments/") && !file.starts_with("experiments/lab/") &&
         !file.starts_with("experiments/vision/");
}

std::vector<Violation> violations(const fs::path& root) {
  std::vector<Violation> found;
  for (const auto& [layer, may] : allowed)
    for (const std::string& file : sources_of(root, layer))
      for (const std::string& include : includes_of(root / file))
        if (const std::string target = layer_of(include);
            !target.empty() && !may.contains(target) && !(target == "plumb" && in_program(file)))
          found.push_back({file, include});
  return found;
}

// The folders of a house ("rooms"), from lowest to highest. A room may include only itself and lower rooms. The files
// in no room are the room "" of the list; without it, all rooms may include them.
const std::map<std::string, std::vector<std::string>> rooms{
    {"experiments/lab/",
     {"data", "record", "cli", "plot", "options", "stats", "problem", "run", "train", "signals", "report", "study"}},
    {"experiments/vision/", {"data", "options", "problem", "", "pictures", "programs"}},
    {"nn/", {"layers", "gates", "blocks", "detection", "models", "io", "optim", "conformance"}}};
const std::string lab = "experiments/lab/";

// The room of `house` that has a file: "data" for "experiments/vision/data/idx.h". Returns "" for a file outside the
// rooms.
std::string room_of(const std::string& house, const std::string& path) {
  if (!path.starts_with(house)) return "";
  const std::size_t end = path.find('/', house.size());
  return end == path.npos ? "" : path.substr(house.size(), end - house.size());
}

// The includes that lead to a higher room. If a file is in an unknown room, the result has the file with an empty
// include.
std::vector<Violation> room_violations(const fs::path& root) {
  std::vector<Violation> found;
  for (const auto& [house, order] : rooms) {
    const auto height = [&](const std::string& room) { return std::ranges::find(order, room) - order.begin(); };
    const bool outside = height("") == std::ssize(order);  // whether the files in no room are below all rooms
    for (const std::string& file : sources_of(root, house)) {
      const std::string room = room_of(house, file);
      if (!(room.empty() && outside) && height(room) == std::ssize(order)) found.push_back({file, ""});
      for (const std::string& include : includes_of(root / file)) {
        if (!include.starts_with(house)) continue;
        const std::string other = room_of(house, include);
        if (outside && (room.empty() || other.empty()) ? !other.empty() : height(other) > height(room))
          found.push_back({file, include});
      }
    }
  }
  return found;
}

// The nodes from which arrows lead back to the node itself.
using Arrows = std::map<std::string, std::set<std::string>>;
std::set<std::string> in_circles(const Arrows& arrows) {
  std::set<std::string> found;
  for (const auto& [start, first] : arrows) {
    std::set<std::string> reached;
    std::vector<std::string> open(first.begin(), first.end());
    while (!open.empty()) {
      const std::string at = open.back();
      open.pop_back();
      if (!reached.insert(at).second) continue;
      if (const auto next = arrows.find(at); next != arrows.end())
        open.insert(open.end(), next->second.begin(), next->second.end());
    }
    if (reached.contains(start)) found.insert(start);
  }
  return found;
}

// The includes within a layer, as arrows between units (a header with its source file) or between folders.
Arrows arrows_of(const fs::path& root, const std::string& layer, bool of_folders) {
  const auto node = [&](const fs::path& path) {
    return (of_folders ? path.parent_path() : path.parent_path() / path.stem()).string();
  };
  Arrows arrows;
  for (const std::string& file : sources_of(root, layer)) {
    for (const std::string& include : includes_of(root / file))
      if (include.starts_with(layer + "/") && node(include) != node(file)) arrows[node(file)].insert(node(include));
  }
  return arrows;
}

// The files that have an #include line with a given text.
std::set<std::string> users_of(const fs::path& root, const std::string& header) {
  std::set<std::string> found;
  for (const auto& [layer, may] : allowed)
    for (const std::string& file : sources_of(root, layer)) {
      std::ifstream in(root / file);
      for (std::string line; std::getline(in, line);)
        if (line.starts_with("#include") && line.find(header) != std::string::npos) found.insert(file);
    }
  return found;
}

// The number of statements that a line of code ends, and at least 1, so that several statements in one line count as
// several lines. The semicolons inside parentheses, as in a for loop, and in quotes do not count.
std::size_t lines_in(const std::string& line) {
  std::size_t ended = 0;
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < line.size() && line.compare(i, 2, "//") != 0; ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || (c == '\'' && (i == 0 || std::isalnum(static_cast<unsigned char>(line[i - 1])) == 0))) {
      quote = c;
    } else {
      depth += (c == '(') - (c == ')');
      ended += c == ';' && depth <= 0;
    }
  }
  return std::max<std::size_t>(ended, 1);
}

// The lines of C++ of a layer, without blank lines and comments. The programs are the layer "experiments".
std::size_t code_of(const fs::path& root, const std::string& layer) {
  std::size_t count = 0;
  for (const std::string& file : sources_of(root, layer)) {
    if (layer == "experiments" && (file.starts_with(lab) || file.starts_with("experiments/vision/"))) continue;
    std::ifstream in(root / file);
    for (std::string line; std::getline(in, line);)
      if (const std::size_t first = line.find_first_not_of(' ');
          first != line.npos && line.compare(first, 2, "//") != 0)
        count += lines_in(line);
  }
  return count;
}

// The position after the comment, text, character or preprocessor line that begins at `i`; `i` if none begins there.
std::size_t after_text(const std::string& code, std::size_t i) {
  const auto after = [&](const std::string& mark) {
    const std::size_t at = code.find(mark, i + 2);
    return at == code.npos ? code.size() : at + mark.size();
  };
  const bool in_word = i > 0 && std::isalnum(static_cast<unsigned char>(code[i - 1])) != 0;
  if (code.compare(i, 2, "//") == 0) return after("\n") - 1;
  if (code.compare(i, 2, "/*") == 0) return after("*/");
  if (code.compare(i, 2, "R\"") == 0 && !in_word)
    return after(")" + code.substr(i + 2, code.find('(', i) - i - 2) + "\"");
  if (code[i] == '"' || (code[i] == '\'' && !in_word)) {
    std::size_t end = i + 1;
    while (end < code.size() && code[end] != code[i]) end += code[end] == '\\' ? 2 : 1;
    return std::min(end + 1, code.size());
  }
  if (code[i] != '#' || (i > 0 && code[i - 1] != '\n')) return i;
  std::size_t end = code.find('\n', i);
  while (end != code.npos && code[end - 1] == '\\') end = code.find('\n', end + 1);
  return std::min(end, code.size());
}

// A function, and its number of lines from the line of its opening brace to the line of its closing brace.
struct Function {
  std::string head;  // the code before the brace, such as "int main()"
  std::size_t line, lines;
};

// The functions of a file, but not those inside other functions.
std::vector<Function> functions_in(const std::string& code) {
  static const std::regex scope(R"(^(template <.*> )?(inline )?(namespace|struct|class|union|enum|extern)\b)");
  std::vector<Function> found;
  std::string head;                // the code since the last statement or brace
  std::size_t line = 1, open = 0;  // `open`: the number of open braces of the present function
  bool after_function = false;     // a function in the list may be a member initializer a{1} of a constructor
  for (std::size_t i = 0, end = 0; i < code.size(); i = end) {
    end = std::max(after_text(code, i), i + 1);
    const char c = end > i + 1 ? ' ' : code[i];
    line += static_cast<std::size_t>(std::count(&code[i], &code[0] + end, '\n'));
    if (open > 0) {
      open += (c == '{') - (c == '}');
      if (open == 0) found.back().lines = line - found.back().line + 1;
    } else if (c == '{') {
      if (head.ends_with(' ')) head.pop_back();
      const bool is_body = head.find(')') != head.npos ? std::string("(,=[").find(head.back()) == std::string::npos
                                                       : after_function && (head.empty() || head[0] == ',');
      if (is_body && !std::regex_search(head, scope)) {
        found.push_back({head, line, 0});
        open = 1;
      }
      after_function = open > 0;
      head.clear();
    } else if (c == ';' || c == '}') {
      after_function = false;
      head.clear();
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      head += c;
    } else if (!head.empty() && head.back() != ' ') {
      head += ' ';
    }
  }
  return found;
}

constexpr std::size_t longest_function = 80;

// The functions of a layer that are too long, by file.
std::map<std::string, std::vector<Function>> long_functions(const fs::path& root) {
  std::map<std::string, std::vector<Function>> found;
  for (const char* layer : {"core", "autograd", "backends", "nn", "experiments"})
    for (const std::string& file : sources_of(root, layer)) {
      std::ifstream in(root / file);
      for (const Function& f : functions_in(std::string(std::istreambuf_iterator<char>(in), {})))
        if (f.lines > longest_function) found[file].push_back(f);
    }
  return found;
}

// The largest numbers of lines by layer and of public types by header: the rows "| `core` | 2,500 |" of a table in
// CONTRIBUTING.md.
std::map<std::string, std::size_t> budget() {
  static const std::regex row(R"(^\| `([a-z/.]+)` \| ([0-9,]+) \|$)");
  std::map<std::string, std::size_t> found;
  std::ifstream in(fs::path(plumb::test::source_dir()) / "CONTRIBUTING.md");
  std::smatch match;
  for (std::string line; std::getline(in, line);)
    if (std::regex_match(line, match, row)) {
      std::string digits = match[2];
      std::erase(digits, ',');
      found[match[1]] = std::stoul(digits);
    }
  return found;
}

// The lines, without their comments, that read or print numbers by the rules of the locale. A program that uses Plumb
// may set a locale with a decimal comma, in which strtod("1.5") is 1.
std::vector<std::string> lines_by_locale(const fs::path& root) {
  static const std::regex by_locale(
      R"(\b(stod|stof|stold|strtod|strtof|strtold|atof|sscanf|fscanf)\b|printf\b.*%[-+ #0-9.*]*[aefgAEFG]|)"
      R"(\{[^{}"]*:[^{}"]*L[a-zA-Z]?\})");
  std::vector<std::string> found;
  for (const char* folder : {"core", "autograd", "backends", "nn", "experiments", "bench", "examples", "tools"})
    for (const std::string& file : sources_of(root, folder)) {
      std::ifstream in(root / file);
      for (std::string line; std::getline(in, line);)
        if (std::regex_search(line.substr(0, line.find("//")), by_locale)) found.push_back(file + ": " + line);
    }
  return found;
}

// The lines that tools/docs/public_types.py prints in a folder.
std::vector<std::string> public_types(const fs::path& root) {
  const fs::path script = fs::path(plumb::test::source_dir()) / "tools/docs/public_types.py";
  std::vector<std::string> lines(1);
  FILE* const out = popen(("cd '" + root.string() + "' && '" + script.string() + "'").c_str(), "r");
  REQUIRE(out != nullptr);
  for (int c = std::fgetc(out); c != EOF; c = std::fgetc(out))
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += static_cast<char>(c);
  REQUIRE(pclose(out) == 0);
  lines.pop_back();
  return lines;
}

void skip_without_doxygen() {
  if (std::system("command -v doxygen >/dev/null 2>&1") != 0)
    PLUMB_SKIP("doxygen is not installed, so public types were not counted; tools/install.sh test installs it");
}

// The content of a file.
std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The smallest of the three headers of users that declares the names of a program.
std::string smallest_header(const std::string& program) {
  static const std::regex declared(R"(\nint (\w+)\(int argc)");
  static const std::string programs = text_of(fs::path(plumb::test::source_dir()) / "experiments/programs.h");
  if (program.find("vision::") != program.npos) return "<plumb/vision.h>";
  for (std::sregex_iterator i(programs.begin(), programs.end(), declared); i != std::sregex_iterator(); ++i)
    if (program.find("lab::" + (*i)[1].str() + "(") != program.npos) return "<plumb/vision.h>";
  return program.find("lab::") == program.npos ? "<plumb/plumb.h>" : "<plumb/lab.h>";
}

// The headers that a program of a user includes and should not include: headers of Plumb other than the smallest
// header, and headers in quotes.
std::vector<std::string> wrong_headers(const std::string& program) {
  static const std::regex include(R"(#include (<plumb/[^>]*>|"[^"]*"))");
  std::vector<std::string> wrong;
  for (std::sregex_iterator i(program.begin(), program.end(), include); i != std::sregex_iterator(); ++i)
    if ((*i)[1] != smallest_header(program)) wrong.push_back((*i)[1]);
  return wrong;
}

}  // namespace

TEST_CASE("programs of users include the smallest of three headers") {
  const fs::path root = plumb::test::source_dir();
  std::size_t programs = 0;
  for (const char* folder : {"examples", "tests/install"})
    for (const std::string& file : sources_of(root, folder)) {
      if (file.ends_with(".h")) continue;
      ++programs;
      for (const std::string& header : wrong_headers(text_of(root / file)))
        FAIL_CHECK(file << " includes " << header << ", expected " << smallest_header(text_of(root / file)));
    }
  // The programs in pages: code blocks with main().
  static const std::regex block("```cpp\n([^`]*int main\\([^`]*)```");
  std::vector<fs::path> pages{root / "README.md"};
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  for (const fs::path& page : pages) {
    const std::string text = text_of(page);
    for (std::sregex_iterator i(text.begin(), text.end(), block); i != std::sregex_iterator(); ++i) {
      ++programs;
      for (const std::string& header : wrong_headers((*i)[1]))
        FAIL_CHECK(page << " includes " << header << ", expected " << smallest_header((*i)[1]));
    }
  }
  CHECK(programs >= 30);
  CHECK(wrong_headers("#include <plumb/lab.h>\nvision::Study study;") == std::vector<std::string>{"<plumb/lab.h>"});
  CHECK(wrong_headers("#include <plumb/lab.h>\nlab::depth_stability(argc, argv);").size() == 1);
  CHECK(wrong_headers("#include <plumb/lab.h>\n#include \"core/shape.h\"\nlab::Study study;").size() == 1);
  CHECK(wrong_headers("#include <plumb/plumb.h>\nTensor x;").empty());
}

TEST_CASE("no source file reads or prints numbers by the rules of the locale") {
  for (const std::string& line : lines_by_locale(plumb::test::source_dir()))
    FAIL_CHECK(line << "\nuse fmt and std::from_chars");
  SUCCEED();
}

TEST_CASE("the check finds numbers that are read or printed by the rules of the locale") {
  const fs::path root = fs::path(plumb::test::binary_dir()) / "tests" / "layering_locale";
  fs::remove_all(root);
  for (const char* folder : {"core", "autograd", "backends", "nn", "experiments", "bench", "examples", "tools"})
    fs::create_directories(root / folder);
  std::ofstream(root / "nn" / "bad.cpp") << "double a = std::stod(text);\nstd::printf(\"%d %.3e\\n\", i, x);\n"
                                            "fmt::print(\"{:.2Lf}\", x);\n";
  std::ofstream(root / "tools" / "good.cpp") << "std::snprintf(a, 9, \"%s %d\", text, 3);  // strtod() is not used\n"
                                                "double y = fmt::format(\"{:.3f}\", x).size();\n";
  CHECK(lines_by_locale(root).size() == 3);
}

TEST_CASE("every include points to the same or a lower layer") {
  for (const Violation& v : violations(plumb::test::source_dir())) FAIL_CHECK(v.file << " includes " << v.include);
  SUCCEED();
}

TEST_CASE("the laboratory knows neither images nor models") {
  const fs::path root = plumb::test::source_dir();
  for (const std::string& file : sources_of(root, "experiments/lab"))
    for (const std::string& include : includes_of(root / file))
      if (include.starts_with("nn/models/") || include.starts_with("nn/detection/") ||
          (include.starts_with("experiments/") && !include.starts_with(lab)))
        FAIL_CHECK(file << " includes " << include);
  for (const std::string& file : sources_of(root, "experiments/vision"))
    for (const std::string& include : includes_of(root / file))
      if (include.starts_with("experiments/") && !include.starts_with(lab) &&
          !include.starts_with("experiments/vision/"))
        FAIL_CHECK(file << " includes " << include);
  SUCCEED();
}

TEST_CASE("only one file of the cuda backend knows whether the device is emulated") {
  std::set<std::string> found;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::path(plumb::test::source_dir()) / "backends/cuda")) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);)
      if (line.find("PLUMB_CUDA_EMULATED") != line.npos) found.insert(entry.path().filename().string());
  }
  CHECK(found == std::set<std::string>{"warp.cuh"});
}

TEST_CASE(
    "every include in experiments/lab, experiments/vision and nn points to the same or a lower room and every room is "
    "known") {
  for (const Violation& v : room_violations(plumb::test::source_dir()))
    FAIL_CHECK(
        v.file << (v.include.empty() ? " is in a room that is missing in the list `rooms`" : " includes " + v.include));
  std::size_t loose = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(plumb::test::source_dir()) / lab))
    loose += entry.is_regular_file();
  CHECK(loose <= 6);
  for (const char* room : {"plot", "report", "study"})
    CHECK(fs::is_directory(fs::path(plumb::test::source_dir()) / "tests/lab" / room));
}

TEST_CASE("includes form no circles of units or folders") {
  // Units of core and autograd, and the folder autograd/ops, may form circles.
  for (const char* layer : {"backends", "nn", "experiments"})
    CHECK(in_circles(arrows_of(plumb::test::source_dir(), layer, false)) == std::set<std::string>{});
  for (const char* layer : {"core", "backends", "nn", "experiments"})
    CHECK(in_circles(arrows_of(plumb::test::source_dir(), layer, true)) == std::set<std::string>{});
}

TEST_CASE("the check finds an include of a higher room, an unknown room, and circles") {
  const fs::path root = fs::path(plumb::test::binary_dir()) / "tests" / "layering_rooms";
  fs::remove_all(root);
  for (const char* room : {"experiments/lab/data", "experiments/lab/report", "experiments/lab/attic",
                           "experiments/vision/data", "experiments/vision/pictures", "nn/gates"})
    fs::create_directories(root / room);
  std::ofstream(root / lab / "data" / "bad.h")
      << "#include \"experiments/lab/report/good.h\"\n#include \"core/shape.h\"\n";
  std::ofstream(root / lab / "report" / "good.h")
      << "#include \"experiments/lab/data/idx.h\"\n#include \"experiments/lab/hash.h\"\n";
  std::ofstream(root / lab / "report" / "good.cpp") << "#include \"experiments/lab/data/bad.h\"\n";
  std::ofstream(root / lab / "attic" / "lost.h") << "#pragma once\n";
  std::ofstream(root / lab / "loose.h") << "#include \"experiments/lab/data/idx.h\"\n";
  std::ofstream(root / "experiments/vision" / "data" / "low.h") << "#include \"experiments/vision/study.h\"\n";
  std::ofstream(root / "experiments/vision" / "pictures" / "good.h") << "#include \"experiments/vision/study.h\"\n";
  std::ofstream(root / "nn" / "gates" / "high.h") << "#include \"nn/models/vit.h\"\n";
  std::vector<std::string> files;
  for (const Violation& v : room_violations(root)) files.push_back(v.file);
  std::ranges::sort(files);
  CHECK(files == std::vector<std::string>{lab + "attic/lost.h", lab + "data/bad.h", lab + "loose.h",
                                          "experiments/vision/data/low.h", "nn/gates/high.h"});
  CHECK(in_circles(arrows_of(root, "experiments", false)) ==
        std::set<std::string>{lab + "data/bad", lab + "report/good"});
  CHECK(in_circles(arrows_of(root, "experiments", true)) ==
        std::set<std::string>{"experiments/lab", lab + "data", lab + "report"});
  CHECK(in_circles(arrows_of(root, "nn", true)).empty());
}

TEST_CASE("the check finds an include of a higher layer") {
  const fs::path root = fs::path(plumb::test::binary_dir()) / "tests" / "layering";
  fs::remove_all(root);
  for (const auto& [layer, may] : allowed) fs::create_directories(root / layer);
  std::ofstream(root / "core" / "bad.h") << "#pragma once\n#include \"nn/module.h\"\n#include \"core/shape.h\"\n";
  std::ofstream(root / "autograd" / "bad.cpp") << "#include \"backends/cpu/kernels.h\"\n#include <vector>\n";
  std::ofstream(root / "nn" / "bad.cpp") << "#include \"plumb/plumb.h\"\n#include \"plumb/build_info.h\"\n";
  fs::create_directories(root / "experiments/vision");
  fs::create_directories(root / "experiments/waves");
  std::ofstream(root / "experiments/vision/bad.h") << "#include \"plumb/vision.h\"\n";
  std::ofstream(root / "experiments/waves/good.cpp") << "#include \"plumb/vision.h\"\n";
  CHECK(violations(root).size() == 4);
}

TEST_CASE("no layer has more lines of code than its budget in CONTRIBUTING.md") {
  const std::map<std::string, std::size_t> most = budget();
  for (const char* layer :
       {"core", "autograd", "backends", "nn", "experiments/lab", "experiments/vision", "experiments", "tests"}) {
    INFO(layer << ": raise its row in a commit of its own, with a reason, or delete code");
    REQUIRE(most.contains(layer));
    const std::size_t lines = code_of(plumb::test::source_dir(), layer);
    CHECK(lines <= most.at(layer));
    CHECK(lines * 100 > most.at(layer) * 90);  // a budget far above the code is no budget
  }
}

TEST_CASE("no header of users has more public types than its budget in CONTRIBUTING.md or names an internal type") {
  skip_without_doxygen();
  const std::map<std::string, std::size_t> most = budget();
  std::size_t headers = 0;
  for (const std::string& line : public_types(plumb::test::source_dir())) {
    INFO(line);
    const std::string header = line.substr(0, line.find(' '));
    if (header == "error:") {
      FAIL_CHECK("declare the type in a header that plumb/*.h lists, or leave it out of the declaration");
      continue;
    }
    ++headers;
    REQUIRE(most.contains(header));
    const std::size_t types = std::stoul(line.substr(header.size()));
    CHECK(types <= most.at(header));
    CHECK(types * 100 > most.at(header) * 90);
  }
  CHECK(headers == 3);
}

TEST_CASE("the check counts public types and finds declarations that name internal types") {
  skip_without_doxygen();
  const fs::path root = fs::path(plumb::test::binary_dir()) / "tests" / "layering_types",
                 source = plumb::test::source_dir();
  fs::remove_all(root);
  for (const char* folder : {"plumb", "core", "experiments/lab", "tools/docs"}) fs::create_directories(root / folder);
  for (const char* file : {"tools/docs/Doxyfile", "tools/docs/doxygen_filter.py"}) fs::copy(source / file, root / file);
  std::ofstream(root / "plumb/plumb.h") << "#include \"core/shown.h\"\n";
  std::ofstream(root / "plumb/lab.h") << "#include \"plumb/plumb.h\"\n#include \"experiments/lab/study.h\"\n";
  std::ofstream(root / "core/hidden.h")
      << "namespace plumb {\nstruct Hidden {};\nusing Hiddens = std::vector<Hidden>;\n}\n";
  std::ofstream(root / "core/far.h") << "namespace plumb {\nstruct Far {};\n}\n";
  std::ofstream(root / "core/shown.h") << R"(#include "core/hidden.h"
namespace plumb {
struct Far;
namespace detail {
struct Skipped {};
}
enum class Kind { a, b };
class Shown : public Hidden {
 public:
  struct Part {};
  void take(const Hidden& hidden);
  Far& far();
  Kind kind;

 private:
  struct Own {};
  Hidden own() const;
  Hidden own_;
};
Hiddens make();
}
)";
  std::ofstream(root / "experiments/lab/study.h")
      << "#include \"core/shown.h\"\nnamespace plumb::lab {\nclass Study {\n"
         " public:\n  Shown shown();\n  Hidden hidden;\n};\n}\n";
  const auto error = [](const char* header, const char* name) {
    return fmt::format("error: {}: {} names plumb::Hidden, which the internal header core/hidden.h declares", header,
                       name);
  };
  CHECK(public_types(root) == std::vector<std::string>{"plumb/plumb.h 3", "plumb/lab.h 1", "plumb/vision.h 0",
                                                       error("core/shown.h", "plumb::Shown"),
                                                       "error: core/shown.h: plumb::Shown::far names plumb::Far, "
                                                       "which the internal header core/far.h declares",
                                                       error("core/shown.h", "plumb::Shown::take"),
                                                       error("core/shown.h", "plumb::make"),
                                                       error("experiments/lab/study.h", "plumb::lab::Study::hidden")});
}

TEST_CASE("lines of code are counted without comments, and each statement counts") {
  CHECK(lines_in("  a = 1; b = 2;  // c; d;") == 2);
  CHECK(lines_in("  for (int i = 0; i < n; ++i) {") == 1);
  CHECK(lines_in("  print(\";;\"); x = ';'; y = 1'000;") == 3);
  CHECK(lines_in("}") == 1);
}

TEST_CASE("no function has more than 80 lines") {
  for (const auto& [file, functions] : long_functions(plumb::test::source_dir()))
    for (const Function& f : functions)
      FAIL_CHECK(file << ":" << f.line << ": " << f.head << " has " << f.lines << " lines: split it");
}

TEST_CASE("the check finds a long function, and counts functions of all forms") {
  const fs::path root = fs::path(plumb::test::binary_dir()) / "tests" / "layering_functions";
  fs::remove_all(root);
  for (const char* layer : {"core", "autograd", "backends", "nn", "experiments"}) fs::create_directories(root / layer);
  const auto lines = [](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += "  f(i);\n";
    return text;
  };
  std::ofstream(root / "nn" / "long.cpp") << "void f() {\n" << lines(78) << "}\nvoid g() {\n" << lines(79) << "}\n";
  std::ofstream(root / "nn" / "table.cpp") << "const Rows rows = made({\n"
                                           << lines(99) << "});\nstruct X {\n"
                                           << lines(99) << "};\n";
  const auto found = long_functions(root);
  REQUIRE(found.size() == 1);
  REQUIRE(found.at("nn/long.cpp").size() == 1);
  CHECK(found.at("nn/long.cpp")[0].head == "void g()");
  CHECK(found.at("nn/long.cpp")[0].line == 81);
  CHECK(found.at("nn/long.cpp")[0].lines == 81);

  const std::string forms = R"code(#define BRACE {
template <class T>
struct A : B<T> {
  A() : a_{1}, b_{'{'} {
    if (b_[0] == '}') c("} // {");  // }
  }
  int size() const noexcept { return 1'000; }
  int a_{3};
};
/* { */ const auto g = [](int x) -> int {
  return x;
};
auto h = R"({)";
enum class E { a, b };
)code";
  std::vector<std::string> heads;
  std::vector<std::size_t> sizes;
  for (const Function& f : functions_in(forms)) heads.push_back(f.head), sizes.push_back(f.lines);
  CHECK(heads == std::vector<std::string>{"A() : a_", ", b_", "", "int size() const noexcept",
                                          "const auto g = [](int x) -> int"});
  CHECK(sizes == std::vector<std::size_t>{1, 1, 3, 1, 3});
}

TEST_CASE("heavy or replaceable dependencies have one user each") {
  const fs::path root = plumb::test::source_dir();
  CHECK(users_of(root, "dnnl") == std::set<std::string>{"backends/cpu/onednn_primitives.h"});
  CHECK(users_of(root, "onednn_primitives.h") == std::set<std::string>{"backends/cpu/onednn_bf16.cpp",
                                                                       "backends/cpu/onednn_convolution.cpp",
                                                                       "backends/cpu/onednn_products.cpp"});
  CHECK(users_of(root, "<omp.h>").size() <= 1);
  CHECK(users_of(root, "zlib.h") == std::set<std::string>{"experiments/lab/data/input_file.cpp"});
  CHECK(users_of(root, "<boost/") == std::set<std::string>{"experiments/lab/stats/summary.cpp"});
  // The package installs no JSON library: no header that <plumb/vision.h> reaches may need one.
  std::set<std::string> reached;
  add_reached(root, root / "plumb" / "vision.h", reached);
  CHECK(reached.contains("experiments/lab/study/study.h"));
  for (const std::string& file : users_of(root, "nlohmann/")) CHECK_FALSE(reached.contains(file));
}
