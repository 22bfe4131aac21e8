#include "executor/launch/load_balance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/printable_text.hpp"
#include "core/spec/plan_text.hpp"
#include "core/spec/pools.hpp"
#include "executor/comm/socket.hpp"
#include "executor/launch/local_launcher.hpp"
#include "executor/telemetry/log.hpp"

namespace shardwright::executor {
namespace {

constexpr const char* kSlowdownsKey = "balance.slowdowns";
constexpr const char* kAnswerKey = "balance.answer";

std::string answer_to(const std::string& report, bool yes) {
  return fmt::format("{} {}", report, yes ? "yes" : "no");
}

std::vector<double> read_slowdowns(std::istringstream& stream) {
  std::vector<double> slowdowns;
  for (double value = 0.0; stream >> value;) slowdowns.push_back(value);
  return slowdowns;
}

}  // namespace

void check_can_rebalance(const Plan& plan, const std::string& source) {
  ProblemList problems(source);
  if (names_pools(plan)) {
    problems.add(plan.stage_pools.empty() ? "/plan/replica_pools" : "/plan/stage_pools",
                 fmt::format("{}", fmt::join(pools_of(plan), ", ")),
                 "for --rebalance: no such key, since it makes pools by the ranks' speeds");
  }
  if (plan.replicas != ReplicaAgreement()) {
    problems.add("/plan/data_parallel", replicas_text(plan),
                 "for --rebalance: gradients that are added up in each step, uncompressed");
  } else if (movable_parts(plan).empty()) {
    problems.add(
        "/plan",
        fmt::format("dp {}, ZeRO {}, pp {}, vpp {}", plan.dp, plan.zero_stage, plan.pp, plan.vpp),
        "for --rebalance: replicas with ZeRO 0 or 1, whose microbatches can differ, or a "
        "pipeline with vpp 1, whose layers can move");
  }
  problems.throw_if_any();
}

SlowRankReports::SlowRankReports(const Program& program, std::vector<double> expected, Store& store)
    : watch_(work_of_ranks(program), expected), expected_(std::move(expected)), store_(store) {
  if (expected_.empty()) expected_.assign(static_cast<std::size_t>(program.plan.world_size()), 1.0);
}

void SlowRankReports::add(std::int64_t step, std::span<const double> seconds) {
  watch_.add(seconds);
  if (asked_) return read_answer();
  if (const auto slowdown = watch_.changed()) report(step, *slowdown);
}

void SlowRankReports::report(std::int64_t step, const std::vector<double>& slowdown) {
  for (std::size_t rank = 0; rank < slowdown.size(); ++rank) {
    if (slowdown[rank] == expected_[rank]) continue;
    const std::string name = fmt::format("rank {} on {}", rank, host_name());
    if (slowdown[rank] > 1.0) {
      log_warning(fmt::format(
          "{} computes {:.2f} times as long as others do for the same work, by steps {} to {}",
          name, slowdown[rank], step + 1 - static_cast<std::int64_t>(SlowRankWatch::kSteps), step));
    } else {
      log_info(fmt::format("{} computes as fast as the others again", name));
    }
  }
  store_.set(kSlowdownsKey, fmt::format("{} {}", ++reports_, fmt::join(slowdown, " ")));
  asked_ = slowdown;
}

void SlowRankReports::read_answer() {
  const std::optional<std::string> answer = store_.find(kAnswerKey);
  const std::string number = fmt::format("{}", reports_);
  if (answer == answer_to(number, true)) has_other_plan_ = true;
  if (answer != answer_to(number, false)) return;
  expected_ = *asked_;
  watch_.expect(*std::exchange(asked_, std::nullopt));
}

void LoadBalancer::poll(LocalStore& store) {
  const auto report = store.entry(kSlowdownsKey);
  if (!report) return;
  std::istringstream stream(report->value);
  std::string number;
  stream >> number;
  const auto answer = store.entry(kAnswerKey);
  if (answer && answer->value.rfind(number + " ", 0) == 0) return;
  slowdowns_ = read_slowdowns(stream);
  store.set(kAnswerKey, answer_to(number, finds_plan()));
}

bool LoadBalancer::finds_plan() {
  const std::string number = fmt::format("{}", ++plans_);
  const std::filesystem::path file = out_ / ("plan-balanced-" + number + ".json");
  const std::filesystem::path report = out_ / ("rebalance-" + number + ".json");
  try {
    if (!rebalance(planner_, {plan_, now_, slowdowns_, file, report})) return false;
    const auto found = read_json_file(report);
    log_info(fmt::format(
        "continuing with {}: {}; the planner expects steps that are {:.0f} % faster", file.string(),
        found.at("shares").get<std::string>(), 100.0 * found.at("gain_ratio").get<double>()));
  } catch (const InputError& error) {
    log_warning(printable(error.what()));
    return false;
  } catch (const nlohmann::json::exception& error) {
    log_warning(fmt::format("{}: {}", report.string(), error.what()));
    return false;
  }
  next_ = file.string();
  return true;
}

std::optional<std::string> LoadBalancer::take_plan() {
  std::optional<std::string> next = std::exchange(next_, std::nullopt);
  if (next) now_ = *next;
  return next;
}

std::vector<std::string> LoadBalancer::options() const {
  if (slowdowns_.empty()) return {};
  return {"--slowdowns", fmt::format("{}", fmt::join(slowdowns_, ","))};
}

}  // namespace shardwright::executor
