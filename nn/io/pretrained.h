// Models from weight files: model cards, which describe the model of a file, and functions that load weights into a
// model, also with another image size or other classes.
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

// A model card: the description of a model without its weights. make_model() makes the model from its card.
struct ModelCard {
  std::variant<ViTOptions, CaiTOptions> options;
  // Mean and standard deviation, for each channel, of the pixels of the training images, scaled to 0..1. Empty if not
  // known.
  std::vector<double> mean = {}, std = {};
  std::vector<std::string> class_names = {};  // the names of the classes; empty if not known

  // Return the sizes of the model: sides of images and patches in pixels, channels of the images, and number of
  // classes.
  std::int64_t image() const;
  std::int64_t patch() const;
  std::int64_t channels() const;
  std::int64_t classes() const;
};

// Returns the card of a ViT or a CaiT, or no value for any other model.
std::optional<ModelCard> card_of(const Module& model);
// Returns the card as a JSON object, for logs and records. Unlike metadata_of(), this function accepts the card of
// every model.
std::string json_of(const ModelCard& card);
// Returns the card as metadata for a file of the model's weights. The metadata holds everything that decides the
// function of the network: sizes, the method with each of its constants, norm eps, pooling, the block at which the
// class token joins, the forms of attention and GELU, and stochastic depth if it acts in evaluation.
// Throws Error if the network cannot be made again from the card, because the method is not in the table or was changed
// by hand. To detect this error, the metadata is read back, and the two networks are compared in f64, at the same depth
// and with a width of 4 per head. With the same weights, both networks must compute the same finite logits, bit for
// bit. A difference that exists only at other widths or only in training is not detected.
std::map<std::string, std::string> metadata_of(const ModelCard& card);
// Returns whether a file has Plumb's metadata: a card, or a reason for its absence.
bool has_card(const TensorFile& file);
// Returns metadata for weights without a card. card_of() then refuses the file with this reason, instead of describing
// another model from names and shapes.
std::map<std::string, std::string> metadata_without_card(const std::string& reason);
// Returns the card of a file. `path` begins the error messages.
// If the file has Plumb's metadata, the card comes from it. Throws Error for keys that this version does not know,
// because they may decide what the network computes. Metadata of older versions lacks the constants of the method. In
// this case, constants that decide the function (Affects::function) must be given in `method`, a text form such as
// "mix_ln:post_share=0.25". If such a constant is missing, card_of() throws an Error that names the constant. Other
// constants get their default. Throws Error if `method` contradicts the file; a `method` with another name is ignored.
// A file without metadata is read as timm's VisionTransformer or Cait, by names and shapes. Supported are pre-norm and
// LayerScale, a class token with or without a position, and mean pooling; register tokens, norms of q and k, norms
// before the blocks and distillation tokens are not supported. The heads of a ViT, the form of GELU, eps and the
// pooling cannot be derived from names and shapes. The number of heads is `heads`; by default it is the number of
// timm's models of this width, which is one head for 64 channels with few exceptions. GELU is exact, eps is 1e-6, and a
// class token is read if the file has one. A file may contain any card, so the sizes of the card are limited by the
// file: each block must be in the file.
ModelCard card_of(const TensorFile& file, const std::string& path, std::optional<std::int64_t> heads = {},
                  const std::string& method = "");
// Makes a model from a card. The model has its initial weights.
std::unique_ptr<Classifier> make_model(const ModelCard& card);

// Resizes position embeddings [1, prefix + a a, D] of an a x a grid to a side x side grid: bicubic with antialiasing,
// as in timm's resample_abs_pos_embed. The first `prefix` tokens do not change. Throws Error if the number of the other
// tokens is not a square.
Tensor resized_positions(const Tensor& positions, std::int64_t prefix, std::int64_t side);

// Differences between model and file that load_pretrained() accepts.
struct Adaptation {
  bool new_head = false;  // whether to accept another number of classes; the head then keeps its initial values
  // Whether gates that the file lacks are added. LayerScale's gammas and other factors of branch or skip
  // (Gate::scales()) get the value `gate_start`. The default is 1: with factor 1, the branches contribute as in the
  // training of the file's model. Other gates keep their initial values.
  bool new_gates = false;
  std::optional<double> gate_start = {};
  std::string method = "";  // a text form as for card_of(); affects only Adapted::same_function
  // Properties that a file without a card does not state. One is true if the caller knows that its value in the model
  // is the value of the file's network. They affect only Adapted::same_function.
  bool given_heads = false, given_gelu = false, given_norm_eps = false, given_pool = false;
};
// The result of load_pretrained().
struct Adapted {
  // Names of the parameters that are not from the file. These parameters keep their initial values, or are gates with
  // the value gate_start.
  std::vector<std::string> as_initialised;
  // The side of the file's grid of positions if the positions were resized, and no value otherwise.
  std::optional<std::int64_t> positions_from = {};
  // Whether the model now computes the same function as the file's network. No value if the answer is not known,
  // because the file lacks information (a timm file lacks heads, GELU, eps and pooling; see Adaptation::given_heads),
  // or because the two networks cannot be compared. The networks are compared as in metadata_of(), with new gates at
  // their values after loading, up to rounding (1e-9). With a new head or resized positions, the answer is false.
  std::optional<bool> same_function = {};
  // The reasons if same_function is false or not known: "the head is new", "norm_eps is 1e-05 here and 1e-06 in the
  // file".
  std::vector<std::string> reasons = {};
  std::string skipped = {};  // the tensors of the file that were not read, as in skipped_text()

  // Returns same_function with its reasons as text: "the model computes the same function as the file's network", "the
  // model does not compute the same function as the file's network: the head is new". Tensors that were not read
  // follow.
  std::string text() const;
};
// Loads the weights of a file, with timm's names or Plumb's names, into a ViT or CaiT. The shape of the patch
// projection decides which names the file has. Positions of another grid are resized. Skipped tensors of the file
// (TensorFile::skipped) are an error only if the model has a parameter of that name. If the weights do not match the
// model, throws an Error that names the differences. After any exception, the model is unchanged. The error messages
// begin with `path`.
Adapted load_pretrained(Classifier& model, const TensorFile& file, const std::string& path, Adaptation adaptation = {});

}  // namespace plumb::nn
