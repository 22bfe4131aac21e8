// Layers of steps whose products are known.
#include "calibration/traces/layer_structure.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "calibration/traces/device_steps.hpp"
#include "calibration/traces/trace_file.hpp"
#include "tests/calibration/traces/kineto_text.hpp"

namespace shardwright::calibration {
namespace {

// The n and k of a product with 64 rows; {0, 0} is an attention, {0, 1} a backward one, {-1, 0} a
// message to another rank.
using Parts = std::vector<std::pair<int, int>>;
constexpr std::pair<int, int> kAttention{0, 0}, kBackwardAttention{0, 1}, kMessage{-1, 0};

std::optional<LayerStructure> structure_of(const Parts& parts) {
  std::string events;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [n, k] = parts[i];
    const char* kernel = n < 0    ? "ncclDevKernel_SendRecv"
                         : n == 0 ? (k == 0 ? "flash_fwd_kernel" : "flash_bwd_kernel")
                                  : "nvjet_tst_128x128";
    events += fmt::format(
        R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 1, "tid": 1, "ts": {}, "dur": 5, "args": {{)"
        R"("External id": {}, "Input Dims": [[64, {}], [{}, {}]], "Input type": ["c10::Half", "c10::Half"]}}}},)"
        R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": 3, "args": )"
        R"({{"External id": {}, "device": 0, "stream": 7}}}})",
        n > 0 ? "aten::mm" : "other", 10 * i, i + 1, k, k, n, kernel, 10 * i + 2, i + 1);
    events += i + 1 < parts.size() ? "," : "";
  }
  return layer_structure(read_kineto_text("{\"traceEvents\": [" + events + "]}"));
}

Parts repeated(const Parts& layer, int times) {
  Parts parts;
  for (int i = 0; i < times; ++i) parts.insert(parts.end(), layer.begin(), layer.end());
  return parts;
}

void append(Parts& to, const Parts& parts) {
  to.insert(to.end(), parts.begin(), parts.end());
}

const Parts kLayer = {{96, 32}, kAttention, {32, 32}, {128, 32}, {32, 128}};

TEST(LayerStructure, CountsLayersThatLackAPart) {
  Parts parts = {{32, 500}};
  append(parts, repeated(kLayer, 3));
  append(parts, {{128, 32}, {32, 128}});
  append(parts, repeated(kLayer, 5));
  // A product that stands between layers, and one behind them that has the shape of a layer's.
  append(parts, {{7, 32}});
  append(parts, repeated(kLayer, 2));
  append(parts, {{32, 32}, {1000, 32}});
  const auto structure = structure_of(parts);
  ASSERT_TRUE(structure);
  EXPECT_EQ(structure->layers, 11);
  ASSERT_EQ(structure->incomplete.size(), 1U);
  EXPECT_EQ(structure->incomplete[0].number, 4);
  EXPECT_EQ(structure->incomplete[0].anchors, 2);
  EXPECT_TRUE(structure->incomplete[0].lacks_attention);
  EXPECT_EQ(structure->anchors_of_layers, 52);
  EXPECT_EQ(structure->anchors_of_pass, 56);
  EXPECT_DOUBLE_EQ(structure->time.value(), 50e-6);
  EXPECT_EQ(structure->vocabulary, 1000);
}

// A stage of a pipeline has several forward passes before its first backward one.
TEST(LayerStructure, APassEndsAtAMessage) {
  Parts parts;
  for (int microbatch = 0; microbatch < 4; ++microbatch) {
    append(parts, repeated(kLayer, 6));
    append(parts, {kMessage});
  }
  EXPECT_EQ(structure_of(parts)->layers, 6);
  // Messages within layers, as in rings of attention, end nothing.
  EXPECT_EQ(structure_of(repeated({{96, 32}, kMessage, kAttention, {32, 32}}, 7))->layers, 7);
}

// Denoising steps and several inputs pass through the same layers.
TEST(LayerStructure, RepeatedPassesAreNoLayers) {
  Parts pass = {{32, 500}};
  append(pass, repeated(kLayer, 6));
  append(pass, {{1000, 32}});
  const auto structure = structure_of(repeated(pass, 5));
  ASSERT_TRUE(structure);
  EXPECT_EQ(structure->layers, 6);
  EXPECT_EQ(structure->anchors, 5);
  // The experts of a layer have no attention.
  Parts sparse = {{96, 32}, kAttention, {32, 32}};
  append(sparse, repeated({{64, 32}, {32, 64}}, 8));
  EXPECT_EQ(structure_of(repeated(sparse, 4))->layers, 4);
  // Attention of plain products.
  Parts plain = repeated({{96, 32}, {64, 64}, {8, 64}, {32, 32}, {128, 32}, {32, 128}}, 6);
  append(plain, {{1000, 32}});
  EXPECT_EQ(structure_of(repeated(plain, 5))->layers, 6);
}

// Without an attention kernel nothing but repetition shows where the backward pass begins, which
// has two products for each of the forward pass, and those of recomputation.
TEST(LayerStructure, TheLayersAreThoseOfTheForwardPass) {
  const Parts forward = {{96, 32}, {64, 64}, {8, 64}, {32, 32}, {128, 32}, {32, 128}};
  Parts backward;
  for (const auto& part : forward)
    append(backward, {{part.second, 7}, {part.first, part.second + 1}});
  for (const bool recomputes : {false, true}) {
    Parts layer = backward;
    if (recomputes) layer.insert(layer.begin(), forward.begin(), forward.end());
    Parts parts = repeated(forward, 12);
    append(parts, {{1000, 32}, {32, 1000}});
    append(parts, repeated(layer, 12));
    const auto structure = structure_of(parts);
    ASSERT_TRUE(structure);
    EXPECT_EQ(structure->layers, 12);
    EXPECT_EQ(structure->anchors, 6) << recomputes;
    EXPECT_EQ(structure->vocabulary, 1000);
  }
}

// The last layers are recomputed before anything shows that the backward pass has begun.
TEST(LayerStructure, RecomputedLayersAreNoLayersOfTheForwardPass) {
  for (const int at_once : {1, 2}) {
    Parts parts = {{32, 500}};
    append(parts, repeated(kLayer, 6));
    append(parts, {{1000, 32}, {32, 1000}, {1000, 64}});
    for (int layer = 0; layer < 6; layer += at_once) {
      append(parts, repeated(kLayer, at_once));
      for (int each = 0; each < at_once; ++each)
        append(parts, {{128, 33}, {32, 129}, {32, 33}, kBackwardAttention, {96, 33}});
    }
    const auto structure = structure_of(parts);
    ASSERT_TRUE(structure);
    EXPECT_EQ(structure->layers, 6) << at_once;
    EXPECT_EQ(structure->vocabulary, 1000) << at_once;
  }
}

// Liger's loss multiplies a chunk of tokens with the head after the other.
TEST(LayerStructure, ChunksOfALossAreNoLayers) {
  Parts parts = repeated(kLayer, 6);
  append(parts, repeated({{1000, 32}, {32, 1000}, {1000, 64}}, 40));
  const auto structure = structure_of(parts);
  ASSERT_TRUE(structure);
  EXPECT_EQ(structure->layers, 6);
  EXPECT_EQ(structure->hidden, 32);
}

TEST(LayerStructure, TellsNoLayersOfAModelThatHardlyRepeats) {
  Parts parts;
  for (int i = 1; i < 40; ++i) parts.emplace_back(32 * i, 16 * i);
  append(parts, repeated({{3, 4}, {5, 6}}, 3));
  EXPECT_FALSE(structure_of(parts));
  EXPECT_FALSE(structure_of(repeated(kLayer, 2)));
}

// Launches are known from the second half of the recording on. What the trace shows of device 0: 24
// blocks with an attention of two products and five other products, each of which cuBLAS splits
// into two kernels.
TEST(LayerStructure, KernelsKeepTheirOrderWhereLaunchesAreMissing) {
  const Trace trace = std::get<Trace>(read_recording(
      SHARDWRIGHT_SOURCE_DIR "/tests/calibration/traces/files/h100x2-fp32-forward.sqlite.gz"));
  const std::vector<DeviceStep> steps = device_steps(trace);
  ASSERT_EQ(steps.size(), 1U);
  std::int64_t end = 0;
  for (const DeviceActivity* each : steps[0].activities) {
    if (each->kind != ActivityKind::Kernel) continue;
    EXPECT_LE(end, each->start);
    end = each->end();
  }
  const auto structure = layer_structure(trace);
  ASSERT_TRUE(structure);
  EXPECT_EQ(structure->layers, 24);
  EXPECT_EQ(structure->anchors, 7);
  EXPECT_NEAR(structure->kernels, 62.0, 0.5);
}

// The model's authors: eleven layers, the seventh without attention.
TEST(LayerStructure, FindsTheLayersOfAPublishedRun) {
  for (const char* file : {"rank0", "rank3", "before", "after"}) {
    const auto structure = layer_structure(std::get<Trace>(read_recording(fmt::format(
        "{}/tests/calibration/traces/files/nanogpt/{}.json.gz", SHARDWRIGHT_SOURCE_DIR, file))));
    ASSERT_TRUE(structure) << file;
    EXPECT_EQ(structure->layers, 11) << file;
    ASSERT_EQ(structure->incomplete.size(), 1U) << file;
    EXPECT_EQ(structure->incomplete[0].number, 7) << file;
    EXPECT_TRUE(structure->incomplete[0].lacks_attention) << file;
    EXPECT_EQ(structure->hidden, 768) << file;
    EXPECT_EQ(structure->vocabulary, 50'304) << file;
  }
}

}  // namespace
}  // namespace shardwright::calibration
