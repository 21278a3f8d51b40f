// Models from files of weights: what a file says of its model, and how its weights become those of a model of another
// image size or other classes.
//
//   const nn::TensorFile file = nn::read_safetensors("cait_xxs24.safetensors");
//   const nn::ModelCard card = nn::card_of(file, "cait_xxs24.safetensors");
//   const auto model = nn::make_model(card);
//   nn::load_pretrained(*model, file, "cait_xxs24.safetensors");
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nn/io/safetensors.h"
#include "nn/models/cait.h"
#include "nn/models/vit.h"

namespace plumb::nn {

// What a model is beside its weights: enough to make it again.
struct ModelCard {
  std::variant<ViTOptions, CaiTOptions> options;
  std::vector<double> mean = {},
                      std = {};  // of the pixels that it was trained on, scaled to 0..1, by channel; empty: not said
  std::vector<std::string> class_names = {};  // empty: not said

  std::int64_t image() const;
  std::int64_t patch() const;
  std::int64_t channels() const;
  std::int64_t classes() const;
};

// Of a model: a ViT or a CaiT; nothing of any other.
std::optional<ModelCard> card_of(const Module& model);
// A JSON object of what the card says, for logs and records; the model need not be one that can be made again from it.
std::string json_of(const ModelCard& card);
// The card as metadata of a file of its weights. It holds everything that decides what the network computes: sizes, the
// method with each of its constants, norm eps, pooling, where the class token joins, form of attention and GELU,
// stochastic depth where that acts in evaluation. If the network cannot be made again from the card, it throws: a
// method that the table does not have, one that was changed by hand, an attention of one's own. To detect these, the
// metadata is read back, and both networks are compared, at the same depth and a width of 4 a head, in f64: from the
// same weights they must give the same logits, bit for bit, and finite ones. A difference at other widths alone, or in
// training alone, is not detected.
std::map<std::string, std::string> metadata_of(const ModelCard& card);
// Metadata for weights without a card, so that they are not taken for those of another model: card_of() refuses the
// file, and says why.
std::map<std::string, std::string> metadata_without_card(const std::string& reason);
// Of a file: what its metadata says. Keys that this version does not know are refused: they may decide the function.
// A file without metadata is read as timm's VisionTransformer (pre-norm or LayerScale, class token, with or without a
// position, or mean; no register tokens, norms of q and k or before the blocks, distillation tokens) and Cait, by names
// and shapes. They do not tell a ViT's heads: `heads`, or, as timm's sizes have it, one for 64 channels. `path` stands
// in errors. Metadata of older versions lacks the constants of the method. Those that decide the function
// (Affects::function) must then be in `method`, a text form such as "mix_ln:post_share=0.25", or it throws, naming
// them; others have their standard values. If the file says another value, it throws. A `method` of another name is
// ignored.
ModelCard card_of(const TensorFile& file, const std::string& path, std::optional<std::int64_t> heads = {},
                  const std::string& method = "");
std::unique_ptr<Classifier> make_model(const ModelCard& card);

// Position embeddings [1, prefix + a a, D] of a grid of a x a patches, as those of side x side: bicubic, antialiased,
// as timm's resample_abs_pos_embed; the first `prefix` tokens as they are. If the other tokens form no square, it
// throws.
Tensor resized_positions(const Tensor& positions, std::int64_t prefix, std::int64_t side);

// What need not be in the file.
struct Adaptation {
  bool new_head = false;  // a head of another number of classes stays as it was initialised
  // Gates that the file knows nothing of are new: LayerScale's and other factors of branch or skip (Gate::scales) start
  // at `gate_start`, 1 if it is not given, where they leave the branches as they were trained; other gates stay as they
  // were initialised.
  bool new_gates = false;
  std::optional<double> gate_start = {};
  std::string method = "";  // as for card_of(); decides same_function alone
};
struct Adapted {
  std::vector<std::string>
      as_initialised;  // names of parameters that are new: as they were initialised, or gates at their start
  std::optional<std::int64_t> positions_from = {};  // side of the grid that the file has, where that was another
  // Whether the network now computes the function of the file's network. It has no value if that is not known: the file
  // does not say enough (a timm file does not say its heads), or the two cannot be compared. They are compared as for
  // metadata_of(), with new gates at their start, to rounding (1e-9). A new head or resized positions alone make it
  // false.
  std::optional<bool> same_function = {};
  std::vector<std::string> reasons =
      {};  // for "no" and "not known": "the head is new", "norm_eps is 1e-05 here and 1e-06 in the file"

  std::string text() const;  // "it computes what the file's network did"; "it does not compute what the file's network
                             // did: the head is new"
};
// Puts a file's weights (timm's names or ours, told by the shape of the patch projection) into a ViT or CaiT; positions
// of another grid are resized. If the weights do not fit, it throws and names the differences. Whenever it throws, the
// model is as it was.
Adapted load_pretrained(Classifier& model, const TensorFile& file, const std::string& path, Adaptation adaptation = {});

}  // namespace plumb::nn
