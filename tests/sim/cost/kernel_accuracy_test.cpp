// Predicted against published kernel times (tests/ground_truth/kernels.jsonl).
#include <gtest/gtest.h>

#include <iostream>
#include <optional>
#include <sstream>

#include "sim/cost/kernel_cost.hpp"
#include "tests/sim/cost/ground_truth.hpp"
#include "tests/sim/cost/reference_hardware.hpp"

namespace shardwright::sim {
namespace {

using nlohmann::json;

Precision precision_of(const json& row) {
  const auto name = row.at("dtype").get<std::string>();
  if (name == "fp8") return Precision::Fp8;
  if (name == "tf32/fp32") return Precision::Tf32;
  return name == "fp16" ? Precision::Fp16 : Precision::Bf16;
}

// Rows of grouped GEMMs give m per group; their weight gradients contract over it.
GemmWork gemm_of(const json& row) {
  GemmWork work{
      .m = row.at("m"), .n = row.at("n"), .k = row.at("k"), .batch = row.value("batch", 1)};
  const std::int64_t groups = row.value("groups", 1);
  work.accumulate_fp32 = row.value("accumulate", false) && row.value("out_dtype", "") == "fp32";
  if (groups == 1) return work;
  if (row.value("stage", "") == "bwd_grad_w")
    return {.m = work.n, .n = work.k, .k = work.m, .batch = groups};
  work.m *= groups;
  work.groups = groups;
  return work;
}

AttentionWork attention_of(const json& row, bool backward) {
  const std::int64_t heads = row.at("heads"), width = row.at("head_dim"), tokens = row.at("seq");
  return {.batch = row.at("batch"),
          .heads = heads,
          .kv_heads = row.value("kv_heads", heads),
          .q_tokens = tokens,
          .kv_tokens = tokens,
          .qk_head_dim = width,
          .v_head_dim = row.value("v_head_dim", width),
          .score_share = row.value("causal", false) ? 0.5 : 1.0,
          .backward = backward};
}

struct Timing {
  Seconds predicted, measured;
};

// FlashAttention's convention: the backward pass counts 2.5 times the FLOP of the forward pass.
Timing attention_timing(const json& row, const AcceleratorSpec& device) {
  const auto op = row.at("op").get<std::string>();
  StackSpec stack;
  if (row.value("impl", "") == "FlashAttention-2" && device.architecture == "hopper")
    stack.hopper_attention_kernel_ratio = 0.57;
  Timing timing;
  double counted = 0.0;
  const Flop forward_flop = attention_of(row, false).flop();
  for (const bool backward : {false, true}) {
    if (op.find(backward ? "bwd" : "fwd") == std::string::npos) continue;
    counted += backward ? 2.5 : 1.0;
    timing.predicted += kernel_time(OpKind::Attention, attention_of(row, backward),
                                    precision_of(row), device, stack);
  }
  timing.measured = forward_flop * counted / teraflops(row.at("tflops"));
  return timing;
}

// Standard attention is not fused, and the fp8 kernels and Triton's are not what training runs.
bool is_modelled_attention(const json& row) {
  const auto implementation = row.value("impl", "");
  return row.at("dtype") != "fp8" && implementation.find("tandard") == std::string::npos;
}

TEST(KernelAccuracy, GemmRowsAreNearTheirMeasurements) {
  testing::Residuals residuals;
  for (const json& row : testing::read_rows("kernels.jsonl")) {
    const auto device = testing::accelerator_of(row.at("gpu"));
    if (row.at("op") != "gemm" || !device || row.value("best_of_search", false)) continue;
    const GemmWork work = gemm_of(row);
    const Seconds measured = work.flop() / teraflops(row.at("tflops"));
    const Seconds predicted =
        kernel_time(OpKind::Gemm, work, precision_of(row), *device, StackSpec{});
    residuals.add(row.at("gpu").get<std::string>() + " " + row.at("dtype").get<std::string>(),
                  predicted.value(), measured.value());
  }
  std::ostringstream table;
  residuals.print(table);
  RecordProperty("residuals", table.str());
  EXPECT_GT(residuals.count(), 950U);
  EXPECT_LE(residuals.quantile(0.5), 0.08) << table.str();
  EXPECT_LE(residuals.quantile(0.9), 0.27) << table.str();
}

TEST(KernelAccuracy, AttentionRowsAreNearTheirMeasurements) {
  testing::Residuals residuals;
  for (const json& row : testing::read_rows("kernels.jsonl")) {
    const auto device = testing::accelerator_of(row.at("gpu"));
    if (row.at("op") == "gemm" || !device || !is_modelled_attention(row)) continue;
    const Timing timing = attention_timing(row, *device);
    residuals.add(row.at("gpu").get<std::string>() + " " + row.at("op").get<std::string>() + " " +
                      row.value("impl", ""),
                  timing.predicted.value(), timing.measured.value());
  }
  std::ostringstream table;
  residuals.print(table);
  RecordProperty("residuals", table.str());
  EXPECT_GT(residuals.count(), 150U);
  EXPECT_LE(residuals.quantile(0.5), 0.10) << table.str();
  EXPECT_LE(residuals.quantile(0.9), 0.28) << table.str();
}

}  // namespace
}  // namespace shardwright::sim
