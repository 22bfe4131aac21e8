#include "sim/run/failure_source.hpp"

#include <cmath>

namespace shardwright::sim {

FailureSource::FailureSource(const FailureProcess& process, double rate_factor, RandomStream random)
    : rate_(process.rate.value() * rate_factor),
      shape_(process.shape),
      age_(process.age.value()),
      kept_(process.kept),
      replaced_(process.replaced),
      random_(random) {}

double FailureSource::time_after(double exponential) const {
  if (shape_ == 1.0 || age_ <= 0.0) return now_ + exponential / rate_;
  // The expected count until t is rate * age / shape * ((1 + t / age)^shape - 1).
  const double grown = std::pow(1.0 + now_ / age_, shape_) + exponential * shape_ / (rate_ * age_);
  return age_ * (std::pow(grown, 1.0 / shape_) - 1.0);
}

std::optional<Interruption> FailureSource::next(const RunModel& model) {
  if (rate_ <= 0.0 || kept_ <= 0.0) return std::nullopt;
  while (true) {
    now_ = time_after(random_.exponential());
    if (!std::isfinite(now_)) return std::nullopt;
    // Each failure draws the same numbers, whatever they decide.
    const bool happens = random_.uniform() < kept_;
    Interruption interruption{Seconds(now_)};
    interruption.correlated = random_.uniform() < model.correlated;
    interruption.replaced = random_.uniform() < replaced_;
    interruption.manual = random_.uniform() < model.manual;
    interruption.repair = random_.exponential();
    if (happens) return interruption;
  }
}

}  // namespace shardwright::sim
