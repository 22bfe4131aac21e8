#include "gui/timeline/timeline_view.hpp"

#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QSettings>
#include <QSplitter>
#include <QTableWidget>
#include <QVBoxLayout>

#include "gui/models/text.hpp"
#include "gui/timeline/range_statistics.hpp"
#include "gui/timeline/span_text.hpp"
#include "gui/timeline/trace_panel.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/filter_chips.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/query_completer.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

constexpr int kStatisticsWidth = 380;
// The width of the details of an op in heights of their letters.
constexpr int kDetailsWidth = 26;

constexpr qsizetype kLongestHeading = 30;

// Keeps the beginning and the end of a long heading, which leaves room for the other columns.
QString shortened(const QString& heading) {
  if (heading.size() <= kLongestHeading) return heading;
  const qsizetype half = kLongestHeading / 2;
  return heading.left(half - 1) + u"…"_s + heading.right(half);
}

}  // namespace

TimelineView::TimelineView(QWidget* parent)
    : View(parent),
      canvas_(new TimelineCanvas),
      difference_job_(
          this, [this](auto difference) { take_difference(std::move(difference)); },
          [this](const QString& error) { differences_summary_->setText(error); }) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  create_bar();
  create_source();
  create_statistics();
  create_differences();
  layout->addWidget(bar_);
  layout->addWidget(source_bar_);
  chips_ = new FilterChips(filter_edit_);
  QWidget* chips = row_of({chips_}, chips_);
  chips->layout()->setContentsMargins(8, 0, 8, 0);
  layout->addWidget(chips);
  empty_ = new EmptyState(canvas_, this);
  create_details();
  traces_ = new TracePanel;
  traces_->hide();
  auto* beside = new QSplitter;
  beside->setChildrenCollapsible(false);
  beside->addWidget(empty_);
  tables_beside_ = column_of({differences_panel_, statistics_panel_});
  tables_beside_->hide();
  beside->addWidget(tables_beside_);
  beside->setStretchFactor(0, 1);
  beside->setSizes({2 * kStatisticsWidth, kStatisticsWidth});
  QWidget* middle = row_of({beside, details_, traces_}, beside);
  middle->layout()->setSpacing(0);
  layout->addWidget(middle, 1);
  setFocusProxy(canvas_);
  // The canvas gets the focus first, so that its keys do not end up in the filter.
  setTabOrder(canvas_, filter_edit_);
  connect_parts();
  update_hint();
}

void TimelineView::create_bar() {
  bar_ = new QWidget(this);
  auto* layout = new FlowLayout(bar_);
  layout->setContentsMargins(8, 4, 8, 4);
  const QString syntax =
      u"The ops for which all of these hold, as in\n"
      "qkv\t\tpart of the name\n"
      "kind=gemm,attention\teither kind; also stream, phase, group\n"
      "layer=0-7, mb>=3\tnumbers; also rank\n"
      "not phase=forward\tthe opposite"_s;
  const auto add_edit = [&](const QString& placeholder, const QString& name) {
    auto* edit = new QLineEdit(bar_);
    edit->setPlaceholderText(placeholder);
    edit->setAccessibleName(name);
    edit->setToolTip(syntax);
    edit->setClearButtonEnabled(true);
    edit->setMinimumWidth(150);
    new QueryCompleter(edit, span_completions());
    layout->addWidget(edit);
    return edit;
  };
  filter_edit_ = add_edit(u"Filter: kind=gemm, not phase=forward …"_s, u"Filter of ops"_s);
  find_edit_ = add_edit(u"Find: qkv, layer=3 …"_s, u"Search for ops"_s);
  match_label_ = new QLabel(bar_);
  match_label_->setObjectName(u"match_label"_s);
  layout->addWidget(match_label_);
  auto* previous = add(new QToolButton, u"‹"_s, u"Previous match (,)"_s);
  auto* next = add(new QToolButton, u"›"_s, u"Next match (.)"_s);
  connect(previous, &QToolButton::clicked, this, &TimelineView::find_previous);
  connect(next, &QToolButton::clicked, this, &TimelineView::find_next);
  arrows_ = add(new ToggleButton, u"All messages"_s,
                u"Arrows of all messages in view (at most %1), not of the selected op alone"_s.arg(
                    count_text(kMostArrows)));
  critical_ =
      add(new ToggleButton, u"Critical path"_s, u"Mark the ops that determine the step time"_s);
  differences_toggle_ = add(new ToggleButton, u"Differences"_s,
                            u"Colour the ops of both timelines by how much longer they take in the "
                            "second, and list the largest differences"_s);
  differences_toggle_->setObjectName(u"timeline_differences"_s);
  details_toggle_ = add(new ToggleButton, u"Details"_s, u"Describe the selected op (Q)"_s);
  critical_->setChecked(true);
  status_ = new ElidedLabel(bar_);
  layout->addWidget(status_);
}

