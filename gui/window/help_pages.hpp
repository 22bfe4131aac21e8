// The pages of the menu Help.
#pragma once

class QWidget;

namespace shardwright::gui {

// Opens the glossary of the documentation, with a line that finds a word in it; brings an open one
// to the front.
void show_glossary(QWidget* window);

// Opens the page with version and licences.
void show_about(QWidget* window);

}  // namespace shardwright::gui
