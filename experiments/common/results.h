// What a study leaves behind as numbers: results.csv (one row an arm), metrics.jsonl (one object a logged step) and layers.csv (one
// row a block, branch and logged step). Text in, text out; who writes the files is somebody else.
//
// An arm is one training: a gate at a depth, a learning rate and a seed. Finite doubles survive a round trip exactly; a number that is
// not finite is an empty cell in CSV and null in JSON, never NaN.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::lab {

enum class Status { ok, diverged, failed };
std::string_view to_string(Status status);

// How one arm ended. Losses are nats a sample, accuracy is a fraction in [0, 1]; absent where the arm did not get that far.
struct ArmResult {
  std::string gate = {};
  std::int64_t depth = 0;
  double lr = 0;
  std::uint64_t seed = 0;
  Status status = Status::ok;
  std::int64_t steps = 0;  // optimizer steps taken
  std::optional<double> train_loss = {}, val_loss = {}, val_accuracy = {};
  std::optional<std::int64_t> diverged_at = {};  // step
  double seconds = 0, images_per_second = 0;
};

// One logged step of one arm. A measurement that was not finite, or not logged, is NaN.
struct LossPoint {
  std::string gate = {};
  std::int64_t depth = 0;
  double lr = 0;  // the arm's peak rate, as in ArmResult
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();
  double lr_now = std::numeric_limits<double>::quiet_NaN();  // what the schedule gave at this step
  double grad_norm = std::numeric_limits<double>::quiet_NaN();
  std::string divergence = {};  // at the step that ended the arm: why
};

// One residual branch of one block at one logged step of one arm; a norm is NaN where it was not finite. The gate's two numbers are
// absent for a gate without factors.
struct LayerPoint {
  std::string gate = {};
  std::int64_t depth = 0;
  double lr = 0;
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t block = 0;   // 0 is next to the input
  std::string branch = {};  // "attn" or "mlp"
  double stream_norm = std::numeric_limits<double>::quiet_NaN();
  double branch_norm = std::numeric_limits<double>::quiet_NaN();  // of what is added to the stream
  double ratio = std::numeric_limits<double>::quiet_NaN();        // branch_norm / stream_norm
  std::optional<double> gate_mean = {}, gate_max = {};            // mean and largest magnitude of the gate's factors
  double grad_norm = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> drop_ratio = {}, empty_rows = {};    // shares of keys that DropKey dropped, and of queries that lost all; absent without it
  double change = std::numeric_limits<double>::quiet_NaN();  // how much the whole junction changes the stream: BranchPassport::change
};

// First lines of the two tables, without line end.
inline constexpr std::string_view results_header =
    "gate,depth,lr,seed,status,steps,train_loss,val_loss,val_accuracy,diverged_at,seconds,images_per_second";
inline constexpr std::string_view layers_header =
    "gate,depth,lr,seed,step,block,branch,stream_norm,branch_norm,ratio,gate_mean,gate_max,grad_norm,drop_ratio,empty_rows,change";

// One row or object each, ending in '\n'. Text with a comma, a quote or a line end is quoted as RFC 4180 has it.
std::string format_result(const ArmResult& arm);
std::string format_loss(const LossPoint& point);
std::string format_layer(const LayerPoint& point);

// Whole files: the header, then one row each.
std::string format_results(const std::vector<ArmResult>& arms);
std::string format_layers(const std::vector<LayerPoint>& points);

// Whole files back; `file` is the name that errors show. Throw Error with file, line and what was expected unless the text is what the
// functions above write. Lines may end in CR LF, and the last one in nothing. In metrics, unknown fields are passed over and missing
// measurements are NaN, but a line must say which arm and step it belongs to.
std::vector<ArmResult> parse_results(std::string_view text, const std::string& file);
std::vector<LossPoint> parse_losses(std::string_view text, const std::string& file);
std::vector<LayerPoint> parse_layers(std::string_view text, const std::string& file);

}  // namespace plumb::lab
