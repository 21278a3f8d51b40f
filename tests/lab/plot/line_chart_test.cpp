#include "experiments/lab/plot/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/lab/plot/text.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"
#include "tests/support/text.h"

using namespace plumb::lab;
using namespace plumb::test;

namespace {

Plot a_plot() {
  Plot plot{.id = "p", .title = "depth 6", .x = {.title = "step"}, .y = {.title = "loss"}};
  plot.series.push_back({.name = "pre", .style = 1, .points = {{0, 2.3}, {10, 1.5, 1.2, 1.8}, {20, 1.0, 0.9, 1.1}}});
  return plot;
}

// The d attribute of the line of series `index`. Lines are the <path> elements without fill and with stroke-linejoin.
std::string line_of(const std::string& svg, std::size_t index = 0) {
  std::size_t end = svg.find(" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.8\" stroke-linejoin");
  for (; index > 0; --index)
    end = svg.find(" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.8\" stroke-linejoin", end + 1);
  const std::size_t begin = svg.rfind("d=\"", end) + 3;
  return svg.substr(begin, end - 1 - begin);
}

}  // namespace

TEST_CASE("Linear ticks are multiples of 1 or 2 or 5 inside the range") {
  CHECK(linear_ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(linear_ticks(0, 200, 5) == std::vector<double>{0, 50, 100, 150, 200});
  CHECK(linear_ticks(-0.11, 0.21, 3) == std::vector<double>{0, 0.2});
  const std::vector<double> fine = linear_ticks(2.301, 2.309, 5);
  CHECK(fine.size() >= 4);
  CHECK(fine.front() >= 2.301);
  CHECK(fine.back() <= 2.309);
  CHECK(linear_ticks(3, 3, 5) == std::vector<double>{3});
}

TEST_CASE("Log ticks are powers of ten with finer ticks for a short range") {
  CHECK(log_ticks(1e-4, 1) == std::vector<double>{1e-4, 1e-3, 1e-2, 1e-1, 1});
  CHECK(log_ticks(0.9, 11) == std::vector<double>{1, 2, 5, 10});
  CHECK(log_ticks(1e-30, 1).size() <= 8);
  CHECK(log_ticks(0.31, 0.44).size() >= 2);
}

TEST_CASE("Tick labels have the same number of decimals and stay short") {
  using Labels = std::vector<std::string>;
  CHECK(tick_labels({0, 0.5, 1}, false) == Labels{"0.0", "0.5", "1.0"});
  CHECK(tick_labels({0, 50, 100}, false) == Labels{"0", "50", "100"});
  CHECK(tick_labels({2.302, 2.304, 2.306}, false) == Labels{"2.302", "2.304", "2.306"});
  CHECK(tick_labels({0, 10000, 120000}, false) == Labels{"0", "10,000", "120,000"});
  CHECK(tick_labels({0.01, 0.1, 1, 10}, true) == Labels{"0.01", "0.1", "1", "10"});
  CHECK(tick_labels({1e-6, 2e-5, 1}, true) == Labels{"10⁻⁶", "2×10⁻⁵", "1"});
  CHECK(tick_labels({0, 2e-7, 4e-7}, false) == Labels{"0", "2×10⁻⁷", "4×10⁻⁷"});
}

TEST_CASE("Text in Markdown adds no elements and no targets of links") {
  CHECK(escape_markdown("<img src=x> ![p](http://x) [a][b] [a]: x </b> <!-- <?") ==
        "\\<img src=x> ![p\\](http://x) [a\\][b] [a\\]: x \\</b> \\<!-- \\<?");
  CHECK(escape_markdown("a < b, 1 <= 2 [steps] (all) | **agree** <") == "a < b, 1 <= 2 [steps] (all) | **agree** <");
}

TEST_CASE("Short numbers have four significant digits") {
  CHECK(short_number(0) == "0");
  CHECK(short_number(2.302585) == "2.303");
  CHECK(short_number(-0.5) == "-0.5");
  CHECK(short_number(9999.7) == "10,000");
  CHECK(short_number(123456) == "123,456");
  CHECK(short_number(1.234567e-7) == "1.235×10⁻⁷");
  CHECK(short_number(9.99996e-5) == "10⁻⁴");
  CHECK(short_number(not_a_number) == "not finite");
  CHECK(rounded_to(0.00123456, 3) == 0.00123);
  CHECK(rounded_to(-98765, 2) == -99000);
  CHECK(rounded_to(1e300, 1) == 1e300);
  CHECK(rounded_to(0, 3) == 0);
}

TEST_CASE("Text is cut between code points and not between bytes") {
  CHECK(letters("±é…a") == 4);
  CHECK(shortened("layerscale", 10) == "layerscale");
  CHECK(shortened("layerscale", 6) == "layer…");
  CHECK(shortened("ééééé", 3) == "éé…");
}

TEST_CASE("Markup is escaped and control characters are dropped") {
  CHECK(escape_markup("<a href=\"x\">&'\x01") == "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
}

TEST_CASE("A plot shows its title and axes and legend and values on hover") {
  const std::string svg = render_svg(a_plot());
  for (const char* text :
       {">depth 6<", ">step<", ">loss<", ">pre<", "viewBox=\"0 0 480 ", "aria-label=\"depth 6: loss against step\"",
        "<title>step 10\npre: 1.5 (95 % interval 1.2 to 1.8)</title>", "<title>step 0\npre: 2.3</title>"})
    CHECK_THAT(svg, contains(text));
  CHECK(count(line_of(svg), "L") == 2);
  CHECK(count(svg, "fill-opacity") == 1);
}

TEST_CASE("The hover text lists the series from high to low") {
  Plot plot = a_plot();
  plot.series.push_back({.name = "post", .style = 0, .points = {{10, 2.0}}});
  CHECK_THAT(render_svg(plot), contains("<title>step 10\npost: 2\npre: 1.5"));
}

TEST_CASE("Points that are not finite break the line and are not written") {
  Plot plot = a_plot();
  plot.series[0].points = {
      {0, 1},        {1, 2},        {2, not_a_number}, {3, 2, not_a_number, infinity}, {4, 1, -infinity, 3},
      {5, infinity}, {infinity, 1}, {not_a_number, 1}};
  plot.rules = {{not_a_number, "nowhere"}};
  plot.marks = {{.x = not_a_number, .title = "x"}, {.x = 2, .y = not_a_number, .title = "y"}};
  for (bool log : {false, true}) {
    plot.y.log = log;
    const std::string svg = render_svg(plot);
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("inf\"") == std::string::npos);
    CHECK(svg.find("inf ") == std::string::npos);
    CHECK(count(line_of(svg), "M") == 2);
    CHECK(count(line_of(svg), "L") == 2);
  }
}

TEST_CASE("A zero breaks the line on a log axis") {
  Plot plot = a_plot();
  plot.y.log = true;
  plot.series[0].points = {{0, 1}, {1, 0}, {2, 0.1}, {3, 0.01}};
  CHECK(count(line_of(render_svg(plot)), "M") == 2);
}

TEST_CASE("A tick at zero is left out on a log axis") {
  Plot plot = a_plot();
  plot.x = {.title = "depth", .log = true, .ticks = {0, 10, 20}};
  plot.series[0].points = {{0, 1}, {10, 1}, {20, 2}};
  CHECK(render_svg(plot).find("inf") == std::string::npos);
}

TEST_CASE("A plot without points shows the text no data") {
  Plot plot = a_plot();
  plot.series[0].points = {{0, not_a_number}};
  CHECK_THAT(render_svg(plot), contains(">no data<"));
  plot.series.clear();
  CHECK_THAT(render_svg(plot), contains(">no data<"));
  CHECK(render_svg(a_plot()).find("no data") == std::string::npos);
}

TEST_CASE("A single point and equal values and huge values are drawn inside the frame") {
  for (double y : {0.0, 1.0, -3.0, 1e-300, 1e140}) {
    Plot plot = a_plot();
    plot.series[0].points = {{5, y}};
    const std::string svg = render_svg(plot);
    CHECK(svg.find("nan") == std::string::npos);
    double at_x = 0, at_y = 0;
    REQUIRE(std::sscanf(line_of(svg).c_str(), "M%lf %lf", &at_x, &at_y) == 2);
    CHECK(at_x > 0);
    CHECK(at_x < 480);
    CHECK(at_y > 0);
    CHECK(at_y < 320);
  }
}

TEST_CASE("Forty styles differ in colour or dash pattern or marker") {
  std::set<std::string> swatches;
  for (int first = 0; first < 40; first += 8) {
    Plot plot = a_plot();
    plot.series.clear();
    for (int style = first; style < first + 8; ++style)
      plot.series.push_back({.name = "s", .style = style, .points = {{0, 1}, {1, 2}}});
    const std::string svg = render_svg(plot);
    for (std::size_t i = svg.find("<g transform="); i != std::string::npos; i = svg.find("<g transform=", i + 1)) {
      const std::size_t begin = svg.find("<g style", i);
      swatches.insert(svg.substr(begin, svg.find("</g>", begin) - begin));
    }
  }
  CHECK(swatches.size() == 40);
}

TEST_CASE("A crowded plot has a panel for each series with its interval and marks and all lines in grey") {
  Plot plot = a_plot();
  plot.series[0].style = 0;
  for (int style = 1; style < 8; ++style)
    plot.series.push_back({.name = "s" + std::to_string(style), .style = style, .points = plot.series[0].points});
  CHECK_FALSE(is_crowded(plot));
  CHECK(render_svg(plot).find("<use") == std::string::npos);
  plot.series.push_back({.name = "s8", .style = 8, .points = plot.series[0].points});
  plot.series.push_back({.name = "s8", .style = 8, .points = plot.series[0].points, .thin = true});
  plot.marks = {{.x = 10, .style = 3, .title = "s3 ended", .of = "s3"},
                {.x = 20, .style = 9, .title = "s9 never began", .of = "s9"}};
  CHECK(is_crowded(plot));
  const std::string svg = render_svg(plot);
  CHECK(count(svg, "<use") == 10);
  for (const char* name : {"pre", "s1", "s8", "s9"}) CHECK(count(svg, fmt::format("data-of=\"{}\"", name)) == 1);
  CHECK(count(svg, "fill-opacity") == 9 + 1);
  CHECK_THAT(
      svg, contains("95 % interval 0.9 to 1.1") && contains("s3 ended</title>") && contains("s9 never began</title>"));
  const std::size_t behind = svg.find("opacity=\"0.28\"");
  REQUIRE(behind != std::string::npos);
  CHECK(count(svg.substr(behind, svg.find("</g>", behind) - behind), "<path") == 9);  // the thin line is left out
  for (PlotSeries& s : plot.series) s.points = {{0, not_a_number}};
  plot.marks.clear();
  CHECK_THAT(render_svg(plot), contains(">no data<"));
}

TEST_CASE("The legend is wrapped and every entry is inside the plot") {
  Plot plot = a_plot();
  plot.series.clear();
  for (int i = 0; i < 8; ++i)
    plot.series.push_back({.name = "method_number_" + std::to_string(i), .style = i, .points = {{0, 1.0 * i}, {1, 2}}});
  const std::string svg = render_svg(plot);
  CHECK(count(svg, "<g transform=") == 8);
  for (std::size_t i = svg.find("<g transform=\"translate("); i != std::string::npos;
       i = svg.find("<g transform=\"translate(", i + 1)) {
    double x = 0, y = 0, height = 0;
    REQUIRE(std::sscanf(svg.c_str() + i, "<g transform=\"translate(%lf %lf)", &x, &y) == 2);
    REQUIRE(std::sscanf(svg.c_str() + svg.find("viewBox"), "viewBox=\"0 0 480 %lf", &height) == 1);
    CHECK(x + 20 + 7 * 16 <= 480);
    CHECK(y < height);
  }
}

TEST_CASE("Series with the same name and style share a legend entry") {
  Plot plot = a_plot();
  plot.series.push_back(plot.series[0]);
  plot.series.back().thin = true;
  CHECK(count(render_svg(plot), ">pre<") == 1);
}

TEST_CASE("Values outside fixed ends do not change the axis") {
  Plot plot = a_plot();
  plot.y.low = 0;
  plot.y.high = 4;
  const std::string before = line_of(render_svg(plot));
  plot.series.push_back({.name = "exploding", .style = 0, .points = {{0, 1}, {20, 1e9}}});
  CHECK(line_of(render_svg(plot)) == before);
}

TEST_CASE("A wide interval does not compress the values") {
  Plot plot = a_plot();
  plot.series[0].points = {{0, 1}, {1, 2, -500, 500}};
  double x = 0, y0 = 0, y1 = 0;
  REQUIRE(std::sscanf(line_of(render_svg(plot)).c_str(), "M%lf %lfL%lf %lf", &x, &y0, &x, &y1) == 4);
  CHECK(y0 - y1 > 80);
}

TEST_CASE("Error bars are shifted so that they do not overlap") {
  Plot plot = a_plot();
  plot.interval = PlotInterval::bars;
  plot.series.push_back({.name = "post", .style = 0, .points = plot.series[0].points});
  const std::string svg = render_svg(plot);
  CHECK(line_of(svg, 0) != line_of(svg, 1));
  plot.interval = PlotInterval::band;
  CHECK(line_of(render_svg(plot), 0) == line_of(render_svg(plot), 1));
}

TEST_CASE("Names are escaped and ids begin with the id of the plot") {
  Plot plot = a_plot();
  plot.title = "<script>";
  plot.series[0].name = "a<b>&\"c\"";
  plot.marks = {{.x = 1, .y = 1, .title = "died <here>"}};
  const std::string svg = render_svg(plot);
  CHECK(svg.find("<script>") == std::string::npos);
  CHECK(svg.find("a<b>") == std::string::npos);
  CHECK_THAT(svg, contains("a&lt;b&gt;&amp;&quot;c&quot;"));
  CHECK_THAT(svg, contains("died &lt;here&gt;"));
  CHECK_THAT(svg, contains("id=\"p-frame\""));
  CHECK(count(svg, " id=\"") == 1);
}

TEST_CASE("Colours have a light and a dark value") {
  const std::string css = plot_css();
  CHECK(count(css, "--series-0:") == 2);
  CHECK(count(css, "--series-7:") == 2);
  CHECK_THAT(css, contains("prefers-color-scheme:dark"));
}
