// The tabs of docks that share a place.
#pragma once

class QMainWindow;

namespace shardwright::gui {

// Qt shortens titles to a letter or two where there is little room; tabs are scrolled to instead.
void keep_tab_titles_whole(QMainWindow& window);

}  // namespace shardwright::gui
