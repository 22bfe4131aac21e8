// The layout of a view that is scrolled where its dock is too low for it.
#pragma once

class QVBoxLayout;
class QWidget;

namespace shardwright::gui {

// Fills `view`, which must have no layout yet; what is added stands from top to bottom.
QVBoxLayout* scrolled_column(QWidget& view);

}  // namespace shardwright::gui
