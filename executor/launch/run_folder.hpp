// The folder that a run writes into, before it begins.
#pragma once

#include "core/base/folder_lock.hpp"
#include "executor/launch/run_options.hpp"

namespace shardwright::executor {

// Throws InputError where an earlier run would be written over, or its checkpoints removed, without
// --force or --resume; where --resume finds metrics of steps and no checkpoint, so that it would
// begin anew and lose them, without --force; or where the metrics of a run that is gone on with
// have broken lines. Changes nothing.
void check_run_folder(const RunOptions& options);

// Makes the folder, and holds it for the run. Unless the run is resumed, no checkpoints are left in
// it: neither --resume nor calibrate may find what is left of the run that is written over; its
// timelines and metrics go where the steps begin. Throws InputError if it cannot be written, if
// another run holds it, or as check_run_folder does.
[[nodiscard]] FolderLock prepare_run_folder(const RunOptions& options);

}  // namespace shardwright::executor
