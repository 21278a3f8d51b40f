// Shows a page in a headless browser, at the width of a phone or of a desktop.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "experiments/lab/plot/text.h"
#include "tests/support/temporary_folder.h"

namespace plumb::test {

// The command that starts Chromium. Empty if the system has no Chromium.
inline std::optional<std::string> browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (std::system(fmt::format("command -v {} >/dev/null 2>&1", name).c_str()) == 0) return name;
  return std::nullopt;
}

struct Look {
  std::string console;   // console output of the page, including script errors
  nlohmann::json found;  // the value that `script` returned
};

// Shows the page in a frame of `width` pixels. `script` is the body of a function whose arguments are `window` and
// `document`.
inline Look look_at(const std::string& html, int width, bool dark, const std::string& script) {
  const TemporaryFolder folder;
  const std::filesystem::path page = folder.path() / "page.html", out = folder.path() / "out",
                              err = folder.path() / "err";
  // The frame is a separate document, because a browser window cannot be as narrow as a phone.
  std::ofstream(page)
      << "<!doctype html><meta charset=\"utf-8\"><iframe id=\"frame\" style=\"border:0;height:3000px;width:" << width
      << "px\" srcdoc=\"" << lab::escape_markup(html)
      << "\"></iframe><script>addEventListener('load', () => {\n"
         "const frame = document.getElementById('frame');\n"
         "const look = (window, document) => {"
      << script
      << "};\nlet found; try { found = look(frame.contentWindow, frame.contentDocument); } catch (e) { "
         "console.error(e); }\n"
         "frame.remove(); document.body.innerHTML = '<pre id=\"found\"></pre>';"
         "document.getElementById('found').textContent = 'FOUND' + JSON.stringify(found) + 'DNUOF'; });</script>";
  const std::string command = fmt::format(
      "HOME='{0}' timeout 120 {1} --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
      "--user-data-dir='{0}/profile' "
      "--enable-logging=stderr --window-size=1600,3000 --blink-settings=preferredColorScheme={2} "
      "--virtual-time-budget=8000 --dump-dom "
      "'file://{3}' >'{4}' 2>'{5}' </dev/null",
      folder.path().string(), *browser(), dark ? 0 : 1, page.string(), out.string(), err.string());
  const int raw = std::system(command.c_str());
  const auto text_of = [](const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  };
  const std::string dom = text_of(out);
  Look look;
  std::istringstream lines(text_of(err));
  for (std::string line; std::getline(lines, line);)
    if (line.find("CONSOLE") != std::string::npos) look.console += line + "\n";
  const std::size_t begin = dom.rfind("FOUND"), end = dom.rfind("DNUOF");
  if (!WIFEXITED(raw) || WEXITSTATUS(raw) != 0 || begin == std::string::npos || end == std::string::npos || end < begin)
    throw std::runtime_error(fmt::format("{} did not show the page (status {}): {}", *browser(), raw, text_of(err)));
  std::string text = dom.substr(begin + 5, end - begin - 5);
  for (const auto& [entity, plain] : {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&amp;", "&"}})
    for (std::size_t at = text.find(entity); at != std::string::npos; at = text.find(entity, at + 1))
      text.replace(at, std::string(entity).size(), plain);
  look.found = nlohmann::json::parse(text);
  return look;
}

}  // namespace plumb::test
