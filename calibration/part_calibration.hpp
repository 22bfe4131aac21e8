// The parts of a calibration: kernels, exchanges, and the stack.
#pragma once

#include <string>
#include <vector>

#include "calibration/calibrate.hpp"
#include "calibration/run_samples.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/exchange_sample.hpp"
#include "core/spec/provenance.hpp"

namespace shardwright::calibration {

class FigureLog {
 public:
  FigureLog(std::string source, Confidence confidence, std::vector<CalibratedFigure>& figures)
      : source_(std::move(source)), confidence_(confidence), figures_(&figures) {}

  // Parameters of `result` are named by their pointers within the part of the cluster at `part`,
  // whose `sources` those that were fitted join.
  void add(const std::string& part, const std::string& about, const FitResult& result,
           Sources& sources) const;
  // A figure that others contain once they are fitted, and which therefore becomes 1.
  void add_contained(const std::string& pointer, const std::string& about, double before) const;

 private:
  std::string source_;
  Confidence confidence_;
  std::vector<CalibratedFigure>* figures_;
};

// A probe's timings, on a machine that was interrupted now and then: an exchange takes no longer
// than a larger one of its group, so each has the least time of those of its size and above. Else
// one interrupted small message makes up for a bandwidth that the large ones do not have.
std::vector<ExchangeSample> bounded_by_larger(std::vector<ExchangeSample> samples);

// A probe's timing with its groups on the nodes of the cluster.
ExchangeTiming placed(const ExchangeSample& sample, const ClusterSpec& cluster);

inline bool is_cpu(const AcceleratorSpec& device) {
  return device.architecture == Architecture::Cpu;
}

// Fits curves to the kernels that stream through memory, and to products and attention too on a CPU
// or a device whose products have curves; otherwise the KernelEfficiency of the device. Each kind
// and phase of which these timings determine any figure gets a curve. Those ("norm forward") that
// have none and get none are returned: they are priced as before, by the curve of another phase or
// the formula. Matrix rates that were measured `at_training_clock` contain the factor for it.
std::vector<std::string> calibrate_kernels(ClusterSpec& cluster,
                                           const std::vector<KernelSample>& samples,
                                           const StackSpec& stack, bool at_training_clock,
                                           const FigureLog& log);

// Fits the figures of links and network, and alpha and beta for each kind of exchange in groups of
// each shape. Returns the exchanges ("all_reduce of 2 on 1 node") that have no curve, and of which
// these timings determine none: they stay without one.
std::vector<std::string> calibrate_exchanges(ClusterSpec& cluster,
                                             const std::vector<ExchangeTiming>& timings,
                                             const FigureLog& log);

// Fits the network between the cluster's pools. Where the cluster states nothing of it, the fit
// starts at the slowest network cards and the longest latency of the pools.
void calibrate_between_pools(ClusterSpec& cluster, const std::vector<PoolExchange>& exchanges,
                             const FigureLog& log);

// Fits the figures that runs determine of the stack (the host's time for an op, the slowdown beside
// collectives, the memory that no tensor explains) and of the variation of speed among ranks.
// Without a stack or samples nothing changes.
void calibrate_stack(ClusterSpec& cluster, const std::vector<MeasuredRun>& runs,
                     const std::vector<RunSamples>& samples, const FigureLog& log);

}  // namespace shardwright::calibration
