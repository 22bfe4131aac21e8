// Fields in a view that is scrolled.
#pragma once

class QWidget;

namespace shardwright::gui {

// A combo box or a spin box without the focus is scrolled past: the wheel neither changes its value
// nor gives it the focus.
void leave_wheel_to_scrolling(QWidget& field);

}  // namespace shardwright::gui
