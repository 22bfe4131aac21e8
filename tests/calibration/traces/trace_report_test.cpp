// Unions of intervals, families of kernels, and the collectives of several ranks.
#include "calibration/traces/trace_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "calibration/traces/intervals.hpp"
#include "calibration/traces/rank_matching.hpp"

namespace shardwright::calibration {
namespace {

std::vector<Interval> any_intervals() {
  std::vector<Interval> intervals;
  for (int i = *rc::gen::inRange(0, 12); i > 0; --i) {
    const std::int64_t begin = *rc::gen::inRange(0, 40);
    intervals.push_back({begin, begin + *rc::gen::inRange(0, 12)});
  }
  return intervals;
}

// The nanoseconds that the intervals cover, one by one.
std::set<std::int64_t> covered(const std::vector<Interval>& intervals) {
  std::set<std::int64_t> points;
  for (const Interval& each : intervals)
    for (std::int64_t at = each.begin; at < each.end; ++at) points.insert(at);
  return points;
}

RC_GTEST_PROP(Intervals, UnionAndDifferenceAreThoseOfTheirPoints, ()) {
  const std::vector<Interval> first = any_intervals(), second = any_intervals();
  const IntervalUnion a = union_of(first), b = union_of(second), rest = difference(a, b);
  RC_ASSERT(covered(a) == covered(first));
  std::set<std::int64_t> expected = covered(first);
  for (const std::int64_t point : covered(second)) expected.erase(point);
  RC_ASSERT(covered(rest) == expected);
  RC_ASSERT(static_cast<std::size_t>(seconds_of(a) * 1e9 + 0.5) == covered(first).size());
  for (std::size_t i = 1; i < a.size(); ++i) RC_ASSERT(a[i - 1].end < a[i].begin);
}

// Names from public traces.
TEST(KernelCategory, KnowsTheFamiliesOfKernels) {
  using enum KernelCategory;
  const std::pair<const char*, KernelCategory> names[] = {
      {"nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT", Gemm},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>",
       Gemm},
      {"sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw", Gemm},
      {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64", Gemm},
      {"_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weight", Gemm},
      {"void cublasLt::splitKreduce_kernel<32, 16, int, float>", Gemm},
      {"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnBwdSm90<x>>>",
       Attention},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128", Attention},
      {"attn_fwd", Attention},
      {"void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<x>>",
       Attention},
      {"void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)", Elementwise},
      {"void flashinfer::activation::act_and_mul_kernel<__half, silu>(__half*)", Elementwise},
      {"void tensorrt_llm::kernels::quantize_with_block_size<x>(int, "
       "flashinfer::QuantizationSFLayout)",
       Elementwise},
      {"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(x)", Elementwise},
      {"void moe::dev::finalize::finalizeKernelVecLoad<KernelParams<cutlass::bfloat16_t, true>>(x)",
       Other},
      {"void cutlass::device_kernel<flash::FlashAttnFwdSm90<cutlass::bfloat16_t>>(x)", Attention},
      {"triton_poi_fused__scaled_mm__to_copy_clone_div_lift_fresh_permute_0", Elementwise},
      {"triton_red_fused__scaled_dot_product_flash_attention_view_3", Elementwise},
      {"triton_tem_fused_mm_0", Gemm},
      {"triton_tem_fused__to_copy_flex_attention_3", Attention},
      {"void transformer_engine::gated_act_kernel<8, __nv_bfloat16, float>", Elementwise},
      {"_permute_kernel", Elementwise},
      {"void userbuffers_fp16_sum_inplace_gpu_mc_ag<8>(int, int, int)", Collective},
      {"void tensorrt_llm::kernels::oneShotAllReduceKernel<__nv_bfloat16, 8>", Collective},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
       Elementwise},
      {"void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>", Elementwise},
      {"void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>",
       Elementwise},
      {"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", Collective},
      {"void deep_ep::internode::dispatch<false, 8>()", Collective},
      {"mori::EpDispatchInterNodeKernel<hip_bfloat16>", Collective},
      {"void c10d::symmetric_memory::multimem_all_gather_kernel<8>(...)", Collective},
      {"void transformer_engine::detail::cast_mxfp8_2D_kernel<x>", Elementwise},
      {"void split_embedding_codegen_forward_weighted_kernel<float, 1ul>(fbgemm_gpu::FixedDivisor)",
       Other},
      {"void at::native::(anonymous namespace)::indexSelectLargeIndex<long>", Other}};
  for (const auto& [name, category] : names) EXPECT_EQ(category_of_kernel(name), category) << name;
  EXPECT_EQ(collective_kind("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"), "reduce_scatter");
  EXPECT_EQ(collective_kind("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"), "all_reduce");
  EXPECT_EQ(collective_kind("_allgather_base"), "all_gather");
  EXPECT_EQ(collective_kind("userbuffers_fp16_sum_inplace_gpu_rr_rs_oop"), "reduce_scatter");
  EXPECT_EQ(collective_kind("userbuffers_fp16_sum_inplace_gpu_rw_ag"), "all_gather");
  EXPECT_EQ(collective_kind("ncclDevKernel_Generic"), "");
}

// A matrix times itself or its transpose, in the notation of algebra.
TEST(KernelCategory, KnowsProductsThatAreNamedAfterASquare) {
  for (const char* name : {"XXT_kernel", "ba_plus_cAA_kernel", "XTX", "fused_AAT"})
    EXPECT_EQ(category_of_kernel(name), KernelCategory::Gemm) << name;
  for (const char* name : {"ABT_kernel", "AAB", "void AA<int>()", "aa_kernel", "index_kernel", "T"})
    EXPECT_EQ(category_of_kernel(name), KernelCategory::Other) << name;
}

TEST(KernelCategory, BusBandwidthHasTheFactorsOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor("all_gather", 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor("all_to_all", 2), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor("broadcast", 8), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor("all_reduce", 1), 1.0);
}

// All-reduces of 1, 2, 3, … MB every 100 µs that end together; the ranks' times differ.
Trace trace_of_rank(std::int64_t rank, int first, int last,
                    const std::vector<std::int64_t>& durations) {
  Trace trace;
  trace.file = "rank" + std::to_string(rank);
  trace.rank = rank;
  trace.world_size = 4;
  const TraceIndex name = trace.names.index_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  for (int call = first; call < last; ++call) {
    trace.collectives.push_back(
        {"all_reduce", (call + 1) * 1'000'000, 4, "0", "", "[0, 1, 2, 3]", {}});
    DeviceActivity activity;
    activity.duration = durations[static_cast<std::size_t>(call)];
    activity.start = 100'000 * (call + 1) - activity.duration + 20 * rank;
    activity.category = KernelCategory::Collective;
    activity.name = name;
    activity.collective = static_cast<TraceIndex>(trace.collectives.size() - 1);
    trace.activities.push_back(activity);
  }
  return trace;
}

TEST(RankMatching, FindsTransferAndSkewOfRecordingsThatBeginApart) {
  const std::vector<Trace> traces = {
      trace_of_rank(0, 0, 6, {50'000, 50'000, 50'000, 50'000, 50'000, 50'000}),
      trace_of_rank(1, 2, 6, {0, 0, 30'000, 50'000, 50'000, 20'000}),
      trace_of_rank(3, 1, 5, {0, 60'000, 60'000, 60'000, 60'000, 0})};
  const auto matching = match_ranks(traces);
  ASSERT_TRUE(matching);
  // The first call is of rank 0 alone.
  EXPECT_EQ(matching->matched, 13);
  EXPECT_EQ(matching->unmatched, 1);
  ASSERT_EQ(matching->collectives.size(), 5U);
  for (const MatchedCollectives& each : matching->collectives) {
    if (each.bytes != 3'000'000) continue;
    EXPECT_EQ(each.ranks, 3);
    EXPECT_DOUBLE_EQ(each.transfer.value(), 30e-6);
    EXPECT_DOUBLE_EQ(each.skew.value(), 30e-6);
    EXPECT_DOUBLE_EQ(each.bus_bandwidth->value(), 3e6 * 1.5 / 30e-6);
  }
  EXPECT_NEAR(matching->ranks[1].waited.value(), 0.0, 1e-12);
  // In two calls ranks 0 and 1 arrive last at the same moment.
  EXPECT_EQ(matching->ranks[0].last_arrivals, 1);
  EXPECT_EQ(matching->ranks[1].last_arrivals, 2);
  EXPECT_EQ(matching->ranks[1].matched, 4);
  EXPECT_NEAR(matching->ranks[0].caused.value(), 10e-6 + 2 * 2.5e-6, 1e-12);
  EXPECT_NEAR(matching->ranks[1].caused.value(), 25e-6 + 30e-6 + 2 * 2.5e-6, 1e-12);
  EXPECT_NEAR(matching->ranks[2].caused.value(), 0.0, 1e-12);
}

// Equal calls at irregular times: only their distances tell which belongs to which.
TEST(RankMatching, BearsClocksThatDiffer) {
  std::vector<Trace> traces = {trace_of_rank(0, 0, 8, std::vector<std::int64_t>(8, 20'000)),
                               trace_of_rank(1, 1, 8, std::vector<std::int64_t>(8, 30'000))};
  for (Trace& trace : traces)
    for (DeviceActivity& each : trace.activities) {
      CollectiveCall& call = trace.collectives[static_cast<std::size_t>(each.collective)];
      const std::int64_t number = *call.bytes / 1'000'000;
      each.start += 7'000 * number * number;
      call.bytes = 5'000'000;
    }
  traces[1].clock_offset = 260'000;
  const auto matching = match_ranks(traces);
  ASSERT_TRUE(matching);
  EXPECT_EQ(matching->matched, 14);
  EXPECT_DOUBLE_EQ(matching->collectives.at(0).skew.value(), 10e-6);
}

// Twenty collectives of 50 µs on each rank.
std::vector<Trace> traces_of_three_ranks() {
  const std::vector<std::int64_t> durations(20, 50'000);
  return {trace_of_rank(0, 0, 20, durations), trace_of_rank(1, 0, 20, durations),
          trace_of_rank(2, 0, 20, durations)};
}

// What the first trace lacks is matched among the others, and counted.
TEST(RankMatching, BearsCallsThatARankLacks) {
  std::vector<Trace> traces = traces_of_three_ranks();
  for (Trace& trace : traces)
    for (CollectiveCall& call : trace.collectives) call.bytes = 1'000'000;
  traces[0].activities.erase(traces[0].activities.begin() + 9);
  traces[2].activities.erase(traces[2].activities.begin() + 4);
  const auto matching = match_ranks(traces);
  ASSERT_TRUE(matching);
  EXPECT_EQ(matching->matched, 58);
  EXPECT_EQ(matching->unmatched, 0);
  EXPECT_EQ(matching->collectives.at(0).count, 20);
  // A gap that goes unnoticed makes ranks wait by 100 µs.
  EXPECT_EQ(matching->collectives.at(0).longest_skew, Seconds(0.0));
  traces[1].activities.erase(traces[1].activities.begin() + 9);
  const auto fewer = match_ranks(traces);
  EXPECT_EQ(fewer->matched, 56);
  EXPECT_EQ(fewer->unmatched, 1);
  EXPECT_EQ(fewer->ranks.at(2).unmatched, 1);
  EXPECT_EQ(fewer->alone, 0);
}

// Two ranks lack different calls; the third one has them all, and only its times say which is
// which.
TEST(RankMatching, KeepsTheOrderOfCallsThatOnlyOneOfTwoRanksHas) {
  std::vector<Trace> traces = traces_of_three_ranks();
  // The first rank has call 9 and lacks 10, the second one lacks 9 and has 10.
  traces[0].activities.erase(traces[0].activities.begin() + 10);
  traces[1].activities.erase(traces[1].activities.begin() + 9);
  const auto matching = match_ranks(traces);
  ASSERT_TRUE(matching);
  EXPECT_EQ(matching->matched, 58);
  EXPECT_EQ(matching->unmatched, 0);
}

TEST(RankMatching, TakesOnlyDifferentRanksOfOneRun) {
  const Trace rank = trace_of_rank(0, 0, 2, {1000, 1000});
  EXPECT_FALSE(match_ranks({rank, rank}));
  EXPECT_FALSE(match_ranks({rank}));
  Trace other = trace_of_rank(1, 0, 2, {1000, 1000});
  other.world_size = 8;
  EXPECT_FALSE(match_ranks({rank, other}));
}

// Ranks of two runs that lie in one folder.
TEST(RankMatching, RefusesRecordingsOfOtherTimes) {
  std::vector<Trace> traces = {trace_of_rank(0, 0, 2, {1000, 1000}),
                               trace_of_rank(1, 0, 2, {1000, 1000})};
  constexpr std::int64_t kMinute = 60'000'000'000, kStart = 1'763'224'042'000'000'000;
  traces[0].clock_offset = kStart;
  traces[1].clock_offset = kStart + kMinute;
  EXPECT_EQ(obstacle_to_matching(traces), "") << "the clocks of two hosts may differ";
  EXPECT_TRUE(match_ranks(traces));
  traces[1].clock_offset = kStart + 40'000 * kMinute;
  EXPECT_EQ(obstacle_to_matching(traces), "rank0 and rank1 were recorded 27.8 d apart");
  EXPECT_FALSE(match_ranks(traces));
}

}  // namespace
}  // namespace shardwright::calibration