void TimelineView::create_source() {
  source_ = named<ElidedLabel>(u"timeline_source"_s);
  auto* back = tool_button(u"timeline_back"_s, u"Back to the chosen plan"_s,
                           u"Shows the predicted step of the plan that is chosen in Plans"_s);
  connect(back, &QToolButton::clicked, this, &TimelineView::plan_wanted);
  source_bar_ = row_of({source_, back}, source_);
  source_bar_->layout()->setContentsMargins(8, 0, 8, 4);
  source_bar_->hide();
}

QToolButton* TimelineView::add(QToolButton* button, const QString& text, const QString& tip) {
  button->setText(text);
  button->setToolTip(tip);
  button->setAccessibleName(tip);
  bar_->layout()->addWidget(button);
  return button;
}

void TimelineView::create_details() {
  details_ = wrapped_label(u"op_details"_s);
  follow_letters(*details_, [label = details_] {
    label->setFixedWidth(kDetailsWidth * label->fontMetrics().height());
  });
  details_->setMargin(8);
  details_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  details_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  details_->hide();
}

void TimelineView::create_statistics() {
  summary_ = wrapped_label(u"range_summary"_s);
  statistics_ = text_table_widget(u"statistics"_s);
  statistics_->setAccessibleName(u"Kinds of ops in the selected range"_s);
  rows_ = text_table_widget(u"row_statistics"_s);
  rows_->setAccessibleName(u"Rows in the selected range"_s);
  auto* tables = new QSplitter(Qt::Vertical);
  tables->addWidget(statistics_);
  tables->addWidget(rows_);
  statistics_panel_ = column_of({summary_, tables}, tables);
  statistics_panel_->layout()->setContentsMargins(8, 4, 8, 4);
  statistics_panel_->hide();
}

void TimelineView::create_differences() {
  differences_summary_ = wrapped_label(u"differences_summary"_s);
  differences_ = text_table_widget(u"timeline_difference_table"_s);
  differences_->setAccessibleName(u"Largest differences of two timelines"_s);
  connect(differences_, &QTableWidget::cellClicked, this, [this](int row, int) {
    const OpDifference& op = canvas_->tracks().difference()->ops()[static_cast<std::size_t>(row)];
    go_to_op(to_qstring(op.name), op.phase);
  });
  differences_panel_ = column_of({differences_summary_, differences_}, differences_);
  differences_panel_->layout()->setContentsMargins(8, 4, 8, 4);
  differences_panel_->hide();
}

void TimelineView::connect_parts() {
  connect(filter_edit_, &QLineEdit::textChanged, this, &TimelineView::filter);
  connect(find_edit_, &QLineEdit::textChanged, this, &TimelineView::find);
  connect(find_edit_, &QLineEdit::returnPressed, this, &TimelineView::find_next);
  connect(details_toggle_, &QToolButton::toggled, this, [this](bool shown) {
    details_->setVisible(shown);
    update_details();
  });
  connect(differences_toggle_, &QToolButton::toggled, this, &TimelineView::update_difference);
  connect(canvas_, &TimelineCanvas::rows_changed, this, [this] { find(find_edit_->text()); });
  connect(canvas_, &TimelineCanvas::menu_wanted, this, &TimelineView::open_menu);
  connect(arrows_, &QToolButton::toggled, canvas_, &TimelineCanvas::set_show_arrows);
  connect(critical_, &QToolButton::toggled, canvas_, &TimelineCanvas::set_show_critical_path);
  connect(canvas_, &TimelineCanvas::range_selected, this, &TimelineView::update_statistics);
  connect(canvas_, &TimelineCanvas::range_cleared, this, &TimelineView::update_statistics);
  connect(canvas_, &TimelineCanvas::op_selected, this, &TimelineView::update_status);
  connect(canvas_, &TimelineCanvas::op_cleared, this, &TimelineView::update_status);
}

