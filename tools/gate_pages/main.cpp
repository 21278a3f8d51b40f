// gate_pages SOURCE_DIR [--check]: writes docs/gates/, with a page for every residual method and an index, from the
// declarations in the code and the first comment of the method's file. With --check, the program compares the pages
// with the existing files instead of writing pages, and exits with 1 if a page differs.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/atomic_file.h"
#include "experiments/lab/console.h"
#include "nn/init_groups.h"
#include "plumb/plumb.h"

namespace {

using namespace plumb;
namespace fs = std::filesystem;

constexpr std::int64_t dim = 64, heads = 2, depth = 24;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Returns the file that defines the method, relative to the source folder.
fs::path source_of(const fs::path& root, const std::string& method) {
  for (const auto& entry : fs::directory_iterator(root / "nn/gates"))
    if (entry.path().extension() == ".cpp" &&
        text_of(entry.path()).find(fmt::format("Method methods::{}(", method)) != std::string::npos)
      return fs::relative(entry.path(), root);
  fail(fmt::format("expected a file in nn/gates that defines methods::{}, got none", method));
}

std::string opening_comment(const std::string& source) {
  std::istringstream lines(source);
  std::string comment, line;
  while (std::getline(lines, line) && line.starts_with("//"))
    comment += line.substr(std::min<std::size_t>(3, line.size())) + "\n";
  return comment;
}

// Returns one table row for each parameter. If blocks declare a parameter differently (the streams of
// hyper-connections), the first declaration is used.
std::string parameter_rows(const nn::Stack& stack) {
  std::string rows;
  std::set<std::string> seen;
  for (const nn::InitGroup& g : nn::init_groups(stack)) {
    const std::string name = g.names.starts_with("blocks.*.") ? g.names.substr(9) : g.names;
    const bool bias_of_linear = name.ends_with(".bias") && g.role == nn::Role::bias;
    if (bias_of_linear || !seen.insert(name).second) continue;
    rows += fmt::format("| `{}` | {} | {} | {} | {} | {:.4g} | {:.4g} |\n", name, g.shape, enum_name(g.role), g.init,
                        g.decay_factor == 0   ? "no"
                        : g.decay_factor == 1 ? "yes"
                                              : fmt::format("x {:.4g}", g.decay_factor),
                        g.lr_factor, g.eps_factor);
  }
  return rows;
}

// Returns whether calibrate() changes a parameter.
bool looks_at_data(nn::Stack& stack) {
  std::vector<std::vector<double>> before, after;
  for (const nn::Parameter& p : stack.parameters()) before.push_back(p.value.values());
  nn::calibrate(stack, random_normal({2, 3, dim}, 0, "x"));
  for (const nn::Parameter& p : stack.parameters()) after.push_back(p.value.values());
  return before != after;
}

std::string page(const fs::path& root, const nn::Method& m) {
  nn::Stack stack({.dim = dim,
                   .depth = depth,
                   .method = m,
                   .junctions = nn::transformer_block({.heads = heads}, {.hidden = 4 * dim}),
                   .final_norm = true});
  nn::initialize(stack, 0);
  const nn::Stack plain({.dim = dim,
                         .depth = depth,
                         .method = "pre",
                         .junctions = nn::transformer_block({.heads = heads}, {.hidden = 4 * dim}),
                         .final_norm = true});
  const fs::path source = source_of(root, m.name);
  std::vector<std::string> claims;
  for (const nn::InitProperty c : m.claims) claims.emplace_back(enum_name(c));
  const auto posts =
      std::ranges::count_if(stack.blocks(), [](const auto& block) { return block.norm() == nn::Norm::post; });
  const std::string placement = m.norm == nn::Norm::none ? "no norms in blocks; the model keeps its final norm"
                                : posts == depth         ? "after each residual sum (post)"
                                : posts == 0             ? "before each branch (pre)"
                                             : fmt::format("post in {} of {} blocks, then pre", posts, depth);
  std::string text = fmt::format("# {}\n\n`{}`\n\n{}.\n\n", m.name, m.formula, m.source);
  text += fmt::format(
      "```cpp\nnn::ViT model({{.depth = 24, .method = \"{}\"}});  // or depth_stability --gates {}\n{}```\n\n", m.name,
      m.name,
      looks_at_data(stack)
          ? "nn::calibrate(model, images);  // sets the gates from a batch; studies use the first training batch\n"
          : "");
  text += fmt::format("**When to use.** {}\n\n**Pitfalls.** {}\n\n", m.use, m.pitfalls);
  text += "| | |\n| --- | --- |\n";
  text += fmt::format("| norm | {} |\n", placement);
  if (!m.counts.empty()) text += fmt::format("| counts | {} |\n", m.counts);
  text += fmt::format("| at init | {} |\n",
                      claims.empty() ? "no claim"
                                     : fmt::format("{}{}", fmt::join(claims, ", "),
                                                   m.paper.zero_head ? " (with a classifier of initial value 0)" : ""));
  text += fmt::format("| growth of the stream's mean square at init | {} |\n",
                      posts == depth ? "reset to 1 by every norm"
                      : posts > 0    ? fmt::format("reset by post-norms, then {}", enum_name(m.growth))
                                     : enum_name(m.growth));
  const nn::Recipe& r = m.paper;
  text += fmt::format(
      "| its paper's recipe (`--recipe paper`) | {}; {}; {}; {} |\n", description(r.base),
      r.zero_head ? "classifier with initial value 0" : "ordinary classifier",
      r.scalar_rate == 1 ? "one learning rate" : fmt::format("scalars at {:g} times the learning rate", r.scalar_rate),
      r.warmup > 0 ? fmt::format("warm-up of {:.3g} % of the steps", 100 * r.warmup) : "no warm-up");
  text += fmt::format("| source of the recipe | {} |\n", r.source);
  text += fmt::format("| parameters, compared with pre-norm | {:+} in {} blocks of dim {} |\n\n",
                      stack.parameter_count() - plain.parameter_count(), depth, dim);
  if (!m.constants.empty()) {
    text += fmt::format(
        "## Constants\n\nTo choose another value of a constant, use the text form, `--gate {0}` or `--gates {0}`, or "
        "the function in `nn/gates/methods.h`. Lists and reports show values other than the standard value, and weight "
        "files store the values.\n\n| constant | standard | values | meaning | another value changes |\n| --- | --- | "
        "--- | --- | --- |\n",
        m.text());
    for (const nn::MethodConstant& c : m.constants)
      text += fmt::format("| `{}` | {} | {} | {} | {} |\n", c.name,
                          c.standard ? fmt::format("{}", *c.standard) : "by depth", c.expected(), c.meaning,
                          c.affects == nn::Affects::function     ? "the function of the network"
                          : c.affects == nn::Affects::parameters ? "the set of parameters"
                                                                 : "only the initial values");
    text += "\n";
  }
  text += fmt::format(
      "## Parameters and their initial values\n\nThe table lists the parameters of one block and of the final `norm`, "
      "in a network of dim {}, {} heads and {} blocks with ViT's initial weights and the learning-rate factors of the "
      "method's paper. Biases of linear layers have the initial value 0 and are not listed.\n\n",
      dim, heads, depth);
  text +=
      "| parameter | shape | role | init | decays | rate x | eps x |\n| --- | --- | --- | --- | --- | ---: | ---: |\n";
  text += parameter_rows(stack);
  text += fmt::format("\n## The method and its paper\n\nFrom [{}](../../{}):\n\n```text\n{}```\n", source.string(),
                      source.string(), opening_comment(text_of(root / source)));
  return text;
}

std::string index() {
  std::string text =
      "# Residual methods\n\n`gate_pages` writes one page for each method, from the declarations in the code. "
      "[Results](../results.md) has what our trials say about the methods.\n\nThe text form "
      "of a method also sets the values of its constants: `--gates "
      "layerscale,layerscale:init=1e-5,mix_ln:post_share=0.75`, or `{.method = \"mix_ln:post_share=0.75\"}` in "
      "code.\n\nTo write a custom gate: [own_gates.md](../own_gates.md) lists the functions to override.\n\n| method | "
      "formula | source | claims at init |\n| --- | --- | --- | --- |\n";
  for (const std::string& name : nn::method_names()) {
    const nn::Method& m = nn::method_named(name);
    std::vector<std::string> claims;
    for (const nn::InitProperty c : m.claims) claims.emplace_back(enum_name(c));
    text += fmt::format("| [{}]({}.md) | `{}` | {} | {} |\n", name, name, m.formula, m.source, fmt::join(claims, ", "));
  }
  return text;
}

// Returns the page with its prose wrapped at 120 columns. Tables, headings and code blocks do not change.
std::string wrapped(const std::string& page) {
  constexpr std::size_t width = 120;
  std::string result;
  bool in_code = false;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) in_code = !in_code;
    if (in_code || line.starts_with("|") || line.starts_with("#")) {
      result += line + "\n";
      continue;
    }
    for (std::size_t end; line.size() > width && (end = line.rfind(' ', width)) != std::string::npos && end > 0;) {
      result += line.substr(0, end) + "\n";
      line.erase(0, end + 1);
    }
    result += line + "\n";
  }
  return result;
}

