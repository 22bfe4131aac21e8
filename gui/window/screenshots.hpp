// Pictures of every view on the worked example, for the documentation and for looking at them.
#pragma once

#include <QString>
#include <QStringList>

namespace shardwright::gui {

// Light and dark, at one and at two device pixels a pixel: FOLDER/VIEW-light.png, VIEW-dark@2x.png,
// … Also draws these traces of GPT-2 on eight H100, if there are any. False, with a reason on
// stderr, if something cannot be drawn or written.
bool take_screenshots(const QString& folder, const QStringList& traces);

}  // namespace shardwright::gui
