// Text in charts and tables: positions and labels of ticks, short numbers, escaped markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb::lab {

// Ascending multiples of 1, 2 or 5 times a power of ten inside [low, high], about `count` of them.
std::vector<double> linear_ticks(double low, double high, int count);

// Ticks inside [low, high] for a log axis, low > 0: powers of ten, and also their multiples by 2 and 5 if the range has
// less than 2.5 decades. If these are fewer than two, the result is linear_ticks().
std::vector<double> log_ticks(double low, double high);

// The labels of ticks, with a common number of decimals and separated thousands. If plain numbers would be long, the
// labels are multiples of powers of ten.
std::vector<std::string> tick_labels(const std::vector<double>& ticks, bool log);

// A number with four significant digits, for people; "not finite" for NaN and infinity.
std::string short_number(double value);

// Escapes text for the content or an attribute value of HTML or XML. Drops control characters.
std::string escape_markup(std::string_view text);

// The number of code points of UTF-8 text.
std::size_t letters(std::string_view text);

// The text if it has at most `most` >= 1 code points. Otherwise its first most - 1 code points and "…".
std::string shortened(std::string_view text, std::size_t most);

}  // namespace plumb::lab
