// The question what becomes of a run when the window is closed.
#pragma once

class QMainWindow;

namespace shardwright::gui {

class RunView;

// Asks, and closes `window` once the run is stopped or let go. Returns at once.
void ask_what_becomes_of_run(QMainWindow& window, RunView& run);

}  // namespace shardwright::gui
