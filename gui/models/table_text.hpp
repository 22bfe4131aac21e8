// Tables as text: for the clipboard and for files.
#pragma once

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

// A table of the data that were shown when it was asked for, made on demand.
struct LazyTable {
  std::size_t rows = 0;
  // Runs in any thread and ends early once a stop is requested.
  std::function<TextTable(const std::stop_token&)> make;
};

// Takes the given rows and columns of a model. Qt::EditRole has numbers that other programs read.
TextTable text_table(const QAbstractItemModel& model, const std::vector<int>& rows,
                     const std::vector<int>& columns, Qt::ItemDataRole role = Qt::DisplayRole);
TextTable text_table(const QAbstractItemModel& model, const std::vector<int>& columns,
                     Qt::ItemDataRole role = Qt::DisplayRole);

QString to_tsv(const TextTable& table);
// Writes RFC 4180 and ends early once a stop is requested.
QString to_csv(const TextTable& table, const std::stop_token& stop = {});
QString to_markdown(const TextTable& table);

}  // namespace shardwright::gui
