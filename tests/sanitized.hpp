// Whether the tests run under a sanitizer.
#pragma once

namespace shardwright {

// Sanitizers slow simulations and searches down tenfold, and look for other faults than wrong
// figures: there a long test takes less, or leaves its figures to the optimised suite.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace shardwright
