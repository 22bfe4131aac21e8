// Launch scripts, logs and checkpoints of Megatron-LM, and configurations of NeMo: what is accepted
// is a plan that its file format accepts.
#include <nlohmann/json.hpp>

#include "core/spec/profile_library.hpp"
#include "planner/import/checkpoint_arguments.hpp"
#include "planner/import/megatron_plan.hpp"
#include "planner/import/nemo_arguments.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ClusterSpec kCluster = load_cluster("dgx-h100");
  static const StackSpec kStack = load_stack("megatron-core");
  return fuzz::try_text(data, size, [](const std::string& text) {
    const bool is_pickle = text.starts_with('\x80');
    auto launch = is_pickle ? planner::checkpoint_arguments(read_pickle(text, fuzz::kSource).root,
                                                            fuzz::kSource)
                            : planner::find_launch_arguments(text, fuzz::kSource);
    if (!launch) launch = planner::find_nemo_arguments(text, fuzz::kSource);
    if (!launch) return;
    const Scenario scenario = planner::imported_plan(*launch, kCluster, kStack, 8).scenario;
    SHARDWRIGHT_CHECK(read_scenario(to_json(scenario), fuzz::kSource) == scenario, "read again");
  });
}
