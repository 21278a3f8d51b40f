// Compiles each new name in the table "Renamed" of CHANGELOG.md, from the installed headers.
#include <plumb/vision.h>

using namespace plumb;

struct Sum : nn::Gate {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
};

template <class...>
struct Types;
template <auto...>
struct Members;

using RenamedTypes = Types<AttentionMasking, Conv2dGeometry, lab::BranchStats, lab::Condition, lab::LayerStats,
                           lab::SignalProbe, lab::StudyFolder, lab::StudyOptions, lab::Trial, nn::BranchCall,
                           nn::BranchHooks, nn::HeadMix, nn::InitProperty, nn::JunctionPlace, nn::MemoryTokens,
                           vision::Batch, vision::ImageOptions, vision::ImageSet, vision::PixelBox, vision::ViTChoice>;
using RenamedMembers =
    Members<&lab::CliOption::set, &lab::Problem::weights_metadata, &lab::StudyOptions::declare,
            &lab::StudyOptions::least_steps, &lab::StudyResults::conditions, &lab::Task::loss_of,
            &lab::Trial::check_divergence, &lab::Trial::mark_diverged, &lab::Trial::mark_pretrained,
            &lab::TrialGroup::summary, &lab::TrialGroup::trials, &lab::attached_to, &lab::record_layers, &lab::vit,
            &nn::AttentionOptions::resolved, &nn::CaiTOptions::head_mix, &nn::Method::paper,
            &nn::MlpOptions::activation, &nn::StackOptions::recipe, &nn::ViTOptions::recipe, &nn::description,
            &nn::facebook_names, &nn::gates_from<Sum>, &nn::method_names, &vision::image_sizes, &vision::images,
            &vision::Study::images, &vision::Parts::network, &vision::Study::augmentation, &vision::vit>;

void new_names(vision::Study& study, nn::Block& block, Array& array, const nn::GateContext& context) {
  study.check([](const lab::DataFacts&) {});
  study.title("New names");
  study.cli().derive([] {});
  study.cli().action([]() -> std::optional<int> { return std::nullopt; });
  study.output([](const lab::StudyResults&) { return lab::Section{.title = "A section"}; });
  study.output([](const lab::StudyResults& results) { return lab::results_report(results); });
  study.output("layers.csv", lab::layers_csv);
  bool value = false;
  for (const auto scope : {lab::Scope::call, lab::Scope::speed, lab::Scope::study, lab::Scope::run})
    study.cli().option("--value", &value, "A value").scope(scope);
  block.branch("attn"), block.branch("mlp");
  Out(array).mutable_data<float>();
  nn::gate_per_junction(context, [](const nn::GateContext&) { return std::make_unique<Sum>(); });
}
