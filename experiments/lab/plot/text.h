// What a chart or a table writes: places and names of ticks, numbers for a person, text that is safe in markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb::lab {

// Ascending multiples of 1, 2 or 5 times a power of ten inside [low, high], about `count` of them.
std::vector<double> linear_ticks(double low, double high, int count);

// Ticks inside [low, high], low > 0: powers of ten, with 2 and 5 times these over less than three decades, and linear
// ones where even those would be fewer than two.
std::vector<double> log_ticks(double low, double high);

// How an axis names its ticks: a common number of decimals, thousands apart, and powers of ten where plain numbers
// would be long.
std::vector<std::string> tick_labels(const std::vector<double>& ticks, bool log);

// A number for a person: four significant digits.
std::string short_number(double value);

// Text as HTML or XML content or attribute value.
std::string escape_markup(std::string_view text);

// How many letters UTF-8 text has.
std::size_t letters(std::string_view text);

// At most `most` >= 1 letters of UTF-8 text, ending in … where it was cut.
std::string shortened(std::string_view text, std::size_t most);

}  // namespace plumb::lab
