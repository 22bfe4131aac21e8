// Checks and preparation of the folder that a run writes into.
#pragma once

#include "core/base/folder_lock.hpp"
#include "core/spec/model_spec.hpp"
#include "executor/launch/run_options.hpp"

namespace shardwright::executor {

// Throws InputError if an earlier run would be overwritten, or its checkpoints removed, without
// --force or --resume; if --resume without --force finds metrics but no checkpoint, so that the run
// would start anew and lose them; or if the metrics of a resumed run have broken lines. Changes
// nothing.
void check_run_folder(const RunOptions& options);

// Throws InputError if the disk has less space than the most checkpoints that the run keeps at the
// same time take, those of an earlier run included, which it removes.
void check_free_space(const RunOptions& options, const ModelSpec& model);

// Creates the folder and locks it for the run. Unless the run is resumed, removes earlier
// checkpoints, so that a later --resume does not find them; timelines and metrics are removed when
// the first step begins. Throws InputError if the folder cannot be written, if another run has
// locked it, or as check_run_folder does.
[[nodiscard]] FolderLock prepare_run_folder(const RunOptions& options);

}  // namespace shardwright::executor
