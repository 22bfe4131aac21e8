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
    return quoted.join(separator) + QLatin1Char('\n');
  };
  QString text = line(table.header);
  for (const QStringList& row : table.rows) {
    if (stop.stop_requested()) break;
    text += line(row);
  }
  return text;
}

QString csv_cell(QString cell) {
  static const QString kSpecial = QStringLiteral(",\"\n\r");
  bool special = false;
  for (const QChar c : kSpecial) special = special || cell.contains(c);
  if (!special) return cell;
  return QLatin1Char('"') + cell.replace(QLatin1Char('"'), QStringLiteral("\"\"")) +
         QLatin1Char('"');
}

}  // namespace

TextTable text_table(const QAbstractItemModel& model, const std::vector<int>& rows,
                     const std::vector<int>& columns, Qt::ItemDataRole role) {
  TextTable table;
  for (const int column : columns) {
    // Views break long titles before the unit.
    QString title = model.headerData(column, Qt::Horizontal).toString();
    if (title.contains(QLatin1Char('\n')))
      title = title.replace(QLatin1Char('\n'), QStringLiteral(" (")) + QLatin1Char(')');
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
  return joined(table, QStringLiteral("\t"), [](QString cell) {
    return cell.replace(QLatin1Char('\t'), QLatin1Char(' '))
        .replace(QLatin1Char('\n'), QLatin1Char(' '));
  });
}

QString to_csv(const TextTable& table, const std::stop_token& stop) {
  return joined(table, QStringLiteral(","), csv_cell, stop);
}

QString to_markdown(const TextTable& table) {
  const auto line = [](const QStringList& cells) {
    QStringList safe = cells;
    safe.replaceInStrings(QStringLiteral("|"), QStringLiteral("\\|"));
    return QStringLiteral("| ") + safe.join(QStringLiteral(" | ")) + QStringLiteral(" |\n");
  };
  QString text = line(table.header);
  text +=
      QLatin1Char('|') + QStringLiteral(" --- |").repeated(table.header.size()) + QLatin1Char('\n');
  for (const QStringList& row : table.rows) text += line(row);
  return text;
}

}  // namespace shardwright::gui
