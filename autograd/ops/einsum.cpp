// einsum() of two operands as one matmul. There are four kinds of letters: batch letters are in a, b and the result;
// contracted letters are in a and b only; kept letters are in one operand and the result; all other letters are in one
// operand only and are summed over first.
#include <algorithm>
#include <cctype>
#include <map>

#include "autograd/node.h"
#include "autograd/ops.h"

namespace plumb {
namespace {

struct Letters {
  std::string a, b, result;
};

// Parses "bhid,bhjd->bhij". Without "->", the result has the letters that occur once, in alphabetical order.
Letters parsed(std::string_view text) {
  std::string letters;
  std::ranges::copy_if(text, std::back_inserter(letters), [](char c) { return c != ' '; });
  const std::size_t arrow = letters.find("->"), comma = letters.find(',');
  const std::string operands = letters.substr(0, arrow);
  check(comma != operands.npos && operands.find(',', comma + 1) == operands.npos,
        "[einsum] expected the letters of two operands, as in \"ij,jk->ik\", got \"{}\"", text);
  Letters l{operands.substr(0, comma), operands.substr(comma + 1), ""};
  if (arrow == letters.npos) {
    for (char c = 'A'; c <= 'z'; ++c)
      if (std::ranges::count(l.a + l.b, c) == 1) l.result += c;
  } else {
    l.result = letters.substr(arrow + 2);
  }
  for (const std::string* part : {&l.a, &l.b, &l.result})
    for (const char c : *part) {
      check(std::isalpha(static_cast<unsigned char>(c)) != 0,
            "[einsum] expected only letters, one for each axis, got '{}' in \"{}\"{}", c, text,
            c == '.' ? ": name the axes that ... stands for" : "");
      check(std::ranges::count(*part, c) == 1,
            "[einsum] expected each letter once in an operand and in the result, got '{}' twice in \"{}\"", c, text);
    }
  for (const char c : l.result)
    check((l.a + l.b).find(c) != std::string::npos,
          "[einsum] expected only letters of an operand in the result, got '{}' in \"{}\"", c, text);
  return l;
}

// Returns the letters for which wanted(letter) holds.
std::string those_of(const std::string& letters, const std::function<bool(char)>& wanted) {
  std::string some;
  std::ranges::copy_if(letters, std::back_inserter(some), wanted);
  return some;
}

// Permutes the axes of x, named by the letters `from`, into the order of `to`.
Tensor arranged(const Tensor& x, const std::string& from, const std::string& to) {
  if (from == to) return x;
  Axes axes;
  for (const char c : to) axes.push_back(static_cast<int>(from.find(c)));
  return permute(x, axes);
}

// An operand of matmul, and whether its last two axes are transposed.
struct Operand {
  Tensor x;
  bool transposed;
};

}  // namespace

Tensor einsum(std::string_view letters, const Tensor& a, const Tensor& b) {
  detail::check_operands("einsum", a, b);
  const Letters l = parsed(letters);
  std::map<char, std::int64_t> extent;
  for (const auto& [x, axes] : {std::pair(&a, &l.a), std::pair(&b, &l.b)}) {
    check(x->shape().rank() == static_cast<int>(axes->size()),
          "[einsum] expected a letter for each axis in \"{}\", got {} for {}", letters, *axes, x->shape());
    for (std::size_t i = 0; i < axes->size(); ++i) {
      const std::int64_t n = x->dim(static_cast<int>(i)), known = extent.emplace((*axes)[i], n).first->second;
      check(n == known, "[einsum] expected one extent for '{}' in \"{}\", got {} and {} for {} and {}", (*axes)[i],
            letters, known, n, a.shape(), b.shape());
    }
  }
  const auto in = [](const std::string& some) { return [&some](char c) { return some.find(c) != std::string::npos; }; };
  const auto in_a = in(l.a), in_b = in(l.b), in_result = in(l.result);
  const std::string batch = those_of(l.result, [&](char c) { return in_a(c) && in_b(c); }),
                    rows = those_of(l.result, [&](char c) { return !in_b(c); }),
                    columns = those_of(l.result, [&](char c) { return !in_a(c); }),
                    inner = those_of(l.a, [&](char c) { return in_b(c) && !in_result(c); });
  const auto count = [&](const std::string& some) {
    std::int64_t n = 1;
    for (const char c : some) n *= extent[c];
    return n;
  };
  // Reshapes an operand to [batch, first, second]. If its axes are already grouped, in this order or with `first` and
  // `second` swapped, nothing is permuted.
  const auto operand = [&](const Tensor& x, const std::string& axes, const auto& in_other, const std::string& first,
                           const std::string& second) {
    Axes alone;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (!in_other(axes[i]) && !in_result(axes[i])) alone.push_back(static_cast<int>(i));
    const std::string rest = those_of(axes, [&](char c) { return in_other(c) || in_result(c); });
    const Tensor y = alone.empty() ? x : sum(x, alone);
    const bool transposed = rest == batch + second + first && rest != batch + first + second;
    const Tensor z = transposed ? y : arranged(y, rest, batch + first + second);
    return Operand{
        reshape(z, Shape{count(batch), count(transposed ? second : first), count(transposed ? first : second)}),
        transposed};
  };
  const Operand left = operand(a, l.a, in_b, rows, inner), right = operand(b, l.b, in_a, inner, columns);
  const std::string order = batch + rows + columns;
  std::vector<std::int64_t> dims;
  for (const char c : order) dims.push_back(extent[c]);
  return arranged(reshape(matmul(left.x, right.x, left.transposed, right.transposed), Shape(dims, "einsum")), order,
                  l.result);
}

}  // namespace plumb
