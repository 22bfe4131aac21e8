#include "sim/cost/cost.hpp"

namespace shardwright::sim {

const char* name_of(CostBasis basis) {
  switch (basis) {
    case CostBasis::Measured:
      return "measured";
    case CostBasis::Formula:
      return "formula";
    case CostBasis::Extrapolated:
      return "extrapolated";
  }
  return "";
}

void BasisTimes::add(CostBasis basis, Seconds time) {
  switch (basis) {
    case CostBasis::Measured:
      measured += time;
      break;
    case CostBasis::Formula:
      formula += time;
      break;
    case CostBasis::Extrapolated:
      extrapolated += time;
      break;
  }
}

BasisTimes& BasisTimes::operator+=(const BasisTimes& other) {
  measured += other.measured;
  formula += other.formula;
  extrapolated += other.extrapolated;
  return *this;
}

}  // namespace shardwright::sim
