// The other inputs of the window: results of a search, lines of metrics, the fields of a session.
#include "gui/models/plan_set.hpp"
#include "gui/models/run_follower.hpp"
#include "gui/models/scenario_choice.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gui::read_run_step(QByteArray(reinterpret_cast<const char*>(data), static_cast<qsizetype>(size)));
  return fuzz::try_document(data, size, [](const nlohmann::json& document) {
    std::vector<Problem> replaced, replaced_again;
    const gui::ScenarioChoice choice = gui::read_choice(document, replaced);
    const auto written = nlohmann::json::parse(to_json(choice).dump());
    SHARDWRIGHT_CHECK(gui::read_choice(written, replaced_again) == choice && replaced_again.empty(),
                      "the fields changed on a round trip");
    const gui::PlanSet set = gui::read_plan_set(document, fuzz::kSource);
    SHARDWRIGHT_CHECK(set.on_front.size() == set.plans.size(), "a plan that was not judged");
  });
}
