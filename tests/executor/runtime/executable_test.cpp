// Refusals before a rank starts.
#include "executor/runtime/executable.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.hpp"
#include "core/spec/profile_library.hpp"
#include "executor/kernels/cuda/norm_rows.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

// Returns the problem of a model of this width on a GPU or the CPU, or "".
std::string refusal(std::int64_t hidden, bool on_gpu) {
  ModelSpec model = small_llama();
  model.hidden = hidden;
  Plan plan = one_rank_plan();
  plan.precision = on_gpu ? Precision::Bf16 : Precision::Fp32;
  try {
    check_executable(model, plan, load_stack("shardwright"), on_gpu, "plan.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Executable, IsRefusedIfRowsAreTooLongForTheNormsOfAGpu) {
  for (const bool packed : {true, false}) {
    const std::int64_t longest = longest_norm_row(packed) - (packed ? 0 : 1);
    const std::int64_t longer = longest + (packed ? 8 : 2);
    EXPECT_EQ(refusal(longest, true), "");
    EXPECT_EQ(refusal(longer, false), "");
    EXPECT_THAT(refusal(longer, true),
                testing::AllOf(testing::HasSubstr("plan.json"), testing::HasSubstr("/model/hidden"),
                               testing::HasSubstr(std::to_string(longer)),
                               testing::HasSubstr(packed ? "at most 16384" : "at most 2048")));
  }
}

}  // namespace
}  // namespace shardwright::executor
