// Measured ops correspond one by one to predicted ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/lowering/lowering.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/memory/memory_replay.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

Plan hybrid_plan() {
  Plan plan = one_rank_plan();
  plan.dp = plan.tp = plan.pp = plan.micro_batch = 2;
  plan.zero_stage = 1;
  return plan;
}

// Stream, name, layer and microbatch of an op.
using Key = std::tuple<Stream, std::string, std::int32_t, std::int32_t>;

std::vector<Key> by_stream(std::vector<Key> keys) {
  std::ranges::stable_sort(keys, {}, [](const Key& key) { return std::get<Stream>(key); });
  return keys;
}

std::vector<Key> ops_of(const Program& program, std::int64_t stage) {
  std::vector<Key> keys;
  for (const Call& call : program.stages[static_cast<std::size_t>(stage)].calls) {
    for (const Op& op : program.blocks[call.block].ops)
      keys.emplace_back(op.stream, op.name, call.layer, call.microbatch);
  }
  return by_stream(std::move(keys));
}

std::vector<Key> spans_of(const Timeline& timeline) {
  std::vector<Key> keys;
  for (const Span& span : timeline.spans)
    keys.emplace_back(span.stream, span.name, span.layer, span.microbatch);
  return by_stream(std::move(keys));
}

std::vector<Timeline> measured_step(const ModelSpec& model, const Plan& plan) {
  std::vector<Timeline> timelines(static_cast<std::size_t>(plan.world_size()));
  on_ranks(model, plan, {.steps = 1}, [&](RankTrainer& trainer, const BatchLoader& loader) {
    StepRecorder recorder(plan, trainer.rank());
    trainer.step(0, loader.load(0, trainer.place()[Axis::Data]), &recorder);
    timelines[static_cast<std::size_t>(trainer.rank())] = recorder.take();
  });
  return timelines;
}

// Each rank's spans are its program's ops, in the order of issue on each stream, without overlap.
TEST(MeasuredStep, HasTheOpsOfTheProgramInTheirOrder) {
  const ModelSpec model = small_llama();
  const Plan plan = hybrid_plan();
  const Program program = lower(model, plan, load_stack("shardwright"));
  const std::vector<Timeline> timelines = measured_step(model, plan);
  for (std::size_t rank = 0; rank < timelines.size(); ++rank) {
    const Timeline& timeline = timelines[rank];
    const std::int64_t stage = RankGrid(plan).locate(static_cast<std::int64_t>(rank)).stage;
    EXPECT_EQ(spans_of(timeline), ops_of(program, stage));
    std::map<Stream, Seconds> end;
    for (const Span& span : timeline.spans) {
      EXPECT_GE(span.start, end[span.stream]) << span.name;
      end[span.stream] = span.end();
    }
    EXPECT_EQ(read_timeline(to_json(timeline), "measured"), timeline);
  }
}

// Tensors are placed as in the simulator's memory replay.
TEST(MeasuredStep, HasThePeakOfTheMemoryReplay) {
  const ModelSpec model = small_gpt2();
  for (const bool recomputes : {false, true}) {
    Plan plan = hybrid_plan();
    if (recomputes) plan.recompute = RecomputePolicy::Full;
    const Program program = lower(model, plan, load_stack("shardwright"));
    on_ranks(model, plan, {.steps = 1}, [&](RankTrainer& trainer, const BatchLoader& loader) {
      trainer.step(0, loader.load(0, trainer.place()[Axis::Data]));
      const auto stage = static_cast<std::int32_t>(trainer.place()[Axis::Pipeline]);
      double states = 0.0, peak = 0.0;
      for (const PersistentMemory& held :
           program.stages[static_cast<std::size_t>(stage)].persistent)
        states += held.bytes.value();
      for (const sim::MemorySample& sample : sim::memory_curve(program, stage))
        peak = std::max(peak, sample.level.value() - states);
      EXPECT_NEAR(static_cast<double>(trainer.peak_tensor_bytes()), peak, 1.0);
    });
  }
}

}  // namespace
}  // namespace shardwright::executor