void TimelineView::set_timelines(std::vector<std::shared_ptr<const Timeline>> timelines,
                                 std::shared_ptr<const Program> program, const RankLimits& limits,
                                 const std::vector<sim::ReservedMemory>& reserved,
                                 const QStringList& names) {
  QStringList sources;
  for (qsizetype i = 0; i < names.size(); ++i) {
    const TimelineOrigin origin = timelines[static_cast<std::size_t>(i)]->origin;
    sources.append(u"%1 (%2)"_s.arg(names[i], title_of(origin)));
  }
  update_source(sources);
  canvas_->set_timelines(std::move(timelines), std::move(program), limits, reserved, names);
  Q_EMIT timelines_changed();
  update_difference();
  update_hint();
  if (!filter_edit_->text().isEmpty()) filter(filter_edit_->text());
  find(find_edit_->text());
  update_statistics();
  update_status();
}

void TimelineView::save(QSettings& settings) const {
  const TimelineTracks::Arrangement arrangement = canvas_->tracks().arrangement();
  save_list(settings, u"timeline/folded"_s, arrangement.folded);
  save_list(settings, u"timeline/pinned"_s, arrangement.pinned);
  save_list(settings, u"timeline/unfolded"_s, arrangement.unfolded);
  save_list(settings, u"timeline/ranks"_s, arrangement.ranks);
  save_list(settings, u"timeline/rows"_s, arrangement.rows);
}

void TimelineView::restore(const QSettings& settings) {
  const auto names = [&](const char* what) {
    return settings.value(u"timeline/"_s + to_qstring(what)).toStringList();
  };
  canvas_->arrange(
      {names("folded"), names("pinned"), names("unfolded"), names("ranks"), names("rows")});
}

// The tables take width from the rows. They come when a drag has ended, because the place where the
// mouse is would be another moment.
void TimelineView::show_tables() {
  const bool has_range = canvas_->scene().range.has_value();
  const bool has_differences = canvas_->tracks().compares() && differences_toggle_->isChecked();
  if (canvas_->is_dragging() && has_range) return;
  statistics_panel_->setVisible(has_range);
  differences_panel_->setVisible(has_differences);
  tables_beside_->setVisible(has_range || has_differences);
}

void TimelineView::update_statistics() {
  const auto& range = canvas_->scene().range;
  show_tables();
  const TimelineTracks& tracks = canvas_->tracks();
  QStringList sides;
  for (std::size_t side = 0; side < tracks.timelines().size(); ++side)
    sides.append(tracks.side_title(side));
  if (!range) {
    show_table(*rows_, {});
    return show_table(*statistics_, {});
  }
  const RangeStatistics figures = range_statistics(tracks, range->from, range->to);
  const RangeText text = range_text(Seconds(range->from), Seconds(range->to));
  QStringList parts = {u"<b>%1</b> from %2 to %3"_s.arg(text.length, text.from, text.to)};
  for (std::size_t side = 0; side < tracks.timelines().size() && side < 2; ++side) {
    const QString what =
        tracks.compares() ? tracks.side_title(side).toHtmlEscaped() + u": "_s : QString();
    parts.append(what + counted_text(figures.count(side), "span"));
    if (figures.compute_busy[side] >= 0.0)
      parts.append(u"compute %1 busy"_s.arg(percent_text(figures.compute_busy[side])));
  }
  summary_->setText(parts.join(u" · "_s));
  show_table(*rows_, row_table(figures));
  TextTable table = statistics_table(figures, sides);
  const QStringList headings = table.header;
  for (QString& heading : table.header) heading = shortened(heading);
  show_table(*statistics_, table);
  for (int column = 0; column < headings.size(); ++column)
    statistics_->horizontalHeaderItem(column)->setToolTip(headings[column]);
}

void TimelineView::update_difference() {
  const TimelineTracks& tracks = canvas_->tracks();
  differences_toggle_->setVisible(tracks.compares());
  const bool wanted = tracks.compares() && differences_toggle_->isChecked();
  show_tables();
  difference_job_.cancel();
  if (!wanted) return canvas_->set_difference(nullptr);
  differences_summary_->setText(u"Comparing op by op …"_s);
  show_table(*differences_, {});
  difference_job_.start(
      [first = tracks.timelines()[0], second = tracks.timelines()[1]](const std::stop_token& stop) {
        return TimelineDifference(*first, *second, stop);
      });
}

