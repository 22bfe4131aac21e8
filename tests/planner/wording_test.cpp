// The sentences on plans that the command and the window show.
#include "planner/wording.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/shipped_requests.hpp"

namespace shardwright::planner {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Wording, NamesTheBottleneckAndTheResourcesThatHelp) {
  Explanation explanation;
  explanation.gain = 0.1;
  explanation.shares = {{TimeUse::Compute, 0.87, sim::StepPart::Gemm, 0.68},
                        {TimeUse::Communication, 0.1, sim::StepPart::ExposedTensor, 0.08}};
  explanation.sensitivities = {{Resource::MemoryBandwidth, Seconds(1.0), 0.004, ""},
                               {Resource::PeakFlops, Seconds(0.9), 0.081, ""}};
  EXPECT_EQ(limit_text("Plan 1", explanation),
            "Plan 1 is compute-bound: GEMMs take 68 % of the step and attention 19 %; exposed "
            "communication takes 10 %, most of it tensor-parallel. 10 % more peak FLOP/s would "
            "make it 8.1 % faster; no other resource helps by more than 1 %.");
  explanation.shares = {{TimeUse::Communication, 0.42, sim::StepPart::ExposedData, 0.2},
                        {TimeUse::Bubble, 0.3, std::nullopt, 0.0}};
  explanation.sensitivities = {{Resource::Latency, Seconds(1.0), 0.0, ""}};
  EXPECT_EQ(limit_text("Plan 2", explanation),
            "Plan 2 has no single bottleneck: exposed communication takes 42 % of the step, the "
            "largest part of it data-parallel; the pipeline bubble takes 30 %. 10 % more of any "
            "single resource would not make it faster.");
}

TEST(Wording, SaysHowFarASearchIs) {
  SearchProgress progress;
  progress.checked = 31'000;
  EXPECT_EQ(progress_text(progress), "31,000 plans checked, 0 simulated");
  progress.simulated = 240;
  progress.best_step = Seconds(3.2);
  progress.open = 1203;
  EXPECT_EQ(progress_text(progress),
            "31,000 plans checked, 240 simulated, best step 3.2 s, 1,203 not ruled out yet");
  progress.open = 0;
  EXPECT_EQ(progress_text(progress),
            "31,000 plans checked, 240 simulated, best step 3.2 s, the best plans are final");
}

// 1,024 is not divisible by 5 or 25, which every plan for 500 GPUs has among its replicas.
TEST(Wording, SaysWhyNoPlanFitsAndWhatWould) {
  PlanRequest request = request_for("llama3-70b", 500, 1024, 8192);
  const SearchResult result = search(request);
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_THAT(no_plan_text(request, *result.infeasible),
              StartsWith("No plan fits 500 GPUs: a global batch of 1,024 is not divisible by the "
                         "data-parallel sizes that 500 GPUs allow ("));
  std::vector<std::string> remedies;
  for (const std::vector<Remedy>& each : result.infeasible->closes_it)
    remedies.push_back(remedy_text(each, request.cluster));
  EXPECT_THAT(remedies, Contains("512 GPUs"));
  EXPECT_THAT(remedies, Contains(StartsWith("a global batch of 1,0")));
  request.gpus = 512;
  EXPECT_TRUE(search(request).plans.size() > 0);
}

TEST(Wording, SaysHowMuchMemoryIsMissing) {
  const PlanRequest request = request_for("llama3-70b", 4, 1024, 8192);
  const SearchResult result = search(request);
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_THAT(no_plan_text(request, *result.infeasible),
              AllOf(StartsWith("No plan fits 4 GPUs: the smallest one needs "),
                    HasSubstr(" of memory per GPU, "), HasSubstr(" more than the ")));
}

TEST(Wording, SaysWhyScalingStopsOrPaysMoreThanInFull) {
  EXPECT_EQ(cause_text(KneeCause{sim::StepPart::ExposedData, 8, 1024, 0.042, 0.31}),
            "the share of exposed data-parallel communication in the step grows from 4 % on 8 "
            "accelerators to 31 % on 1,024");
  EXPECT_EQ(cause_text(SuperlinearCause{8, 64, 1.07, MemoryMeasure::Recomputation}),
            "the plan of the smallest size, 8 accelerators, recomputes activations for lack of "
            "memory, which those of larger sizes need not; 64 accelerators reach 107 %");
  EXPECT_THAT(cause_text(SuperlinearCause{8, 64, 1.07, std::nullopt}),
              HasSubstr("uses each accelerator less well; 64 accelerators"));
}

TEST(Wording, FieldsAreNamedByTheirPathWithoutUnit) {
  EXPECT_EQ(field_text({{"plan", "zero_stage"}, {}, {}}), "zero stage");
  EXPECT_EQ(field_text({{"cluster", "node", "nic", "bandwidth_bytes_per_s"}, {}, {}}),
            "cluster, node, nic, bandwidth");
}

TEST(Wording, ALackingLinkIsNamed) {
  const PlanRequest request = request_for("llama3-8b", 8, 32, 8192);
  EXPECT_EQ(lacking_link_text(SweepAxis::ScaleOutBandwidth, request.cluster),
            "There is nothing to sweep: " + request.cluster.name + " has no NIC.");
}

TEST(Wording, NamesChangesThatBelongTogether) {
  const auto text = [](const std::vector<Remedy>& remedies) {
    return remedy_text(remedies, load_cluster("dgx-h100"));
  };
  const std::vector<Remedy> both = {{RemedyField::Gpus, std::int64_t{1024}},
                                    {RemedyField::GlobalBatch, std::int64_t{2048}}};
  EXPECT_EQ(text(both), "1,024 GPUs and a global batch of 2,048");
  EXPECT_EQ(remedy_text(both, load_cluster("tpu-v5e-torus")),
            "1,024 TPUs and a global batch of 2,048");
  EXPECT_EQ(text({{RemedyField::MaxMemory, gigabytes(72.5)}}), "a memory limit of 72.5 GB");
  EXPECT_EQ(text({{RemedyField::NotForbidden, Constraint{PlanField::ZeroStage, {3}}}}),
            "zero=3 allowed");
}

}  // namespace
}  // namespace shardwright::planner
