#include "gui/models/read_files.hpp"

#include <QFileInfo>
#include <algorithm>

#include "gui/models/chosen_request.hpp"
#include "gui/models/opened_file.hpp"
#include "gui/models/plan_search.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr std::int64_t kBestPlans = 12;

ReadFile read_file(const QString& path, const ReadingWatch& watch) {
  ReadFile read{open_file(path, watch), nullptr, std::nullopt, nullptr, false};
  if (const auto* scenario = std::get_if<Scenario>(&read.file.content)) {
    read.plans = std::make_shared<const PlanSet>(plan_set_of(*scenario, path));
  } else if (const auto* set = std::get_if<PlanSetPointer>(&read.file.content)) {
    if ((*set)->plans.empty())
      throw InputError(path.toStdString(), {{"/plans", "no plan", "at least one"}});
    read.plans = *set;
  } else if (const auto* run = std::get_if<RunFolder>(&read.file.content)) {
    read.measured = read_measured_step(*run, watch);
    if (run->plan.isEmpty()) return read;
    const Scenario plan = load_scenario(run->plan.toStdString());
    read.plans = std::make_shared<const PlanSet>(plan_set_of(plan, run->plan));
  }
  return read;
}

// Runs `work` and collects its problems with `path` as texts after `prefix`. Problems of a file
// name it themselves.
template <class Work>
void collect(std::vector<FileProblem>& problems, const QString& path, const QString& prefix,
             const Work& work) {
  try {
    work();
  } catch (const ReadingStopped&) {  // The file is not at fault.
  } catch (const InputError& error) {
    problems.push_back({path, prefix + error_text(error)});
  } catch (const std::exception& error) {
    problems.push_back({path, prefix + to_qstring(error.what())});
  }
}

PlanSetPointer best_plans(const ScenarioChoice& choice, const QString& origin,
                          const std::stop_token& stop) {
  planner::PlanRequest request = load_request(choice);
  request.limits = planner::narrow_limits();
  request.top = kBestPlans;
  request.stop = stop;
  PlanSet set = plan_set_of(request, planner::search(request));
  if (set.plans.empty()) throw RuntimeFailure("no plan of the scenario fits");
  set.origin = origin;
  return std::make_shared<const PlanSet>(std::move(set));
}

// Plans the scenario with each of two files of a kind that are fields of it. `choice_with` returns
// the scenario with a file.
template <class Content, class ChoiceWith>
void plan_with_both(ReadFiles& read, const ChoiceWith& choice_with, ReadingProgress& progress,
                    const std::stop_token& stop) {
  std::vector<ReadFile*> both;
  for (ReadFile& file : read.files) {
    if (std::holds_alternative<Content>(file.file.content)) both.push_back(&file);
  }
  if (both.size() < 2) return;
  for (ReadFile* file : both) file->is_one_of_many = true;
  both.resize(2);
  for (ReadFile* file : both) {
    const QString& path = file->file.path;
    progress.doing(u"Planning with %1"_s.arg(QFileInfo(path).fileName()));
    const ScenarioChoice choice = choice_with(QFileInfo(path).absoluteFilePath().toStdString());
    collect(read.problems, path, path + u": "_s,
            [&] { file->plans = best_plans(choice, path, stop); });
    if (file->plans) file->choice = choice;
  }
}

}  // namespace

ReadFiles read_files(const QStringList& paths, const ScenarioChoice& choice,
                     ReadingProgress& progress, const std::stop_token& stop) {
  ReadFiles read;
  progress.begin(paths);
  qint64 end = 0;
  for (const QString& path : paths) {
    if (stop.stop_requested()) return read;
    progress.doing(u"Reading %1"_s.arg(QFileInfo(path).fileName()));
    end += bytes_to_read(path);
    collect(read.problems, path, {},
            [&] { read.files.push_back(read_file(path, progress.watch(stop))); });
    progress.skip_to(end);
  }
  ScenarioChoice of_cluster = choice;
  of_cluster.accelerator = of_cluster.node = of_cluster.fabric = "";
  plan_with_both<ClusterSpec>(
      read, [&](const std::string& file) { return on_cluster(of_cluster, file); }, progress, stop);
  const auto with_model = [&](const std::string& file) {
    ScenarioChoice with = choice;
    with.model = file;
    return with;
  };
  plan_with_both<ModelSpec>(read, with_model, progress, stop);
  return read;
}

qint64 bytes_to_read(const QString& path) {
  const QFileInfo info(path);
  if (!info.isDir()) return info.isFile() ? info.size() : 0;
  const auto run = find_run(path);
  qint64 bytes = 0;
  if (run) {
    for (const QString& timeline : run->timelines) bytes += QFileInfo(timeline).size();
  }
  return bytes;
}

void ReadingProgress::begin(const QStringList& paths) {
  qint64 total = 0;
  for (const QString& path : paths) total += bytes_to_read(path);
  const std::lock_guard lock(mutex_);
  state_ = {{}, 0, total};
}

void ReadingProgress::doing(const QString& what) {
  const std::lock_guard lock(mutex_);
  state_.doing = what;
}

void ReadingProgress::skip_to(qint64 bytes) {
  const std::lock_guard lock(mutex_);
  state_.bytes = std::max(state_.bytes, bytes);
}

ReadingWatch ReadingProgress::watch(const std::stop_token& stop) {
  return {[this](std::uintmax_t bytes) {
            const std::lock_guard lock(mutex_);
            state_.bytes += static_cast<qint64>(bytes);
          },
          stop};
}

ReadingProgress::State ReadingProgress::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

}  // namespace shardwright::gui
