// The sizes that a model may have. They are far beyond any published model and small enough that
// the elements of one tensor fit in 64 bits.
#pragma once

#include "core/base/json_reader.hpp"

namespace shardwright {

inline constexpr IntegerRange kLayerRange{1, 10'000};
// The limits of `hidden` and `ffn_hidden`.
inline constexpr IntegerRange kWidthRange{1, 4'000'000};
inline constexpr IntegerRange kWidthOrZeroRange{0, 4'000'000};
// The capacity of experts over an even share; 0: there is no limit.
inline constexpr NumberRange kCapacityRange{0.0, 100.0, false};
inline constexpr double kLeastCapacity = 0.25;
inline constexpr IntegerRange kHeadRange{1, 65'536};
inline constexpr IntegerRange kHeadDimRange{1, 65'536};
inline constexpr IntegerRange kVocabRange{1, 100'000'000};
inline constexpr IntegerRange kTokenRange{1, 1'000'000'000};
inline constexpr IntegerRange kTokenOrZeroRange{0, 1'000'000'000};
// Tables of positions have a few unused rows besides those of the tokens.
inline constexpr IntegerRange kPositionRange{0, 1'000'000'100};
inline constexpr IntegerRange kExpertRange{1, 65'536};
inline constexpr IntegerRange kExpertOrZeroRange{0, 65'536};
inline constexpr IntegerRange kLayerCountOrZeroRange{0, 10'000};
inline constexpr NumberRange kRopeThetaRange{1.0, 1e12, true};
inline constexpr NumberRange kRopeFactorRange{1.0, 1e6};
inline constexpr NumberRange kRopeMscaleRange{0.0, 1e3, false};
inline constexpr double kMaxParameters = 1e18;

}  // namespace shardwright
