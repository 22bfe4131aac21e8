// The menu of the timeline, which filters by an op and arranges the rows.
#include <QMenu>

#include "gui/timeline/timeline_view.hpp"
#include "gui/views/filter_chips.hpp"

namespace shardwright::gui {

void TimelineView::open_menu(const QPointF& position) {
  const Track* track = canvas_->track_at(position);
  if (track == nullptr) return;
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  if (const auto span = canvas_->item_at(position))
    add_filters(*menu, canvas_->tracks().span(*span));
  add_arrangement(*menu, *track);
  menu->popup(canvas_->viewport()->mapToGlobal((position * canvas_->unit()).toPoint()));
}

void TimelineView::add_filters(QMenu& menu, const Span& span) {
  QMenu* only = menu.addMenu(u"Show only"_s);
  QMenu* without = menu.addMenu(u"Leave out"_s);
  for (const QString& term : terms_of(span)) {
    only->addAction(term, chips_, [this, term] { chips_->add(term); });
    without->addAction(term, chips_, [this, term] { chips_->add(u'-' + term); });
  }
  menu.addSeparator();
}

void TimelineView::add_arrangement(QMenu& menu, const Track& track) {
  if (track.kind != TrackKind::Rank) {
    const QString text = track.pinned ? u"Unpin %1 · %2"_s : u"Pin %1 · %2 to the top"_s;
    menu.addAction(text.arg(track.rank_label, track.label), canvas_,
                   [this, track] { canvas_->pin(track, !track.pinned); });
  }
  const bool folded = canvas_->tracks().is_folded(track.rank_label);
  menu.addAction((folded ? u"Unfold %1"_s : u"Fold %1"_s).arg(track.rank_label), canvas_,
                 [this, label = track.rank_label, folded] { canvas_->fold(label, !folded); });
  menu.addAction(u"Fold all others"_s, canvas_, [this, kept = track.rank_label] {
    QStringList others = ranks();
    others.removeAll(kept);
    fold_only(others);
  });
  menu.addAction(u"Unfold all"_s, this, [this] { fold_only({}); });
  if (canvas_->tracks().pinned_height() > 0.0) {
    menu.addAction(u"Unpin all"_s, canvas_, [this] {
      TimelineTracks::Arrangement arrangement = canvas_->tracks().arrangement();
      arrangement.pinned.clear();
      canvas_->arrange(arrangement);
    });
  }
  add_order(menu, track);
}

// The same moves are made by dragging a name.
void TimelineView::add_order(QMenu& menu, const Track& track) {
  menu.addSeparator();
  const QString name =
      track.kind == TrackKind::Rank ? track.label : u"%1 · %2"_s.arg(track.rank_label, track.label);
  for (const int step : {-1, 1}) {
    if (!canvas_->tracks().can_nudge(track, step)) continue;
    const QString text = step < 0 ? u"Move %1 up"_s : u"Move %1 down"_s;
    menu.addAction(text.arg(name), canvas_, [this, track, step] { canvas_->nudge(track, step); });
  }
  if (canvas_->tracks().is_reordered())
    menu.addAction(u"Restore the order of all rows"_s, this, &TimelineView::reset_order);
}

void TimelineView::reset_order() {
  TimelineTracks::Arrangement arrangement = canvas_->tracks().arrangement();
  arrangement.ranks.clear();
  arrangement.rows.clear();
  canvas_->arrange(arrangement);
}

// Folds all ranks in one step, because each step lays out and searches the rows anew.
void TimelineView::fold_only(const QStringList& labels) {
  TimelineTracks::Arrangement arrangement = canvas_->tracks().arrangement();
  for (const QString& rank : ranks()) {
    arrangement.folded.removeAll(rank);
    arrangement.unfolded.removeAll(rank);
    (labels.contains(rank) ? arrangement.folded : arrangement.unfolded).append(rank);
  }
  canvas_->arrange(arrangement);
}

}  // namespace shardwright::gui
