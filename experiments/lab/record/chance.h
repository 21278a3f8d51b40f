// The loss of a guess that knows nothing about the samples, and the comparison of training losses with it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace plumb::lab {

// The chance level of a training loss: the loss of the best constant guess, which does not look at the sample. A loss
// near this level says that a network has learned nothing. Smoothed and mixed labels do not change the level of
// classification, but they raise the lowest possible loss (clean_loss).
struct Chance {
  double loss = std::numeric_limits<double>::infinity();  // infinity: undefined, so that no loss is near chance
  std::string text = {};                                  // for reports, such as "ln 28 = 3.332"
  bool known() const { return loss < std::numeric_limits<double>::infinity(); }
};

// The chance level of the cross-entropy for this number of classes: ln(classes). Undefined for fewer than two classes.
Chance chance_of_classes(std::int64_t classes);

// The loss to compare with shares of `chance`. Smoothed and mixed labels are soft targets: no training loss can fall
// below their entropy (Task::target_entropy, the value "target_entropy" of a trial), and a perfect network reaches it.
// Therefore `loss` - entropy is compared with `chance` - entropy. The result is that difference on the scale of hard
// labels, (loss - entropy) * chance / (chance - entropy), so that the result and `loss` agree at chance. It is `loss`
// if the entropy is 0, loss - entropy if chance is infinite (unknown), and infinity if the entropy is not below chance.
double clean_loss(double loss, double target_entropy, double chance);

// The name of the value of a trial that holds the mean entropy of its targets; a trial without the value has 0.
inline constexpr const char* target_entropy_name = "target_entropy";

}  // namespace plumb::lab
