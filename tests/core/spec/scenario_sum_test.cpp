#include "core/spec/scenario_sum.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright {
namespace {

TEST(ProgramSum, TellsProgramsApartWhateverTheyCost) {
  const Scenario scenario{
      load_model("tiny-llama"), load_cluster("dgx-h100"), load_stack("shardwright"), {}};
  const std::string sum = program_sum(to_json(scenario));
  // What a run writes is what calibrate reads back.
  EXPECT_EQ(program_sum(nlohmann::json::parse(to_json(scenario).dump(2))), sum);
  Scenario other = scenario;
  other.cluster = load_cluster("h100-pcie-server");
  EXPECT_EQ(program_sum(to_json(other)), sum);
  other.plan.micro_batch *= 2;
  EXPECT_NE(program_sum(to_json(other)), sum);
  other = scenario;
  other.model.layers += 1;
  EXPECT_NE(program_sum(to_json(other)), sum);
  other = scenario;
  other.stack = load_stack("megatron-core");
  EXPECT_NE(program_sum(to_json(other)), sum);
}

}  // namespace
}  // namespace shardwright
