// DETR, a detector of objects that predicts a set of boxes with an encoder and a decoder (Carion et al. 2020,
// End-to-end object detection with transformers).
#pragma once

#include "nn/blocks/stack.h"
#include "nn/detection/set_loss.h"
#include "nn/gates/method.h"
#include "nn/gates/recipe.h"
#include "nn/layers/batch_norm.h"
#include "nn/layers/conv2d.h"

namespace plumb::nn {

// The drops inside one kind of attention of a DETR.
struct DetrDrops {
  DropKey drop_key = {};  // its schedule runs over the blocks of the stack
  double dropout = 0;     // probability with which dropout sets an attention probability to 0
};

// Options of a Detr. The sizes are those of facebookresearch/detr. Differences from the authors' training: the backbone
// (there a pretrained ResNet-50 with frozen norms, at a tenth of the learning rate), dropout (there 0.1, also of the
// attention probabilities), the initial values of biases (there those of PyTorch, here 0), and weight decay, which acts
// on weights only (there also on queries, norms and biases).
struct DetrOptions {
  std::int64_t channels = 3, classes = 91;  // channels of the images, and classes of objects
  // The output channels of the convolutions of the backbone. Each has a kernel of 3 x 3 and stride 2, and is followed
  // by batch norm and ReLU. n convolutions make a feature map whose sides are 2^-n times those of the image, rounded
  // up.
  std::vector<std::int64_t> backbone = {32, 64, 128};
  std::int64_t dim = 256, heads = 8, encoder = 6, decoder = 6;  // `encoder`, `decoder`: numbers of blocks
  std::int64_t hidden = 2048;                                   // the hidden width of the MLPs
  std::int64_t queries = 100;    // the largest number of objects that can be found in an image
  MethodChoice method = "post";  // residual method of both stacks; "pre" is the authors' variant normalize_before
  double dropout = 0;            // probability of dropout in the MLPs, and of each branch
  DetrDrops encoder_attention = {}, decoder_attention = {}, cross_attention = {};
  double backbone_rate = 1;  // factor of the learning rate of the backbone
  // The training recipe, for the weights of the transformer. facebookresearch/detr has Base::xavier_packed.
  std::optional<Recipe> recipe = Recipe{.base = Base::xavier_packed};
  std::uint64_t seed = 0;  // seed of the initial values
};

// Maps images [B, C, H, W] to Q predictions for each image. A feature map of the backbone, projected to the width of
// the transformer, is the input of the encoder. The decoder reads the output of the encoder; its stream starts at 0,
// and its positions are Q learned vectors. After each block of the decoder, the same norm and the same heads predict
// classes and boxes. Sine positions are added to queries and keys of attention, never to values. Parameters:
// backbone.conv.N, backbone.norm.N, input_proj, encoder.*, decoder.*, query_embed [Q, D], class_embed,
// bbox_embed.layers.N. The constructor initialises the parameters. Throws Error for invalid options.
class Detr : public Layer {
 public:
  using Options = DetrOptions;  // the options of the constructor, for nn::Child
  explicit Detr(const DetrOptions& options);
  ~Detr() override;

  // Return the options and the stacks.
  const DetrOptions& options() const { return options_; }
  std::string card() const override;
  Stack& encoder() { return encoder_; }
  Stack& decoder() { return decoder_; }

  // Returns the predictions after each block of the decoder. `keep` [B, H, W], u8, is 1 for the pixels of the images
  // and 0 for padding; undefined if there is no padding. Hooks on the Detr itself act in operator() only. Throws Error
  // if an image is padding only.
  Detections detect(const Tensor& images, const Tensor& keep = {}) const;
  // Returns the output of the encoder, [B, M, D], with its positions and the mask of its padding.
  MemoryTokens encode(const Tensor& images, const Tensor& keep = {}) const;
  // Returns the predictions of the decoder for this memory.
  Detections decode(const MemoryTokens& memory) const;
  // Returns the sides of the feature map for images with these sides: height, width.
  std::pair<std::int64_t, std::int64_t> grid(std::int64_t height, std::int64_t width) const;

 protected:
  // Returns the logits and boxes after the last block, next to each other, [B, Q, C + 1 + 4]. operator() calls it.
  Tensor forward(const Tensor& images) const override;

 private:
  class Backbone;
  class BoxHead;
  DetrOptions options_;
  ChildPtr<Backbone> backbone_;
  Child<Conv2d> input_proj_;
  Child<Stack> encoder_, decoder_;
  Tensor query_embed_;
  Child<Linear> class_embed_;
  ChildPtr<BoxHead> bbox_embed_;
};

}  // namespace plumb::nn
