#include "gui/models/table_text.hpp"

#include <QAbstractItemModel>
#include <numeric>

namespace shardwright::gui {
namespace {

template <class Quote>
QString joined(const TextTable& table, const QString& separator, Quote quote,
               const std::stop_token& stop = {}) {
  const auto line = [&](const QStringList& cells) {
    QStringList quoted;
    for (const QString& cell : cells) quoted.append(quote(cell));
    return quoted.join(separator) + u'\n';
  };
  QString text = line(table.header);
  for (const QStringList& row : table.rows) {
    if (stop.stop_requested()) break;
    text += line(row);
  }
  return text;
}

QString csv_cell(QString cell) {
  static const QString kSpecial = u",\"\n\r"_s;
  bool special = false;
  for (const QChar c : kSpecial) special = special || cell.contains(c);
  if (!special) return cell;
  return u'"' + cell.replace(u'"', u"\"\""_s) + u'"';
}

}  // namespace

TextTable text_table(const QAbstractItemModel& model, const std::vector<int>& rows,
                     const std::vector<int>& columns, Qt::ItemDataRole role) {
  TextTable table;
  for (const int column : columns) {
    // Views break long titles before the unit.
    QString title = model.headerData(column, Qt::Horizontal).toString();
    if (title.contains(u'\n')) title = title.replace(u'\n', u" ("_s) + u')';
    table.header.append(title);
  }
  for (const int row : rows) {
    QStringList cells;
    for (const int column : columns) cells.append(model.index(row, column).data(role).toString());
    table.rows.push_back(cells);
  }
  return table;
}

TextTable text_table(const QAbstractItemModel& model, const std::vector<int>& columns,
                     Qt::ItemDataRole role) {
  std::vector<int> rows(static_cast<std::size_t>(model.rowCount()));
  std::iota(rows.begin(), rows.end(), 0);
  return text_table(model, rows, columns, role);
}

QString to_tsv(const TextTable& table) {
  return joined(table, u"\t"_s,
                [](QString cell) { return cell.replace(u'\t', u' ').replace(u'\n', u' '); });
}

QString to_csv(const TextTable& table, const std::stop_token& stop) {
  return joined(table, u","_s, csv_cell, stop);
}

QString to_markdown(const TextTable& table) {
  const auto line = [](const QStringList& cells) {
    QStringList safe = cells;
    safe.replaceInStrings(u"|"_s, u"\\|"_s);
    return u"| "_s + safe.join(u" | "_s) + u" |\n"_s;
  };
  QString text = line(table.header);
  text += u'|' + u" --- |"_s.repeated(table.header.size()) + u'\n';
  for (const QStringList& row : table.rows) text += line(row);
  return text;
}

}  // namespace shardwright::gui
