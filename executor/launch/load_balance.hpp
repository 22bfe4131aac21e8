// A run that moves work away from ranks that have become slower (docs/executor.md). The ranks of a
// run and its launcher settle it through the store, while training goes on:
//
//   rank 0    finds slow ranks            balance.slowdowns = "NUMBER SLOWDOWN SLOWDOWN …"
//   launcher  asks the planner            balance.answer    = "NUMBER yes", "NUMBER no"
//   rank 0    tells the other ranks, which all save their state and end
//   launcher  starts them anew under the planner's plan
//
// With "no" the run goes on as it is, and rank 0 expects these slowdowns from then on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/program/program.hpp"
#include "core/spec/plan.hpp"
#include "executor/comm/tcp_store.hpp"
#include "executor/runtime/slow_ranks.hpp"

namespace shardwright::executor {

// Throws InputError if no work of the plan can move between ranks. `source` names the plan file,
// which is the one that the run began with.
void check_can_rebalance(const Plan& plan, const std::string& source);

// Rank 0's side.
class SlowRankReports {
 public:
  // `expected`: the slowdowns that the plan was made for; empty: all are 1.
  SlowRankReports(const Program& program, std::vector<double> expected, Store& store);

  // Called after each step with the seconds that each rank has computed in it. Logs and reports
  // ranks whose speed has changed. Throws CommunicationError.
  void add(std::int64_t step, std::span<const double> seconds);
  // True once the launcher has another plan.
  bool has_other_plan() const { return has_other_plan_; }
  std::optional<SlowestRank> slowest() const { return watch_.slowest(); }

 private:
  void report(std::int64_t step, const std::vector<double>& slowdown);
  void read_answer();

  SlowRankWatch watch_;
  std::vector<double> expected_;
  Store& store_;
  std::int64_t reports_ = 0;
  // The reported slowdowns, until the launcher answers.
  std::optional<std::vector<double>> asked_;
  bool has_other_plan_ = false;
};

// The launcher's side.
class LoadBalancer {
 public:
  // `planner` is the command shardwright; `plan` is the file of the plan that the run began with.
  // Plans go to files in `out`.
  LoadBalancer(std::string planner, std::string plan, std::filesystem::path out)
      : planner_(std::move(planner)), plan_(std::move(plan)), out_(std::move(out)), now_(plan_) {}

  // Called again and again while ranks run: asks the planner if rank 0 has reported, and answers.
  void poll(LocalStore& store);
  // Called when ranks have ended. Returns the plan file to continue with, if there is another one
  // since the last call.
  std::optional<std::string> take_plan();
  // The options by which ranks know the slowdowns of their plan.
  std::vector<std::string> options() const;

 private:
  // Asks the planner for a plan by the last slowdowns. Returns true if there is one, in `next_`.
  bool finds_plan();

  std::string planner_, plan_;
  std::filesystem::path out_;
  std::string now_;
  std::optional<std::string> next_;
  // The last ones that rank 0 has reported; empty: none.
  std::vector<double> slowdowns_;
  std::int64_t plans_ = 0;
};

}  // namespace shardwright::executor
