// Tables as text: for the clipboard and for files.
#pragma once

#include <QModelIndex>
#include <QStringList>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <vector>

#include "gui/models/text.hpp"

class QAbstractItemModel;

namespace shardwright::gui {

// A table of texts, the first row its header.
struct TextTable {
  QStringList header;
  std::vector<QStringList> rows;
};

// A table of what was shown when it was asked for, which is yet to be made.
struct LazyTable {
  std::size_t rows = 0;
  // In any thread; cut short once a stop is asked for.
  std::function<TextTable(const std::stop_token&)> make;
};

// The given rows of a model in the order that they are shown; `columns`: those to take. `role`:
// Qt::EditRole for numbers that other programs read.
TextTable text_table(const QAbstractItemModel& model, const std::vector<int>& rows,
                     const std::vector<int>& columns, Qt::ItemDataRole role = Qt::DisplayRole);
// All rows.
TextTable text_table(const QAbstractItemModel& model, const std::vector<int>& columns,
                     Qt::ItemDataRole role = Qt::DisplayRole);

QString to_tsv(const TextTable& table);
// RFC 4180; cut short once a stop is asked for.
QString to_csv(const TextTable& table, const std::stop_token& stop = {});
QString to_markdown(const TextTable& table);

}  // namespace shardwright::gui
