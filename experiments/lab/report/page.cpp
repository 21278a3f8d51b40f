#include "experiments/lab/report/page.h"

#include <fmt/format.h>

#include "experiments/lab/plot/text.h"
#include "experiments/lab/report/assets.h"

namespace plumb::lab {

std::string page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{0}</title>\n"
      "<style>\n{1}{2}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{3}<script>\n{4}</script>\n</body>\n</html>\n",
      escape_markup(title), page_css(), plot_css(), body, page_js());
}

std::string facts(const NamedTexts& texts, const char* extra) {
  std::string html = fmt::format(R"(<dl class="facts{}">)", extra);
  for (const auto& [name, value] : texts)
    html += fmt::format("<div{}><dt>{}</dt><dd>{}</dd></div>", letters(value) > 60 ? " class=\"long\"" : "",
                        escape_markup(name), escape_markup(value));
  return html + "</dl>\n";
}

std::string section(const std::string& title, const std::string& caption, const std::string& body) {
  return fmt::format("<section>\n<h2>{}</h2>\n<p class=\"caption\">{}</p>\n{}</section>\n", title, caption, body);
}

std::string grid(const std::vector<std::string>& svgs) {
  std::string html = "<div class=\"plots\">\n";
  for (const std::string& svg : svgs) html += svg + "\n";
  return html + "</div>\n";
}

std::string filter(const std::string& what, std::size_t count) {
  constexpr std::size_t few = 6;  // number of names up to which a filter is not needed
  if (count <= few) return "";
  return fmt::format(
      "<p id=\"filter\" hidden><label>Show only <input type=\"search\" placeholder=\"parts of names\" "
      "size=\"24\"></label> "
      "<span class=\"caption\">of {}, by {}</span></p>\n",
      count, escape_markup(what));
}

std::string scroll_region(const std::string& label, const std::string& table) {
  return fmt::format("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">{}</div>\n",
                     escape_markup(label), table);
}

}  // namespace plumb::lab
