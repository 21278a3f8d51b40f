// Trains one model: the loop that ablations share.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "experiments/common/data/loader.h"
#include "experiments/common/passport.h"
#include "nn/models/classifier.h"
#include "nn/optim/optimizer.h"

namespace plumb::lab {

struct TrainSettings {
  std::int64_t steps = 200, warmup = 0, batch = 64;
  double lr = 1e-3;                                      // peak
  std::string optimizer = "adamw", schedule = "cosine";  // names of experiments/common/optimization.h
  double weight_decay = 0.05, clip_norm = 0;
  double ema_decay = 0;    // above 0: the evaluation has the moving average of the weights, with nn::Ema's warm-up of this decay
  std::uint64_t seed = 0;  // of the batches' order and of dropping; the model has its own
  Augmentation augment = {};
};

// One step as it happened; a passport only at steps that were asked for.
struct StepRecord {
  std::int64_t step;  // counted from 0
  double loss, lr, grad_norm;
  std::optional<Passport> passport;
  std::string divergence;  // why the run ends here, with the first op that made a non-finite number; empty while it goes on
};

struct TrainObserver {
  std::function<void(const StepRecord&)> on_step = {};
  std::function<bool(std::int64_t step)> wants_passport = {};
  std::function<bool()> stop = {};  // asked before each step; true abandons the run
};

struct TrainOutcome {
  bool stopped = false;                     // abandoned; nothing below is complete
  std::optional<std::int64_t> diverged_at;  // step
  std::string divergence;
  std::int64_t steps = 0;            // taken
  std::optional<double> train_loss;  // mean over the last 20 steps; absent when diverged
  std::optional<double> val_loss, val_accuracy;
  double seconds = 0, images_per_second = 0;  // of the training steps
};

// When a training has diverged: the loss or the gradient's norm is not finite, or the loss has been above ten times ln(classes) for 20
// steps in a row.
class DivergenceWatch {
 public:
  explicit DivergenceWatch(std::int64_t classes);

  // Of each step in turn, before its update.
  bool diverged(const Gradients& step);
  // Why, once it has. `loss` computes that step's again, within its random scope: every op is then checked, and the first one that makes a
  // non-finite number is named.
  std::string reason(const std::function<Tensor()>& loss) const;

 private:
  std::int64_t classes_, above_ = 0;
  bool finite_ = true;
};

// Minimises the cross-entropy. Afterwards the model has its weights, whether they were evaluated or their average. A run that has diverged
// (DivergenceWatch) ends without another update, and that is a result.
TrainOutcome train(nn::Classifier& model, const ImageData& data, const Normalization& normalization, const TrainSettings& settings,
                   const TrainObserver& observer);

// Mean cross-entropy and accuracy in [0, 1] over a set, of a model that maps images [B, C, H, W] to logits [B, classes]. Nothing is recorded.
struct Evaluation {
  double loss, accuracy;
};
// A layer is in evaluation mode meanwhile; afterwards it and everything below have the modes that they had, whatever was thrown.
Evaluation evaluate(nn::Layer& model, const ImageSet& set, const Normalization& normalization, std::int64_t batch = 256);
// Any other function is called as it is: several layers, an ensemble, images turned over before.
Evaluation evaluate(const std::function<Tensor(const Tensor& images)>& model, const ImageSet& set, const Normalization& normalization,
                    std::int64_t batch = 256);

// A batch of the loader as tensors of the default dtype and device: images [B, C, H, W], labels [B].
struct Batch {
  Tensor images, labels;
};
Batch to_tensors(const HostBatch& batch, const ImageSet& set);

}  // namespace plumb::lab
