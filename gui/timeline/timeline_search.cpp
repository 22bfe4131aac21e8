// The filter and the search of the timeline, and the ways to a rank and to an op.
#include <QLabel>
#include <QLineEdit>
#include <algorithm>
#include <set>

#include "gui/timeline/timeline_view.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {

// The field is too narrow for the sentence, which the window shows whole among its messages.
void TimelineView::show_problems(QLineEdit& edit, const QStringList& problems) {
  QPalette colours = palette();
  if (!problems.isEmpty()) colours.setColor(QPalette::Text, colours_for(palette()).bad);
  edit.setPalette(colours);
  (&edit == find_edit_ ? find_problems_ : filter_problems_) = problems;
  QStringList lines;
  for (const QString& each : filter_problems_) lines.append(u"Timeline, filter: "_s + each);
  for (const QString& each : find_problems_) lines.append(u"Timeline, find: "_s + each);
  Q_EMIT problem(lines.join(u'\n'));
  update_status();
}

void TimelineView::filter(const QString& text) {
  if (filter_edit_->text() != text) return filter_edit_->setText(text);
  QStringList problems;
  const SpanQuery query = SpanQuery::parse(text, &problems);
  if (problems.isEmpty()) {
    canvas_->set_filter(query);
    update_hint();
    find(find_edit_->text());
    update_statistics();
  }
  show_problems(*filter_edit_, problems);
}

void TimelineView::find(const QString& text) {
  if (find_edit_->text() != text) return find_edit_->setText(text);
  QStringList problems;
  const SpanQuery query = SpanQuery::parse(text, &problems);
  matches_ = problems.isEmpty() ? canvas_->tracks().find(query) : std::vector<SpanRef>();
  has_match_ = false;
  canvas_->set_matches(matches_);
  match_label_->setText(query.empty() || !problems.isEmpty()
                            ? QString()
                            : u"%1 found"_s.arg(count_text(matches_.size())));
  show_problems(*find_edit_, problems);
}

void TimelineView::find_next() {
  step_match(1);
}

void TimelineView::find_previous() {
  step_match(-1);
}

void TimelineView::step_match(int step) {
  if (matches_.empty()) return;
  const std::size_t count = matches_.size();
  std::size_t next = step > 0 ? 0 : count - 1;
  if (has_match_) next = step > 0 ? (match_ + 1) % count : (match_ + count - 1) % count;
  const SpanRef ref = matches_[next];
  canvas_->select_op(ref);
  canvas_->reveal(ref);
  // If a rank was unfolded for it, the matches were found anew, and may be in another order.
  match_ =
      static_cast<std::size_t>(std::find(matches_.begin(), matches_.end(), ref) - matches_.begin());
  has_match_ = true;
  match_label_->setText(u"%1 of %2"_s.arg(count_text(match_ + 1), count_text(count)));
}

QStringList TimelineView::ranks() const {
  QStringList labels;
  for (const Track& track : canvas_->tracks().tracks()) {
    if (track.kind == TrackKind::Rank) labels.append(track.label);
  }
  return labels;
}

QStringList TimelineView::ops() const {
  std::set<std::string_view> names;
  for (const auto& timeline : canvas_->tracks().timelines()) {
    for (const Span& span : timeline->spans) names.insert(span.name);
  }
  QStringList all;
  for (const std::string_view name : names) all.append(to_qstring(name));
  return all;
}

void TimelineView::go_to_rank(const QString& label) {
  canvas_->scroll_to(label);
  canvas_->setFocus();
}

// The search line would not do: it looks for parts of names, and a blank ends a term.
void TimelineView::go_to_op(const QString& name, std::optional<Phase> phase) {
  if (select_first(name.toStdString(), phase)) return;
  fold_only({});
  if (!select_first(name.toStdString(), phase))
    status_->show_text(u"The filter leaves %1 out."_s.arg(name));
}

bool TimelineView::select_first(const std::string& name, std::optional<Phase> phase) {
  for (const Track& track : canvas_->tracks().tracks()) {
    if (track.kind != TrackKind::Spans) continue;
    for (const RowSpan& each : canvas_->tracks().rows()[track.row].spans()) {
      const SpanRef ref{track.side, each.index};
      const Span& span = canvas_->tracks().span(ref);
      if (span.name != name || (phase && span.phase != *phase)) continue;
      canvas_->select_op(ref);
      canvas_->reveal(ref);
      canvas_->setFocus();
      return true;
    }
  }
  return false;
}

}  // namespace shardwright::gui