void TimelineView::take_difference(std::shared_ptr<const TimelineDifference> difference) {
  constexpr std::size_t kMostShown = 20;
  const TimelineTracks& tracks = canvas_->tracks();
  const QStringList sides = {tracks.side_title(0), tracks.side_title(1)};
  TextTable table = difference_table(*difference, sides, kMostShown);
  for (QString& heading : table.header) heading = shortened(heading);
  show_table(*differences_, table);
  const bool shares_ops = !difference->ops().empty();
  QString text = !shares_ops ? u"No op has the same name in both."_s
                 : table.rows.empty()
                     ? u"All ops that both have take the same time."_s
                     : u"Largest differences of ops that both have: a click on one shows it."_s;
  for (std::size_t side = 0; side < 2; ++side) {
    if (const std::size_t count = difference->unmatched(side); count > 0)
      text +=
          u" %1 %2 only in %3."_s.arg(counted_text(count, "op"), count == 1 ? u"is"_s : u"are"_s,
                                      sides[static_cast<qsizetype>(side)]);
  }
  differences_summary_->setText(text);
  canvas_->set_difference(shares_ops ? std::move(difference) : nullptr);
}

void TimelineView::update_hint() {
  const TimelineTracks& tracks = canvas_->tracks();
  if (!tracks.empty()) return empty_->show_content();
  empty_->show_hint(tracks.all_spans() > 0
                        ? u"<b>No op matches the filter</b><br>Clear or widen it above."_s
                        : u"<b>No timeline yet</b><br>The predicted step of the chosen plan "
                          "appears here; or drop a timeline file."_s);
}

void TimelineView::show_hint(const QString& hint) {
  empty_->show_hint(hint);
}

void TimelineView::update_source(const QStringList& sources) {
  source_bar_->setVisible(!sources.isEmpty());
  source_->show_text(u"This is the step of %1, not that of the chosen plan."_s.arg(
      sources.join(u" and the step of "_s)));
}

void TimelineView::show_source(const QString& text) {
  source_->show_text(text);
}

void TimelineView::update_details() {
  if (details_->isHidden()) return;
  const auto& selected = canvas_->scene().selected;
  details_->setText(selected ? canvas_->text_of(*selected)
                             : u"Click on an op to see its description."_s);
}

void TimelineView::update_status() {
  update_details();
  const TimelineCanvas& canvas = *canvas_;
  if (canvas.scene().selected) {
    status_->show_text(span_line(canvas.tracks(), *canvas.scene().selected));
    return;
  }
  const std::size_t shown = canvas.tracks().shown_spans(), all = canvas.tracks().all_spans();
  if (all == 0) return status_->show_text({});
  const QString text = counted_text(all, "op");
  status_->show_text(shown == all ? text : u"%1 of %2"_s.arg(count_text(shown), text));
}

// Within this view Ctrl+F is not the command of the window.
bool TimelineView::event(QEvent* event) {
  const bool asks = event->type() == QEvent::ShortcutOverride;
  if (asks && static_cast<QKeyEvent*>(event)->matches(QKeySequence::Find)) event->accept();
  return View::event(event);
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Period) return find_next();
  if (event->key() == Qt::Key_Comma) return find_previous();
  if (event->key() == Qt::Key_Q) return details_toggle_->toggle();
  if (event->key() == Qt::Key_Escape) return canvas_->setFocus();
  if (event->matches(QKeySequence::Find)) return find_edit_->setFocus(Qt::ShortcutFocusReason);
  QWidget::keyPressEvent(event);
}

// Says whose step it is unless it is that of the chosen plan.
std::vector<ReportPart> TimelineView::report() const {
  if (canvas_->tracks().empty()) return {};
  std::vector<ReportPart> parts = {
      {{}, source_bar_->isHidden() ? QString() : source_->text(), canvas_, {}}};
  for (ReportPart& part : traces_->report()) parts.push_back(std::move(part));
  return parts;
}

TextTable TimelineView::table() const {
  return lazy_table().make({});
}

LazyTable TimelineView::lazy_table() const {
  const AxisWindow& window = canvas_->scene().window;
  ShownSpans shown = shown_spans(canvas_->tracks(), window.from, window.to);
  const std::size_t rows = shown.spans.size();
  return {rows, [shown = std::move(shown)](const std::stop_token& stop) {
            return span_table(shown, stop);
          }};
}

}  // namespace shardwright::gui
