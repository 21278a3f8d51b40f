// Text in charts and tables: positions and labels of ticks, short numbers, escaped markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb::lab {

// About `count` ticks inside [low, high], in ascending order: multiples of 1, 2 or 5 times a power of ten.
std::vector<double> linear_ticks(double low, double high, int count);

// The ticks inside [low, high] for a log axis, low > 0. The ticks are powers of ten; if the range has less than 2.5
// decades, the ticks also include 2 and 5 times the powers of ten. If this gives fewer than two ticks, the result is
// linear_ticks().
std::vector<double> log_ticks(double low, double high);

// The labels of ticks. All labels have the same number of decimals, with separators between thousands. If plain numbers
// would be long, the labels are multiples of powers of ten.
std::vector<std::string> tick_labels(const std::vector<double>& ticks, bool log);

// A number with four significant digits, for readers; "not finite" for NaN and infinity.
std::string short_number(double value);

// The value with `digits` significant digits, the same in every locale.
double rounded_to(double value, int digits);

// Escapes text for the content or an attribute value of HTML or XML, and removes control characters.
std::string escape_markup(std::string_view text);

// Escapes the beginnings of HTML elements and of the targets of links in a Markdown text, so that a text from elsewhere
// cannot add elements, links and pictures to a page.
std::string escape_markdown(std::string_view text);

// The number of code points of UTF-8 text.
std::size_t letters(std::string_view text);

// The first `most` code points of the text. If the text has more code points, the last of these is replaced by "…".
// `most` must be at least 1.
std::string shortened(std::string_view text, std::size_t most);

}  // namespace plumb::lab
