#include "nn/gates/recipe.h"

namespace plumb::nn {

Recipe deit_recipe() {
  return {.warmup = 5.0 / 300, .source = "Touvron et al. 2021, DeiT: weights of ViT, warm-up in 5 of 300 epochs"};
}

Recipe cait_recipe() {
  Recipe recipe = deit_recipe();
  recipe.source = "Touvron et al. 2021, CaiT, table 1: weights and warm-up of DeiT in all columns";
  return recipe;
}

}  // namespace plumb::nn
