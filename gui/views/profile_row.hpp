// What becomes of a refitted profile: a file, and plans for it.
#pragma once

#include <QWidget>

#include "core/spec/cluster_spec.hpp"

class QLineEdit;

namespace shardwright::gui {

// Hidden until there is a profile.
class ProfileRow : public QWidget {
  Q_OBJECT

 public:
  explicit ProfileRow(QWidget* parent = nullptr);

  // `file` is suggested.
  void offer(const ClusterSpec& profile, const QString& file);

 Q_SIGNALS:
  void saved(const QString& file);
  void problem(const QString& text);
  // The file holds the profile by then.
  void replan_wanted(const QString& file);

 private:
  void choose_file();
  // False, and said, where the profile cannot be written.
  bool save();
  void replan();

  QLineEdit* file_ = nullptr;
  ClusterSpec profile_;
  QString saved_;  // the file that holds it; empty: none yet
};

}  // namespace shardwright::gui
