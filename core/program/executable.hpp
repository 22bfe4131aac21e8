// What the executor can train. Everything else is lowered and simulated, but the executor refuses
// to run it, and the window to start it.
#pragma once

#include <cstdint>
#include <string>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// The longest rows, in elements, that the norm kernels on a GPU support. They read rows of a
// multiple of 8 elements in packs of 8, others element by element.
constexpr std::int64_t longest_norm_row(bool multiple_of_8) {
  return multiple_of_8 ? 16'384 : 2'048;
}

// Throws InputError with everything that the executor lacks to train this model under this plan and
// stack, on the CPU or a GPU. `source` names the plan file.
void check_executable(const ModelSpec& model, const Plan& plan, const StackSpec& stack, bool on_gpu,
                      const std::string& source);

}  // namespace shardwright
