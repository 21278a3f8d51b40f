// A small call of each study of Plumb. tests/lab calls the studies in process, also with the sanitizers, and
// tests/programs starts their programs.
#pragma once

#include <string>
#include <vector>

namespace plumb::test {

// A study with a small network, and what its folder has. No two trials have the same loss.
struct SmallStudy {
  std::string name, words;
  std::size_t trials;
  std::string section;    // a title of the report that only this study has
  int pictures = 0;       // of the first seed
  std::string file = {};  // the measurements by layer, if the study has them
};

inline const std::string small_network = " --dim 8 --heads 2 --steps 2 ", picture_seeds = "--patch 8 --seeds 3,4 ";

inline const std::vector<SmallStudy> small_studies{
    {"class_attention",
     "--preset quick" + small_network + picture_seeds + "--depth 2 --warmup 0 --designs token,insert-1,mean,2:1", 8,
     "Attention maps", 4, "layers.csv"},
    {"deep_mlp", "--depths 3 --width 8 --steps 2 --seeds 0", 4, "jacobian_end"},
    {"depth_limit", "--preset quick" + small_network + "--first 4 --most 4 --no-stop-hopeless", 3,
     "Largest depth at which most seeds train"},
    {"depth_stability", "--preset quick" + small_network + "--depths 1,2 --warmup 0", 12, "Against depth: val accuracy",
     0, "layers.csv"},
    {"detr",
     "--preset quick" + small_network +
         "--hidden 8 --encoder 1 --decoder 1 --queries 3 --backbone 4,6 --train-count 8 --val-count 4",
     3, "Objects found in validation images", 6, "layers.csv"},
    {"drop_key", "--preset quick" + small_network + picture_seeds + "--depth 2 --warmup 0 --forms plain,dropout", 6,
     "Keys dropped by DropKey", 4},
    {"fixup_scalars", "--preset quick --dim 8 --heads 2 --depths 2 --steps 12 --lrs 3e-2", 5, "Gates over training", 0,
     "layers.csv"},
    {"layerscale_init", "--preset quick" + small_network + "--depths 2", 6, "Training loss against eps", 0,
     "layers.csv"},
    {"norm_placement", "--preset quick" + small_network + "--depths 2", 8, "no_norm", 0, "layers.csv"},
    {"passport", small_network + "--depths 2 --gates pre,rezero --patch 16 --probes 2 --seeds 0", 2,
     "Signals while training", 0, "layers.csv"},
    {"residual_ratio", "--preset quick" + small_network + "--depths 4", 2, "Ratios by layer, at init", 0, "layers.csv"},
    {"stability_map", "--preset quick" + small_network + "--depths 2 --no-stop-hopeless", 18, "Edges by depth"},
    {"stochastic_depth", "--preset quick" + small_network + "--depths 2", 3, "Accuracy and loss by rate", 0,
     "layers.csv"},
    {"vit", "--preset vit-tiny" + small_network + picture_seeds + "--depth 2", 2, "Attention maps", 1, "layers.csv"},
    {"vit", "--model cait" + small_network + picture_seeds + "--depth 2", 2, "Attention maps", 1, "layers.csv"},
};

}  // namespace plumb::test
