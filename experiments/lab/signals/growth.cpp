#include "experiments/lab/signals/growth.h"

#include <algorithm>
#include <limits>

namespace plumb::lab {

std::vector<double> predicted_mean_square(nn::Growth law, const std::vector<nn::Norm>& norms, double input,
                                          const std::vector<double>& added) {
  std::vector<double> predicted;
  // About the first block without post-norm: `met` has the mean square of the stream before each of its branches, and
  // `first` is the index of its first branch.
  const std::size_t each = added.size();  // branches of a block
  std::vector<double> met(each);
  std::size_t first = norms.size();
  double stream = input;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const std::size_t which = i % each;
    if (norms[i] == nn::Norm::post) {
      stream = 1;
    } else {
      first = std::min(first, i - which);
      if (i < first + each) met[which] = stream;
      switch (law) {
        case nn::Growth::identity:
          break;
        case nn::Growth::linear:
          stream += added[which];
          break;
        case nn::Growth::harmonic:
          stream += added[which] * static_cast<double>(first / each + 1) / static_cast<double>(i / each + 1);
          break;
        case nn::Growth::geometric:
          stream += added[which] * stream / met[which];
          break;
        case nn::Growth::unstated:
          stream = std::numeric_limits<double>::quiet_NaN();
          break;
      }
    }
    predicted.push_back(stream);
  }
  return predicted;
}

}  // namespace plumb::lab
