// The icons of commands, drawn in the colour of the text around them, so that they follow the
// theme.
#pragma once

#include <QIcon>
#include <cstdint>

namespace shardwright::gui {

enum class Icon : std::uint8_t {
  Open,
  Save,
  Undo,
  Redo,
  Search,
  Stop,
  Run,
  Pause,
  Compare,
  Export,
  Maximise,
  Theme,
  Help,
  Folder,
  Reload,
  Close,
  Quit,
  Copy,
  Picture,
  Data,
  Filter,
  Example,
  Machine,
  Calibrate,
  GoTo,
  Pin,
  Unpin,
  Rows,
  Layout,
  Columns,
  Light,
  Dark,
  Keyboard,
  Commands,
  About,
  // The views.
  Scenario,
  Plans,
  Why,
  Timeline,
  Topology,
  Schedule,
  Sweeps,
  Forecast,
};

QIcon icon_of(Icon icon);

}  // namespace shardwright::gui
