// How many of the random samples a test draws.
#pragma once

namespace shardwright::planner {

// A search takes some ten times as long under a sanitizer, which looks for other faults than wrong
// answers: there one sample in so many is enough.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSampleShare = 4;
#else
inline constexpr int kSampleShare = 1;
#endif

}  // namespace shardwright::planner