int run(const fs::path& root, bool check_only) {
  std::map<std::string, std::string> pages{{"README.md", wrapped(index())}};
  for (const std::string& name : nn::method_names()) pages[name + ".md"] = wrapped(page(root, nn::method_named(name)));
  const fs::path folder = root / "docs/gates";
  if (!check_only) fs::create_directories(folder);
  int different = 0;
  for (const auto& [file, text] : pages) {
    if (!check_only)
      write_file_atomically(folder / file, text);
    else if (!fs::exists(folder / file) || text_of(folder / file) != text) {
      fmt::print(stderr, "docs/gates/{} differs from the declarations in the code\n", file);
      ++different;
    }
  }
  for (const auto& entry : fs::directory_iterator(folder))
    if (!pages.contains(entry.path().filename().string())) {
      fmt::print(stderr, "docs/gates/{} belongs to no method; delete it\n", entry.path().filename().string());
      ++different;
    }
  for (const auto& [file, text] : pages)
    for (std::size_t at = 0; (at = text.find("](", at)) != std::string::npos; ++at) {
      const std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
      if (target.starts_with("http") || fs::exists(folder / target)) continue;
      fmt::print(stderr, "docs/gates/{} links to {}, which does not exist\n", file, target);
      ++different;
    }
  if (different > 0) fmt::print(stderr, "to update the pages, run: build/release/bin/gate_pages .\n");
  return different > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lab::exit_status([&] {
    if (argc == 2 && argv[1][0] != '-') return run(argv[1], false);
    if (argc == 3 && std::string(argv[2]) == "--check") return run(argv[1], true);
    throw UsageError("usage: gate_pages SOURCE_DIR [--check]");
  });
}
