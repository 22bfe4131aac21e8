// Plan files, by themselves and with model, cluster and stack around them.
#include "core/spec/plan_json.hpp"
#include "core/spec/scenario.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

namespace {

Plan read_bare_plan(const nlohmann::json& document) {
  ProblemList problems(fuzz::kSource);
  ObjectReader reader(document, "", problems);
  const Plan plan = read_plan(reader);
  problems.throw_if_any();
  return plan;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_document(data, size, [](const nlohmann::json& document) {
    if (document.is_object() && document.contains("dp")) {
      fuzz::check_round_trip(read_bare_plan(document), read_bare_plan);
    } else {
      fuzz::check_round_trip(
          read_scenario(document, fuzz::kSource),
          [](const nlohmann::json& written) { return read_scenario(written, fuzz::kSource); });
    }
  });
}
