// What the users of a stack do where a source does not say it.
#pragma once

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// True where the stack shards states in place of cutting the model, unless told otherwise.
bool shards_by_habit(const TrainingRow& row, const StackSpec& stack);

// DeepSeek's stack cuts models with experts over pipeline and expert ranks alone (arXiv 2412.19437,
// section 3.2; 2405.04434, section 3.1.3).
bool leaves_layers_whole(const ModelSpec& model, const StackSpec& stack);

// Whether the stack recomputes norms and projections and no more, whatever the memory (arXiv
// 2412.19437, section 3.2.3).
bool recomputes_parts_by_habit(const StackSpec& stack);

// Of a plan whose degrees, chunks, batch and precision are set: 1F1B, interleaved where stages have
// several chunks, and with DeepSeek's stack what its reports name.
ScheduleKind usual_schedule(const ModelSpec& model, const StackSpec& stack, const Plan& plan);

// Whether pipelines are interleaved where a source does not say it: of NVIDIA's stacks nearly all
// that state their chunks have several, of others nearly none, whose default is one.
bool interleaves_by_habit(const StackSpec& stack);

// The stage that the stack's name holds ("DeepSpeed ZeRO-2"), or its family's.
int usual_zero_stage(const TrainingRow& row, const StackSpec& stack);

bool usual_sequence_parallel(const StackSpec& stack);

// Of what the stack is able to do.
bool usually_overlaps_gradients(const StackSpec& stack, const Plan& plan);

// False for software that was there before context parallelism (Megatron Core 0.5, March 2024) and
// for accelerators that had gone by then.
bool has_context_parallelism(const TrainingRow& row, const StackSpec& stack);

}  // namespace shardwright::sim
