// The kinds of runs that published measurements cover.
//
// Two runs are of one kind if they train models with experts or both without, on accelerators of
// one architecture, with software of one family, in 16-bit or both in 8-bit formats, and use the
// same kinds of parallelism, schedules, offload and adapters. The ground of a kind reaches to four
// times as many accelerators as the largest published run of it, and to sequences twice as long.
// measurements/validated_ground.json lists the kinds; tools/write_validation_page writes it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/spec/scenario.hpp"

namespace shardwright::validation {

// The kinds of parallelism that the plan uses, by which rows are summed up: "fsdp+tp+pp", or "dp"
// for none of them.
std::string parallelism_text(const Plan& plan);

// The same with the schedules and offloads that tell runs apart: "tp+pp+zero-bubble".
std::string run_kind_text(const Plan& plan);

// The published runs that resemble those of one model, cluster, stack and precision.
class ValidatedGround {
 public:
  // The plan of the scenario only says in which format it computes. Leaves out the runs of the
  // source `except`.
  explicit ValidatedGround(const Scenario& scenario, const std::string& except = "");

  bool covers(const Plan& plan) const;

  // The reason why the plan lies outside, as a part of a sentence: "no published run of … used
  // tp+ep+fsdp". Empty if it lies inside.
  std::string gap(const Plan& plan) const;

  // The number of published runs of the plan's kind.
  std::int64_t runs(const Plan& plan) const;

  // The published runs of one kind.
  struct Reach {
    std::int64_t runs = 0, most_accelerators = 0, longest_sequence = 0;
  };
  // By the names of the kinds, as run_kind_text() writes them.
  std::map<std::string, Reach> kinds() const;

  // "dense models in 16-bit formats on hopper accelerators with megatron software".
  const std::string& what() const { return what_; }

 private:
  const Reach* reach_of(const Plan& plan) const;

  // By the bits of a run's kind.
  std::map<unsigned, Reach> reach_;
  std::string what_;
};

}  // namespace shardwright::validation
