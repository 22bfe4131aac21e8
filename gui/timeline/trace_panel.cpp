#include "gui/timeline/trace_panel.hpp"

#include <QHeaderView>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableWidget>
#include <QTextDocumentFragment>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>
#include <numeric>

#include "gui/models/text.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

// The width of the panel in heights of its letters: where there is room, and at least.
constexpr int kWidth = 32, kLeastPanelWidth = 20;

// Makes the table as high as all of its rows: the panel scrolls as a whole.
void fit_height(QTableWidget& widget) {
  int height = widget.horizontalHeader()->sizeHint().height() + 2 * widget.frameWidth();
  constexpr int kBetweenRows = 6;
  const QAbstractItemView& view = widget;
  for (int row = 0; row < widget.rowCount(); ++row) {
    widget.setRowHeight(row, std::max(widget.verticalHeader()->defaultSectionSize(),
                                      kBetweenRows + view.sizeHintForRow(row)));
    height += widget.rowHeight(row);
  }
  widget.setFixedHeight(height);
}

void show_whole(QTableWidget& widget, const TextTable& table) {
  show_table(widget, table);
  widget.setVisible(!table.rows.empty());
  widget.horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  fit_height(widget);
}

QTableWidget* whole_table(const QString& name) {
  QTableWidget* table = text_table_widget(name);
  table->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  table->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  table->setFrameShape(QFrame::NoFrame);
  table->setFocusPolicy(Qt::NoFocus);
  table->hide();
  // The rows follow the letters and the columns first.
  const auto fit_later = [table] { QTimer::singleShot(0, table, [table] { fit_height(*table); }); };
  follow_letters(*table, fit_later);
  QObject::connect(table->horizontalHeader(), &QHeaderView::sectionResized, table, fit_later);
  return table;
}

}  // namespace

TracePanel::TracePanel(QWidget* parent)
    : QWidget(parent),
      title_(wrapped_label(u"trace_title"_s)),
      summary_(named<HintLabel>(u"trace_summary"_s)),
      note_(wrapped_label(u"trace_note"_s)),
      categories_(whole_table(u"trace_categories"_s)),
      step_(whole_table(u"trace_step"_s)),
      differences_(whole_table(u"trace_differences"_s)) {
  setObjectName(u"trace_panel"_s);
  // Long names of kernels would take many lines.
  differences_->setWordWrap(false);
  follow_letters(*this, [this] {
    setMinimumWidth(kLeastPanelWidth * fontMetrics().height());
    setMaximumWidth(kWidth * fontMetrics().height());
  });
  make_bold(*title_);
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(8, 4, 8, 4);
  for (QWidget* each :
       std::initializer_list<QWidget*>{title_, summary_, categories_, note_, step_, differences_})
    column->addWidget(each);
  column->addStretch(1);
  auto* area = new QScrollArea;
  area->setWidget(content);
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(area);
}

QSize TracePanel::sizeHint() const {
  return {kWidth * fontMetrics().height(), QWidget::sizeHint().height()};
}

void TracePanel::show_measured(const std::vector<calibration::TraceReport>& reports,
                               const QStringList& names) {
  if (reports.size() == 1) {
    title_->setText(trace_title(reports.front()));
    summary_->setText(with_whole_quantities(trace_summary(reports.front()) + u'.'));
  } else {
    title_->setText(names.join(u" beside "_s));
    QStringList summaries;
    for (const calibration::TraceReport& report : reports)
      summaries.append(u"%1: %2; %3."_s.arg(summaries.isEmpty() ? u"first"_s : u"second"_s,
                                            trace_title(report), trace_summary(report)));
    summary_->setText(with_whole_quantities(summaries.join(u'\n')));
  }
  show_whole(*categories_, category_table(reports));
  show_note({});
}

void TracePanel::show_note(const QString& note) {
  note_->setText(note);
  note_->setVisible(!note.isEmpty());
  for (QTableWidget* table : {step_, differences_}) table->hide();
}

void TracePanel::show_comparison(const TraceComparison& comparison) {
  if (!comparison.match || !comparison.obstacle.isEmpty()) return show_note(comparison.obstacle);
  QString note =
      u"<b>Beside the chosen plan</b><br>"_s + plan_text(comparison.scenario.plan).toHtmlEscaped();
  if (comparison.at_higher_clock) {
    note +=
        u"<br>Kernels leave gaps in the traced steps, so that the device kept a higher clock than "
        "where they fill all of a step. The prediction here is at that clock; Plans and Why have "
        "that of full steps."_s;
  }
  show_note(note);
  show_whole(*step_, step_table(*comparison.match));
  show_whole(*differences_, difference_table(*comparison.match));
}

std::vector<ReportPart> TracePanel::report() const {
  if (isHidden()) return {};
  const auto shown = [](const QTableWidget* table) {
    std::vector<int> columns(static_cast<std::size_t>(table->columnCount()));
    std::iota(columns.begin(), columns.end(), 0);
    return table->isHidden() ? TextTable() : text_table(*table->model(), columns);
  };
  const QString note = QTextDocumentFragment::fromHtml(note_->text()).toPlainText();
  return {{title_->text(), summary_->text(), nullptr, shown(categories_)},
          {{}, note, nullptr, shown(step_)},
          {{}, {}, nullptr, shown(differences_)}};
}

void TracePanel::show_change(const calibration::TraceChange& change) {
  show_note({});
  show_whole(*step_, step_table(change));
  show_whole(*differences_, difference_table(change));
}

}  // namespace shardwright::gui
