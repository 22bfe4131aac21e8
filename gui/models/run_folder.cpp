#include "gui/models/run_folder.hpp"

#include <QDir>
#include <QFileInfo>
#include <QRegularExpression>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"
#include "core/lowering/lowering.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::gui {
namespace {

// "timeline-STEP-RANK.json" of the last step, by rank.
std::vector<QString> last_timelines(const QDir& folder) {
  static const QRegularExpression kName(QStringLiteral(R"(^timeline-(\d+)-(\d+)\.json$)"));
  std::map<qlonglong, std::map<qlonglong, QString>> steps;
  for (const QString& name : folder.entryList({QStringLiteral("timeline-*.json")}, QDir::Files)) {
    const auto match = kName.match(name);
    if (match.hasMatch())
      steps[match.captured(1).toLongLong()][match.captured(2).toLongLong()] = folder.filePath(name);
  }
  std::vector<QString> files;
  if (steps.empty()) return files;
  for (const auto& [rank, file] : steps.rbegin()->second) files.push_back(file);
  return files;
}

void append(Timeline& all, const Timeline& rank) {
  const auto first = static_cast<std::uint32_t>(all.spans.size());
  all.origin = rank.origin;
  all.ranks.insert(all.ranks.end(), rank.ranks.begin(), rank.ranks.end());
  all.spans.insert(all.spans.end(), rank.spans.begin(), rank.spans.end());
  all.memory.insert(all.memory.end(), rank.memory.begin(), rank.memory.end());
  for (const Flow& flow : rank.flows) all.flows.push_back({flow.from + first, flow.to + first});
}

// What tells the kernels of a program apart: an op of this name does the same in every layer.
using KernelName = std::tuple<std::string, Phase, OpKind>;

std::map<KernelName, const Op*> kernels_of(const Program& program) {
  std::map<KernelName, const Op*> kernels;
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      if (!is_communication(op.kind) && op.kind != OpKind::Offload)
        kernels.emplace(KernelName(op.name, op.phase, op.kind), &op);
    }
  }
  return kernels;
}

struct Timings {
  MeasuredKernel kernel;
  std::vector<double> seconds;
};

std::vector<Timings> timings_of(const Program& program, const Timeline& timeline) {
  const auto kernels = kernels_of(program);
  std::vector<Timings> timings;
  for (const Span& span : timeline.spans) {
    const auto found = kernels.find(KernelName(span.name, span.phase, span.kind));
    if (found == kernels.end() || span.duration <= Seconds()) continue;
    const Op& op = *found->second;
    auto known = std::find_if(timings.begin(), timings.end(), [&](const Timings& each) {
      return each.kernel.kind == op.kind && each.kernel.precision == op.precision &&
             each.kernel.work == op.work;
    });
    if (known == timings.end()) {
      Timings first;
      first.kernel = {op.kind, op.precision, op.work, {}};
      known = timings.insert(timings.end(), std::move(first));
    }
    known->seconds.push_back(span.duration.value());
  }
  return timings;
}

MeasuredKernel median_of(Timings& timings) {
  auto middle = timings.seconds.begin() + static_cast<std::ptrdiff_t>(timings.seconds.size() / 2);
  std::nth_element(timings.seconds.begin(), middle, timings.seconds.end());
  timings.kernel.time = Seconds(*middle);
  return timings.kernel;
}

}  // namespace

std::optional<RunFolder> find_run(const QString& folder) {
  const QDir files(folder);
  RunFolder run{folder, files.filePath(QStringLiteral("metrics.jsonl")), last_timelines(files), {}};
  if (!QFileInfo::exists(run.metrics)) return std::nullopt;
  const QString plan = files.filePath(QStringLiteral("plan.json"));
  if (QFileInfo::exists(plan)) run.plan = plan;
  return run;
}

std::shared_ptr<const Timeline> read_measured_step(const RunFolder& run) {
  if (run.timelines.empty()) return nullptr;
  auto all = std::make_shared<Timeline>();
  for (const QString& path : run.timelines) {
    const std::string file = path.toStdString();
    append(*all, read_timeline(read_json_file(file), file));
  }
  return all;
}

RunCalibration calibrate_with(const Scenario& scenario, const Timeline& timeline,
                              Seconds measured) {
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  std::vector<Timings> timings = timings_of(program, timeline);
  if (timings.empty()) throw RuntimeFailure("the recorded step has no kernel of the chosen plan");
  RunCalibration calibration;
  calibration.kernels = timings.size();
  calibration.measured = measured;
  calibration.before = sim::simulate_step(scenario).step;
  Scenario calibrated = scenario;
  for (Timings& each : timings)
    calibrated.cluster.accelerator.measured_kernels.push_back(median_of(each));
  calibration.after = sim::simulate_step(calibrated).step;
  return calibration;
}

}  // namespace shardwright::gui
